//! What both databases have in common: values, rows, and the few things done with a connection.
//!
//! Every statement is written once, in the words both databases know. Parameters are `?1`, `?2` and so on.

use super::StoreError;
use std::error::Error;

/// A value in a statement or a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// What can be done within a transaction.
pub(crate) trait Statements {
    /// Changes something; how many rows.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, SqlError>;

    /// Reads something.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, SqlError>;
}

/// Why a database did not do what it was asked, as far as it matters what to do next.
#[derive(Debug)]
pub(crate) enum SqlError {
    /// Somebody else holds it for too long.
    Locked,
    /// The disk has no room.
    Full,
    /// A unique value is there already.
    Conflict,
    /// Two transactions were in each other's way; the same again may succeed.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only a server says it"))]
    Again,
    /// The connection has ended. What was under way may have been done or not.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "only a server says it"))]
    Lost(Box<dyn Error + Send + Sync>),
    /// A row does not hold what belongs there.
    Unreadable(String),
    /// Anything else.
    Other(Box<dyn Error + Send + Sync>),
}

impl SqlError {
    /// The same, saying what was being done.
    pub(crate) fn doing(self, doing: &'static str) -> StoreError {
        match self {
            SqlError::Locked | SqlError::Again => StoreError::Locked { doing },
            SqlError::Full => StoreError::Full { doing },
            SqlError::Conflict => StoreError::Conflict { doing },
            SqlError::Lost(source) => StoreError::Lost { doing, source },
            SqlError::Unreadable(what) => StoreError::Unreadable { what },
            SqlError::Other(source) => StoreError::Database { doing, source },
        }
    }
}

/// One row, read from left to right.
#[derive(Debug)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Row {
        Row(values.into_iter())
    }

    fn next(&mut self) -> Value {
        self.0.next().unwrap_or(Value::Null)
    }

    pub(crate) fn text(&mut self) -> Result<String, SqlError> {
        self.optional_text()?.ok_or_else(|| SqlError::Unreadable("a text is missing".into()))
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<String>, SqlError> {
        match self.next() {
            Value::Text(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            other => Err(SqlError::Unreadable(format!("{other:?} is no text"))),
        }
    }

    pub(crate) fn int(&mut self) -> Result<i64, SqlError> {
        self.optional_int()?.ok_or_else(|| SqlError::Unreadable("a number is missing".into()))
    }

    pub(crate) fn optional_int(&mut self) -> Result<Option<i64>, SqlError> {
        match self.next() {
            Value::Int(number) => Ok(Some(number)),
            Value::Null => Ok(None),
            other => Err(SqlError::Unreadable(format!("{other:?} is no number"))),
        }
    }

    /// A time or a count, which is never below zero.
    pub(crate) fn number(&mut self) -> Result<u64, SqlError> {
        self.int().map(|number| u64::try_from(number).unwrap_or(0))
    }

    pub(crate) fn optional_number(&mut self) -> Result<Option<u64>, SqlError> {
        Ok(self.optional_int()?.map(|number| u64::try_from(number).unwrap_or(0)))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, SqlError> {
        self.int().map(|number| number != 0)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, SqlError> {
        match self.next() {
            Value::Bytes(bytes) => Ok(bytes),
            other => Err(SqlError::Unreadable(format!("{other:?} is no sequence of bytes"))),
        }
    }

    /// A text that only certain words may stand in.
    pub(crate) fn word<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Result<T, SqlError> {
        let text = self.text()?;
        read(&text).ok_or_else(|| unreadable(&text))
    }

    pub(crate) fn optional_word<T>(
        &mut self,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, SqlError> {
        let Some(text) = self.optional_text()? else { return Ok(None) };
        read(&text).map(Some).ok_or_else(|| unreadable(&text))
    }
}

fn unreadable(text: &str) -> SqlError {
    SqlError::Unreadable(format!("`{text}` makes no sense where it stands"))
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Value::Text(text.clone())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

/// Both databases count in signed numbers; a time beyond them would be in 292 million years.
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Int(number.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Int(flag.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Value::Bytes(bytes)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// The values of a statement, in the order of its parameters.
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::store::sql::Value::from($value)),*] };
}
pub(crate) use values;
