//! Secrets in a configuration: where they stand, what may stand there, what comes back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::secret::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const ID: &str = "3f0c2a52-1111-4222-8333-444455556666";

fn secret() -> Value {
    json!({"type": "string", "format": "secret-ref"})
}

#[test]
fn a_binding_is_read_and_everything_like_one_is_not() {
    let binding = |version: Value| json!({"type": "secret_ref", "secretId": ID, "version": version});
    let read = |value: &Value| Reference::of(value).map(|reference| reference.version);
    let cases = [
        (json!({"type": "secret_ref", "secretId": ID}), Some(Version::Latest)),
        (binding(json!(null)), Some(Version::Latest)),
        (binding(json!("latest")), Some(Version::Latest)),
        (binding(json!(3)), Some(Version::Pinned(3))),
        (binding(json!(3.0)), Some(Version::Pinned(3))),
        (binding(json!(0)), None),
        (binding(json!(-1)), None),
        (binding(json!(1.5)), None),
        (binding(json!("3")), None),
        (binding(json!([])), None),
        (json!({"type": "secret", "secretId": ID}), None),
        (json!({"type": "secret_ref", "secretId": "key"}), None),
        (json!({"type": "secret_ref"}), None),
        (json!([{"type": "secret_ref", "secretId": ID}]), None),
        (json!(ID), None),
    ];
    for (value, expected) in cases {
        assert_eq!(read(&value), expected, "{value}");
    }
}

#[test]
fn places_are_found_through_properties_and_their_alternatives_and_not_in_arrays() {
    let cases = [
        (
            json!({"properties": {"credentials": {"properties": {"apiKey": secret()}}}}),
            vec!["credentials.apiKey"],
        ),
        (
            json!({
                "allOf": [{"properties": {"apiKey": secret()}}],
                "oneOf": [{"properties": {"nested": {"properties": {"token": secret()}}}}],
            }),
            vec!["apiKey", "nested.token"],
        ),
        (json!({"properties": {"a": {"anyOf": [{"properties": {"b": secret()}}]}}}), vec!["a.b"]),
        (json!({"properties": {"keys": {"type": "array", "items": secret()}}}), vec![]),
        (json!({"properties": {"keys": {"items": {"properties": {"k": secret()}}}}}), vec![]),
        (json!({"anyOf": [{"properties": {"k": secret()}}, {"properties": {"k": secret()}}]}), vec!["k"]),
        (
            json!({"properties": {"outer": {"format": "secret-ref", "properties": {"in": secret()}}}}),
            vec!["outer", "outer.in"],
        ),
        (json!({"properties": {"name": {"type": "string"}, "flag": true}}), vec![]),
        (json!([]), vec![]),
        (json!({"properties": []}), vec![]),
    ];
    for (schema, expected) in cases {
        assert_eq!(paths(&schema), expected, "{schema}");
    }
}

#[test]
fn validation_gets_bare_ids_and_never_a_pinned_version() {
    let paths = ["auth.key".to_owned()];
    let pass = |value: Value| for_validation(&json!({"auth": {"key": value}}), &paths);
    let bare = json!({"auth": {"key": ID}});
    assert_eq!(pass(json!({"type": "secret_ref", "secretId": ID})), Ok(bare.clone()));
    assert_eq!(pass(json!(ID)), Ok(bare));
    assert_eq!(pass(json!("raw")), Ok(json!({"auth": {"key": "raw"}})));
    let fault = pass(json!({"type": "secret_ref", "secretId": ID, "version": 3})).unwrap_err().to_string();
    assert!(fault.contains("auth.key") && fault.contains("version 3"), "{fault}");
}

