//! The contract's types as data, for comparing a component's types with them.
//!
//! [`CONTRACT`] is written by the build script from the same interface files the bindings come from, so
//! the two cannot disagree, and it costs nothing at start.

/// A type of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the component model's own types")]
pub enum Shape {
    Bool,
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
    F32,
    F64,
    Char,
    String,
    List(&'static Shape),
    Option(&'static Shape),
    Result { ok: Option<&'static Shape>, err: Option<&'static Shape> },
    Tuple(&'static [Shape]),
    Record { name: &'static str, fields: &'static [Field] },
    Variant { name: &'static str, cases: &'static [Case] },
    Enum { name: &'static str, cases: &'static [&'static str] },
    Flags { name: &'static str, flags: &'static [&'static str] },
    Own(&'static str),
    Borrow(&'static str),
}

/// A field of a record, or a parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub shape: Shape,
}

/// A case of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What it carries.
    pub payload: Option<Shape>,
}

/// A function of an interface. A method of a resource has the name `[method]source.tar`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its parameters, in order.
    pub params: &'static [Field],
    /// Its result.
    pub result: Option<Shape>,
}

/// An interface of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name without version: `leasehold:provider/execute`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its functions.
    pub functions: &'static [Function],
}

/// Every interface of `world full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// What a provider may export.
    pub exports: &'static [Interface],
    /// What the host package offers. The WASI interfaces are the engine's own and not listed.
    pub imports: &'static [Interface],
    /// Every resource of these and of the WASI interfaces, by its full name, in order.
    pub resources: &'static [&'static str],
}

/// The contract this host serves.
pub static CONTRACT: Contract = include!(concat!(env!("OUT_DIR"), "/contract.rs"));

impl Contract {
    /// The exported interface of this name (without version).
    pub fn export(&self, name: &str) -> Option<&'static Interface> {
        self.exports.iter().find(|interface| interface.name == name)
    }

    /// The imported interface of this name (without version).
    pub fn import(&self, name: &str) -> Option<&'static Interface> {
        self.imports.iter().find(|interface| interface.name == name)
    }
}

impl Interface {
    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&'static Function> {
        self.functions.iter().find(|function| function.name == name)
    }
}
