//! Adding an environment.

use crate::host::Format;
use crate::table::print;
use anyhow::Context;
use clap::Args;
use leasehold::{Environment, Leasehold};
use leasehold_contract::text::plain;
use serde_json::{Map, Value};
use std::io::Write as _;
use std::process::ExitCode;

/// Bytes of a provider's warning that are shown.
const WARNING_MAX: usize = 1_000;

#[derive(Args)]
pub(super) struct Add {
    /// The environment's name.
    name: String,
    /// The provider's driver, or `provider:driver` where several have the same.
    #[arg(long, value_name = "NAME")]
    provider: String,
    /// The whole configuration as a JSON object.
    #[arg(long, value_name = "JSON", conflicts_with = "set")]
    config: Option<String>,
    /// One value of the configuration: JSON, or a text as it is; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, Value)>,
    #[command(flatten)]
    format: Format,
}

impl Add {
    pub(super) async fn run(self, runtime: &Leasehold) -> anyhow::Result<ExitCode> {
        let config = match &self.config {
            Some(text) => serde_json::from_str(text).context("--config takes a JSON object")?,
            None => self.set.into_iter().collect::<Map<_, _>>(),
        };
        let environment = Environment { name: self.name, provider: self.provider, config };
        for warning in runtime.add_environment(&environment).await? {
            let _ = writeln!(std::io::stderr().lock(), "leasehold: {}", plain(&warning, WARNING_MAX));
        }
        if self.format.json {
            print(&format!("{}\n", super::list::json(&environment, "store")))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn setting(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected KEY=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_json_where_they_can_be_and_texts_otherwise() {
        for (text, key, value) in [
            ("a=1", "a", json!(1)),
            ("a=true", "a", json!(true)),
            ("a=b=c", "a", json!("b=c")),
            ("a=", "a", json!("")),
            ("a=\"1\"", "a", json!("1")),
            ("a={\"b\":[]}", "a", json!({"b": []})),
        ] {
            assert_eq!(setting(text), Ok((key.to_owned(), value)), "{text}");
        }
        assert!(setting("a").is_err() && setting("=1").is_err());
    }
}
