//! Files that are no component, components that want too much, and the cache.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::authority::Permission;
use leasehold_engine::{Allocation, Cache, CacheError, Digest, Engine, EngineOptions, LoadError, Refusal};
use leasehold_tests::{bytes, compiled, engine, engine_with};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use tempfile::TempDir;

/// Nested `depth` deep, each type inside the one before.
fn nested(depth: usize) -> String {
    let types: String = (1..depth).map(|index| format!("(type $t{index} (list $t{}))", index - 1)).collect();
    format!("(component (type $t0 (list u8)) {types} (export \"t\" (type $t{})))", depth - 1)
}

#[test]
fn what_is_no_component_is_refused_with_one_clear_message() {
    let full = bytes("full");
    let cases: &[(&str, Vec<u8>, &str)] = &[
        ("nothing", vec![], "this is no WebAssembly component: the file is empty"),
        (
            "text",
            b"hello".into(),
            "this is no WebAssembly component: it is neither the binary nor the text form",
        ),
        (
            "noise",
            vec![0xff; 100],
            "this is no WebAssembly component: it is neither the binary nor the text form",
        ),
        (
            "zeros",
            vec![0; 100],
            "this is no WebAssembly component: it is neither the binary nor the text form",
        ),
        (
            "the magic alone",
            b"\0asm".into(),
            "this is no WebAssembly component: it ends after the first bytes",
        ),
        ("a core module", wat::parse_str("(module)").unwrap(), "this is a core module, not a component"),
        ("a core module as text", b"(module)".into(), "this is a core module, not a component"),
        ("text with a mistake", b"(component (typo))".into(), "the text form has a mistake: "),
        ("cut in the middle", full[..full.len() / 2].into(), "the component is not valid here: "),
        ("cut at the end", full[..full.len() - 1].into(), "the component is not valid here: "),
        ("types nested too deep", nested(10_000).into(), "the component is not valid here: "),
        ("a version of the future", b"\0asm\x0e\0\x01\0".into(), "the component is not valid here: "),
    ];
    for (what, bytes, expected) in cases {
        let error = engine().load(bytes).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{what}: {error}");
        assert!(error.len() < 1_200, "{what}: {} bytes of message", error.len());
    }
}

#[test]
fn types_nested_within_the_bound_are_loaded() {
    engine().load(nested(50).as_bytes()).unwrap();
}

#[test]
fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("zeros.wasm");
    fs::File::create(&path).unwrap().set_len(200 << 20).unwrap();
    let error = engine().load_file(&path).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { bytes: 209_715_200 }), "{error}");
    let missing = engine().load_file(&directory.path().join("missing.wasm")).unwrap_err();
    assert!(matches!(missing, LoadError::Unreadable { .. }), "{missing}");
}

#[test]
fn precompiled_code_is_never_taken_from_a_file() {
    let directory = TempDir::new().unwrap();
    let (cache, entry) = cached(&directory);
    let code = fs::read(entry).unwrap();
    // The entry's header is 80 bytes; what follows is what the engine itself would load.
    let error = engine_with(cache).load(&code[80..]).unwrap_err();
    assert!(matches!(error, LoadError::Precompiled), "{error}");
}

