//! What a provider is sent of a configuration, and what two runs must have in common to share a lease.

use crate::{Retention, Wanted};
use serde_json::{Map, Value};

/// Keys that are the host's own and no provider's business; a provider that read them would depend on how
/// the host keeps its books.
const HOST_KEYS: [&str; 12] = [
    "driver",
    "executionWorkspaceMode",
    "nativeHarnessBackup",
    "nativeWorkspaceSync",
    "pluginId",
    "pluginKey",
    "provider",
    "providerMetadata",
    "remoteCwd",
    "sandboxLeaseAcquisition",
    "sandboxProviderPlugin",
    "shellCommand",
];

/// A wish of the configuration that providers read: it must say what was decided, or a provider keeps what
/// the host believes to be deleted.
const REUSE: &str = "reuseLease";

/// The configuration as the provider gets it. What is no object stays as it is, for the provider to refuse.
pub(crate) fn sent(config: &str, retention: Retention) -> String {
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(config) else { return config.to_owned() };
    object.retain(|key, _| !HOST_KEYS.contains(&key.as_str()));
    if let Some(reuse) = object.get_mut(REUSE) {
        *reuse = Value::Bool(retention == Retention::Reuse);
    }
    Value::Object(object).to_string()
}

/// The fingerprint of what is wanted: configuration, provider and its component, adapter, and the version
/// of every secret. Any change of it makes another lease.
pub(crate) fn of(wanted: &Wanted) -> String {
    let config = serde_json::from_str(&wanted.config).unwrap_or_else(|_| Value::from(wanted.config.as_str()));
    let mut secrets = wanted.secrets.clone();
    secrets.sort();
    let pins = &wanted.pins;
    let adapter = wanted.scope.as_ref().and_then(|scope| scope.adapter.as_deref());
    let all = serde_json::json!([
        sorted(config),
        pins.provider,
        pins.plugin,
        pins.driver,
        pins.digest,
        adapter,
        secrets
    ]);
    blake3::hash(all.to_string().as_bytes()).to_hex().to_string()
}

/// The same value with the keys of every object in order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pins;

    fn wanted(config: &str) -> Wanted {
        let text = |text: &str| text.to_owned();
        let pins = Pins { provider: text("p"), plugin: text("p-1"), driver: text("d"), digest: text("1") };
        Wanted { config: config.into(), ..Wanted::new("e", pins, "t") }
    }

    #[test]
    fn a_provider_gets_its_own_keys_alone_and_the_decision_instead_of_the_wish() {
        let config = r#"{"provider":"p","image":"i","timeoutMs":1234,"reuseLease":true,"pluginId":"x","remoteCwd":"/","shellCommand":"sh"}"#;
        assert_eq!(
            sent(config, Retention::Ephemeral),
            r#"{"image":"i","timeoutMs":1234,"reuseLease":false}"#
        );
        assert_eq!(sent(r#"{"reuseLease":false}"#, Retention::Reuse), r#"{"reuseLease":true}"#);
        assert_eq!(sent("[1]", Retention::Reuse), "[1]");
    }

    #[test]
    fn a_fingerprint_is_of_what_matters_and_not_of_the_order_of_keys() {
        let first = of(&wanted(r#"{"a":{"x":1,"y":[{"c":1,"b":2}]},"b":2}"#));
        assert_eq!(first, of(&wanted(r#"{"b":2,"a":{"y":[{"b":2,"c":1}],"x":1}}"#)));
        let mut others = vec![of(&wanted("{}")), first];
        others.push(of(&Wanted { secrets: vec![("k".into(), "1".into())], ..wanted("{}") }));
        others.push(of(&Wanted { secrets: vec![("k".into(), "2".into())], ..wanted("{}") }));
        let mut pins = wanted("{}").pins;
        pins.digest = "2".into();
        others.push(of(&Wanted { pins, ..wanted("{}") }));
        let all = others.len();
        others.sort();
        others.dedup();
        assert_eq!(others.len(), all);
    }
}