#[test]
fn a_secret_is_stored_as_a_reference_that_is_complete_in_itself() {
    let schema = json!({"properties": {"auth": {"properties": {"key": {
        "format": "secret-ref", "x-leasehold-secret": {"to": ["https://*.example.com", "config:url"], "in": ["header", "query"]},
    }}}}});
    let fields = fields(&schema).unwrap();
    let stored = |value: Value| Stored::all(&json!({"auth": {"key": value}, "size": 1}), &fields);
    assert_eq!(stored(json!("  ")), Ok(json!({"size": 1})));
    for (value, secret) in [
        (json!("env:API_KEY"), "env:API_KEY"),
        (json!("command:pass show key"), "command:pass show key"),
        (json!(ID), ID),
        (json!({"type": "secret_ref", "secretId": ID}), ID),
    ] {
        let config = stored(value).unwrap();
        let read = Stored::of(at(&config, "auth.key").unwrap()).unwrap();
        assert_eq!((read.secret.as_str(), read.field.path.as_str()), (secret, "auth.key"));
        assert!(read.field.uses.query && !read.field.uses.body);
        assert_eq!(read.field.to.unwrap().len(), 2);
    }
    for (value, expected) in [
        (json!("dtn_0123456789"), "holds a secret itself"),
        (json!("env:"), "holds a secret itself"),
        (json!(7), "is neither a text nor a binding"),
        (json!({"type": "secret_ref", "secretId": ID, "version": 2}), "names version 2"),
    ] {
        let faults = stored(value).unwrap_err();
        assert!(faults[0].message.contains(expected) && faults[0].path == "auth.key", "{faults:?}");
        assert!(!faults[0].message.contains("dtn_"));
    }
    let forged = Stored::all(&json!({"other": [{"$secret": "env:HOME"}]}), &fields).unwrap_err();
    assert_eq!(forged[0].path, "other[0]");
}

#[test]
fn what_a_schema_says_of_a_secret_is_understood_or_refused() {
    let schema =
        |said: Value| json!({"properties": {"key": {"format": "secret-ref", "x-leasehold-secret": said}}});
    for (said, expected) in [
        (json!({"to": ["ftp://x"]}), "the scheme is http or https"),
        (json!({"to": ["config:"]}), "names no destination"),
        (json!({"in": ["cookie"]}), "expected header, query or body"),
        (json!({"hosts": []}), "unknown field `hosts`"),
        (json!([1]), "invalid"),
    ] {
        let faults = fields(&schema(said.clone())).unwrap_err();
        assert!(faults[0].message.contains(expected), "{said}: {faults:?}");
    }
    let with_default = json!({"properties": {"key": {"format": "secret-ref", "default": "x"}}});
    assert_eq!(fields(&with_default).unwrap_err()[0].path, "key.default");
}

#[test]
fn what_a_provider_returns_at_a_secrets_place_is_not_kept_nor_what_it_alone_was_in() {
    let cases = [
        (json!({"auth": {"apiKey": "s"}}), json!({})),
        (json!({"auth": {"apiKey": "s", "user": "u"}, "a": 1}), json!({"auth": {"user": "u"}, "a": 1})),
        (json!({"auth": "s"}), json!({"auth": "s"})),
        (json!({"auth": {}}), json!({"auth": {}})),
        (json!({"auth": {"apiKey": {"deep": "s"}}}), json!({})),
        (json!([]), json!([])),
    ];
    for (mut metadata, expected) in cases {
        strip(&mut metadata, &["auth.apiKey".to_owned()]);
        assert_eq!(metadata, expected);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i64>().prop_map(|n| json!(n)),
        "[ -~]{0,12}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let names = prop_oneof![
            Just("properties".to_owned()),
            Just("allOf".to_owned()),
            Just("format".to_owned()),
            Just("$secret".to_owned()),
            Just("x-leasehold-secret".to_owned()),
            "[a-c]{1}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_configuration_makes_the_rules_fail(schema in any_json(), mut config in any_json()) {
        let paths = paths(&schema);
        if let Ok(fields) = fields(&schema) {
            prop_assert_eq!(fields.iter().map(|field| field.path.clone()).collect::<Vec<_>>(), paths.clone());
            let _ = Stored::all(&config, &fields);
        }
        let _ = for_validation(&config, &paths);
        strip(&mut config, &paths);
        for path in &paths {
            prop_assert!(at(&config, path).is_none());
        }
    }
}