#[test]
fn every_import_that_is_not_covered_is_named_with_the_permission_that_would_cover_it() {
    let error = compiled("dummy-full").link(&BTreeSet::from([Permission::State])).unwrap_err();
    insta::assert_snapshot!(error, @r"
    the component wants what it may not have:
      `leasehold:host/state@0.1.0` is not in this build of the host; use a build that has it
      `leasehold:host/jail@0.1.0` needs the permission `jail`; declare it, and grant it with `leasehold provider grant PROVIDER jail`
      `leasehold:host/connect@0.1.0` needs the permission `tcp` or `unix-http`; declare it, and grant it with `leasehold provider grant PROVIDER tcp=NAME=HOST:PORT` or `leasehold provider grant PROVIDER unix-http=NAME=/PATH`
      `leasehold:host/egress-status@0.1.0` is not in this build of the host; use a build that has it
      `wasi:clocks/monotonic-clock@0.2.12` needs the permission `time`; declare it, and grant it with `leasehold provider grant PROVIDER time`
      `wasi:clocks/wall-clock@0.2.12` needs the permission `time`; declare it, and grant it with `leasehold provider grant PROVIDER time`
      `wasi:random/random@0.2.12` needs the permission `random`; declare it, and grant it with `leasehold provider grant PROVIDER random`
    ");
}

#[test]
fn imports_that_no_permission_covers_are_refused_whatever_is_granted() {
    let everything = BTreeSet::from_iter(Permission::ALL.iter().copied());
    for (import, expected) in [
        (
            "wasi:sockets/instance-network@0.2.0",
            Refusal::Never {
                import: "wasi:sockets/instance-network@0.2.0".into(),
                instead: "use `wasi:http/outgoing-handler` or `leasehold:host/connect`",
            },
        ),
        ("somebody:else/thing", Refusal::Unknown { import: "somebody:else/thing".into() }),
        (
            "leasehold:host/unheard-of@0.1.0",
            Refusal::Unknown { import: "leasehold:host/unheard-of@0.1.0".into() },
        ),
    ] {
        let text = format!("(component (import \"{import}\" (instance)))");
        let error = engine().load(text.as_bytes()).unwrap().link(&everything).unwrap_err();
        assert_eq!(error.refusals, [expected]);
    }
}

#[test]
fn an_import_with_another_type_is_refused_with_the_place_of_the_difference() {
    let text = "(component (import \"leasehold:host/log@0.1.0\" (instance
        (type $l (enum \"trace\" \"debug\" \"info\" \"warn\" \"error\"))
        (export \"level\" (type $level (eq $l)))
        (export \"write\" (func (param \"level\" $level) (param \"message\" string))))))";
    let error = engine().load(text.as_bytes()).unwrap().link(&BTreeSet::new()).unwrap_err();
    insta::assert_snapshot!(error, @r"
    the component wants what it may not have:
      `leasehold:host/log@0.1.0` has another type than the host's: log.write.params.fields: expected a parameter of type list<tuple<string, string>>, found nothing; build the component against this host's interfaces
    ");
}

#[test]
fn a_wasi_interface_of_another_type_is_refused_when_it_is_linked() {
    let text = "(component (import \"wasi:io/poll@0.2.0\" (instance (export \"poll\" (func (result u32))))))";
    let error = engine().load(text.as_bytes()).unwrap().link(&BTreeSet::new()).unwrap_err();
    assert!(matches!(error.refusals[..], [Refusal::Unfit { .. }]), "{error}");
    assert!(error.to_string().contains("wasi:io/poll@0.2.0"), "{error}");
}

#[test]
fn grants_that_nothing_uses_are_reported() {
    let granted = BTreeSet::from([Permission::Time, Permission::Random, Permission::Http]);
    let provider = compiled("full").link(&granted).unwrap();
    assert_eq!(*provider.unused_grants(), BTreeSet::from([Permission::Random, Permission::Http]));
}

/// A cache that holds one entry, and the entry's path.
fn cached(directory: &TempDir) -> (Cache, PathBuf) {
    let cache = Cache::open(&directory.path().join("cache")).unwrap();
    engine_with(cache.clone()).load(&bytes("minimal")).unwrap();
    let entries = fs::read_dir(cache.directory()).unwrap().map(|entry| entry.unwrap().path());
    let code: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "code")).collect();
    assert_eq!(code.len(), 1, "{code:?}");
    let entry = code[0].clone();
    (cache, entry)
}

#[test]
fn an_entry_is_loaded_without_compiling_and_says_the_same_of_the_component() {
    let directory = TempDir::new().unwrap();
    let (cache, _) = cached(&directory);
    let component = bytes("minimal");
    let loaded = engine_with(cache).load_cached(Digest::of(&component)).unwrap();
    assert_eq!(loaded.component_bytes(), component.len() as u64);
    assert_eq!(loaded.inspection().verification(), compiled("minimal").inspection().verification());
}

#[test]
fn only_the_owner_can_read_the_cache() {
    let directory = TempDir::new().unwrap();
    let (cache, entry) = cached(&directory);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(cache.directory()), 0o700);
    assert_eq!(mode(&entry), 0o600);
    assert_eq!(mode(&cache.directory().join("key")), 0o600);
    for open in [0o770, 0o707, 0o755] {
        fs::set_permissions(cache.directory(), fs::Permissions::from_mode(open)).unwrap();
        let error = Cache::open(cache.directory()).unwrap_err();
        assert!(matches!(error, CacheError::Unsafe { .. }), "{open:o}: {error}");
    }
}

#[test]
fn a_directory_reached_through_a_link_or_a_file_in_its_place_is_refused() {
    let directory = TempDir::new().unwrap();
    let (cache, _) = cached(&directory);
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(cache.directory(), &link).unwrap();
    assert!(matches!(Cache::open(&link).unwrap_err(), CacheError::Unsafe { .. }));
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Cache::open(&file).is_err());
}

#[test]
fn a_tampered_entry_is_refused_removed_and_compiled_again() {
    let component = bytes("minimal");
    let digest = Digest::of(&component);
    for (what, damage) in [
        ("one byte of code changed", (|bytes: &mut Vec<u8>| bytes[5_000] ^= 1) as fn(&mut Vec<u8>)),
        ("the header changed", |bytes| bytes[0] ^= 1),
        ("cut short", |bytes| bytes.truncate(1_000)),
        ("emptied", Vec::clear),
        ("something behind it", |bytes| bytes.push(0)),
    ] {
        let directory = TempDir::new().unwrap();
        let (cache, entry) = cached(&directory);
        let mut content = fs::read(&entry).unwrap();
        damage(&mut content);
        fs::write(&entry, &content).unwrap();

        let engine = engine_with(cache);
        let error = engine.load_cached(digest).unwrap_err();
        assert!(matches!(error, LoadError::Cache(CacheError::Tampered { .. })), "{what}: {error}");
        assert!(!entry.exists(), "{what}: the entry is still there");
        assert!(matches!(engine.load_cached(digest), Err(LoadError::Cache(CacheError::Missing { .. }))));

        fs::write(&entry, &content).unwrap();
        engine.load(&component).unwrap();
        engine.load_cached(digest).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[test]
fn an_entry_of_another_cache_is_not_taken() {
    let (mine, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (cache, entry) = cached(&mine);
    let (_, foreign) = cached(&other);
    fs::copy(foreign, &entry).unwrap();
    let loaded = engine_with(cache).load_cached(Digest::of(&bytes("minimal")));
    assert!(matches!(loaded, Err(LoadError::Cache(CacheError::Tampered { .. }))));
}

#[test]
fn processes_that_open_a_fresh_cache_together_agree_on_its_key() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("cache");
    std::thread::scope(|scope| {
        let openings: Vec<_> = (0..16).map(|_| scope.spawn(|| Cache::open(&path).unwrap())).collect();
        openings.into_iter().for_each(|opening| drop(opening.join().unwrap()));
    });
    let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["key"], "drafts stayed behind");
}

#[tokio::test]
async fn an_engine_without_a_pool_runs_the_same() {
    let options = EngineOptions { allocation: Some(Allocation::OnDemand), ..EngineOptions::default() };
    let engine = Engine::new(options).unwrap();
    let provider = engine.load(&bytes("minimal")).unwrap().link(&BTreeSet::from([Permission::Time])).unwrap();
    let acquire = leasehold_engine::hook::AcquireLease { request: leasehold_tests::act::acquire("name-1") };
    let finished = provider.call(acquire, leasehold_tests::context("{}"), &Default::default()).await;
    finished.answer.unwrap().unwrap();
}

/// Two components in one, each with a memory of its own, that pass a string: what composing tools make.
const COMPOSED: &str = r#"(component
  (component $a
    (core module $m (memory (export "m") 1) (func (export "f") (param i32 i32))
      (func (export "r") (param i32 i32 i32 i32) (result i32) unreachable))
    (core instance $i (instantiate $m))
    (func (export "f") (param "x" string)
      (canon lift (core func $i "f") (memory $i "m") (realloc (func $i "r")))))
  (component $b
    (import "f" (func $f (param "x" string)))
    (core module $l (memory (export "m") 1))
    (core instance $l (instantiate $l))
    (core func $g (canon lower (func $f) (memory $l "m")))
    (core module $m (import "" "f" (func (param i32 i32))))
    (core instance (instantiate $m (with "" (instance (export "f" (func $g)))))))
  (instance $a (instantiate $a))
  (instance (instantiate $b (with "f" (func $a "f")))))"#;

#[test]
fn a_composition_of_components_that_pass_values_in_memory_is_loaded() {
    engine().load(COMPOSED.as_bytes()).unwrap();
}

#[test]
fn a_component_with_very_many_resources_is_read_in_no_time() {
    let resources: String = (0..900).map(|n| format!("(export \"r{n}\" (type (sub resource)))")).collect();
    let text = format!("(component (import \"wasi:io/streams@0.2.0\" (instance {resources})))");
    engine().load(text.as_bytes()).unwrap();
}

#[test]
fn a_key_or_an_entry_that_others_could_have_written_is_not_used() {
    let directory = TempDir::new().unwrap();
    let (cache, entry) = cached(&directory);
    let key = cache.directory().join("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(Cache::open(cache.directory()), Err(CacheError::Io { .. })));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&entry, fs::Permissions::from_mode(0o620)).unwrap();
    let cache = Cache::open(cache.directory()).unwrap();
    let loaded = engine_with(cache).load_cached(Digest::of(&bytes("minimal")));
    assert!(matches!(loaded, Err(LoadError::Cache(CacheError::Io { .. }))), "{loaded:?}");
}

#[test]
fn a_key_of_another_length_a_link_and_a_pipe_are_refused_and_nothing_waits_for_them() {
    for damage in ["short", "long", "link", "pipe"] {
        let directory = TempDir::new().unwrap();
        let (cache, _) = cached(&directory);
        let key = cache.directory().join("key");
        let content = fs::read(&key).unwrap();
        match damage {
            "short" => fs::write(&key, &content[..31]).unwrap(),
            "long" => fs::write(&key, [content.as_slice(), b"x"].concat()).unwrap(),
            "link" => {
                fs::rename(&key, directory.path().join("elsewhere")).unwrap();
                std::os::unix::fs::symlink(directory.path().join("elsewhere"), &key).unwrap();
            }
            _ => {
                fs::remove_file(&key).unwrap();
                assert!(std::process::Command::new("mkfifo").arg(&key).status().unwrap().success());
            }
        }
        assert!(matches!(Cache::open(cache.directory()), Err(CacheError::Io { .. })), "{damage}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_component_is_refused_without_waiting() {
    let directory = TempDir::new().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(engine().load_file(&pipe), Err(LoadError::Unreadable { .. })));
}

#[test]
fn of_several_compatible_versions_the_one_is_judged_that_will_be_called() {
    use leasehold_contract::{Method, Verdict};
    let text = r#"(component
        (component $none)
        (instance $none (instantiate $none))
        (export "leasehold:provider/delete-template@0.1.3" (instance $none))
        (export "leasehold:provider/delete-template@0.1.9" (instance $none)))"#;
    let compiled = engine().load(text.as_bytes()).unwrap();
    let inspection = compiled.inspection();
    assert_eq!(inspection.verification().verdict(Method::DeleteTemplate), &Verdict::Absent);
    assert_eq!(inspection.unknown_exports(), ["leasehold:provider/delete-template@0.1.3"]);
}
