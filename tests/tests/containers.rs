//! The provider `docker` by its hooks, with both engines: names, adoption, identity, ends.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use leasehold_engine::Limits;
use leasehold_engine::bindings::exports::acquire_lease::AcquireError;
use leasehold_engine::bindings::exports::destroy_lease::DestroyTarget;
use leasehold_engine::bindings::exports::execute::Exit;
use leasehold_engine::bindings::exports::find_lease::Finding;
use leasehold_engine::bindings::exports::resume_lease::ResumeRequest;
use leasehold_engine::bindings::imports::transfer::{Entry, EntryKind, TransferError};
use leasehold_engine::bindings::port::{Source, SourceContent};
use leasehold_engine::bindings::sync_types::MappingKind;
use leasehold_engine::bindings::types::{CleanupRecord, Disposition, Error, Lease};
use leasehold_engine::call::stream::{Output, input_bytes};
use leasehold_engine::hook::{
    AcquireLease, DestroyLease, Execute, FindLease, Hook, Inbound, InboundOperation, ResumeLease, StopLease,
    SyncIn,
};
use leasehold_tests::act::{acquire, command};
use leasehold_tests::engines::{self, Docker, Engine, IMAGE, Kind};
use serde_json::json;
use tokio::runtime::Runtime;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynInputStream, InputStream, Pollable, StreamError, StreamResult};

/// The provider with one engine.
struct Bench<'a> {
    docker: Docker,
    engine: &'a Engine,
    runtime: Runtime,
}

fn with_both(test: fn(&Bench<'_>)) {
    for kind in [Kind::Podman, Kind::Docker] {
        engines::with(kind, Engine::shared, |engine| {
            let bench = Bench { docker: Docker::of(engine), engine, runtime: Runtime::new().unwrap() };
            test(&bench);
        });
    }
}

impl Bench<'_> {
    fn call<H: Hook>(&self, invocation: &str, hook: H) -> H::Answer {
        self.runtime.block_on(self.docker.call(invocation, hook)).answer.unwrap()
    }

    fn acquired(&self, name: &str) -> Result<Lease, Box<AcquireError>> {
        self.call("acquire", AcquireLease { request: acquire(name) }).map_err(Box::new)
    }

    fn found(&self, name: &str) -> Finding {
        self.call("find", FindLease { creation_name: name.into() }).unwrap()
    }

    fn resumed(&self, lease: &Lease) -> Result<Lease, Error> {
        let request = ResumeRequest { lease: lease.clone(), requested_cwd: None };
        self.call("resume", ResumeLease { request })
    }

    fn destroyed(&self, lease: &Lease) -> Disposition {
        let hook = DestroyLease { target: DestroyTarget::Lease(lease.clone()) };
        let receipt = self.call("destroy", hook).unwrap();
        assert_eq!(receipt.lease_id, lease.id);
        receipt.state
    }

    fn ran(&self, invocation: &str, lease: &Lease, argv: &[&str]) -> (Result<Exit, Error>, String) {
        let (output, error) = (Output::new(&Limits::default()), Output::new(&Limits::default()));
        let mut hook: Execute = command(argv, &output, &error);
        hook.request.lease = lease.clone();
        hook.input = input_bytes(&b""[..]);
        (self.call(invocation, hook).map(|result| result.exit), output.text())
    }

    /// Makes something with the engine itself; its id.
    fn made(&self, name: &str, labels: &serde_json::Value) -> String {
        let body = json!({
            "Image": IMAGE, "Cmd": ["sleep", "4321"], "WorkingDir": "/workspace", "Labels": labels,
            "HostConfig": { "NetworkMode": "none", "Tmpfs": { "/run/leasehold": "mode=1777" } },
        });
        let answer = self.engine.ask("POST", &format!("/v1.41/containers/create?name={name}"), Some(&body));
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["Id"].as_str().unwrap().to_owned()
    }

    fn removed(&self, id: &str) {
        let path = format!("/v1.41/containers/{id}?force=true&v=true");
        assert_eq!(self.engine.ask("DELETE", &path, None).status, 204);
    }
}

fn code(error: &Error) -> &str {
    match error {
        Error::Failed(fault) => &fault.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_asked_for_twice_is_one_container_and_is_found_by_it() {
    with_both(|bench| {
        let name = "twice";
        assert!(matches!(bench.found(name), Finding::Absent));
        let first = bench.acquired(name).unwrap();
        let second = bench.acquired(name).unwrap();
        assert_eq!(first.id, second.id);
        assert!(matches!(bench.found(name), Finding::Started(lease) if lease.id == first.id));
        assert_eq!(bench.destroyed(&first), Disposition::Destroyed);
        assert_eq!(bench.destroyed(&first), Disposition::AlreadyGone);
        assert!(matches!(bench.found(name), Finding::Absent));
        assert!(matches!(bench.resumed(&first), Err(Error::Gone)));
    });
}

#[test]
fn one_that_was_made_and_never_started_is_adopted_and_started() {
    with_both(|bench| {
        // A host that died between the two.
        let labels = json!({ "leasehold.creation": "half" });
        let id = bench.made("leasehold-half", &labels);
        assert!(matches!(bench.found("half"), Finding::Unusable(found) if found == id));
        let lease = bench.acquired("half").unwrap();
        assert_eq!(lease.id, id);
        assert!(matches!(bench.ran("call-1", &lease, &["true"]), (Ok(Exit::Exited(0)), _)));
        assert_eq!(bench.destroyed(&lease), Disposition::Destroyed);
    });
}

#[test]
fn a_name_that_somebody_else_has_is_refused_and_their_container_is_left_alone() {
    with_both(|bench| {
        for labels in [json!({}), json!({ "leasehold.creation": "another" })] {
            let id = bench.made("leasehold-theirs", &labels);
            let refused = bench.acquired("theirs").unwrap_err();
            assert_eq!(code(&refused.error), "name_taken");
            assert!(refused.cleanup.is_none(), "nothing of ours is left");
            let there = bench.engine.ask("GET", &format!("/v1.41/containers/{id}/json"), None);
            assert_eq!(there.status, 200);
            bench.removed(&id);
        }
    });
}

#[test]
fn a_lease_is_resumed_only_in_the_container_that_was_leased() {
    with_both(|bench| {
        let lease = bench.acquired("same").unwrap();
        let (ended, _) = bench.ran("call-1", &lease, &["sh", "-c", "echo kept > file"]);
        assert!(matches!(ended, Ok(Exit::Exited(0))));
        let stopped = bench.call("stop", StopLease { lease: lease.clone() }).unwrap();
        assert_eq!(stopped.state, Disposition::Stopped);
        // Once more is the same.
        assert_eq!(
            bench.call("stop", StopLease { lease: lease.clone() }).unwrap().state,
            Disposition::Stopped
        );
        let (refused, _) = bench.ran("call-2", &lease, &["true"]);
        assert_eq!(code(&refused.unwrap_err()), "sandbox_stopped");
        let again = bench.resumed(&lease).unwrap();
        assert_eq!(again.id, lease.id);
        let (ended, output) = bench.ran("call-3", &again, &["cat", "file"]);
        assert!(matches!(ended, Ok(Exit::Exited(0))) && output == "kept\n", "{output}");

        // Held from outside, it is continued.
        let pause = bench.engine.ask("POST", &format!("/v1.41/containers/{}/pause", lease.id), None);
        assert_eq!(pause.status, 204);
        let (refused, _) = bench.ran("call-4", &lease, &["true"]);
        assert_eq!(code(&refused.unwrap_err()), "sandbox_paused");
        bench.resumed(&lease).unwrap();
        assert!(matches!(bench.ran("call-5", &lease, &["true"]).0, Ok(Exit::Exited(0))));

        let other = bench.acquired("other").unwrap();
        let mixed = Lease { id: other.id.clone(), ..lease.clone() };
        assert_eq!(code(&bench.resumed(&mixed).unwrap_err()), "identity");
        for lease in [lease, other] {
            assert_eq!(bench.destroyed(&lease), Disposition::Destroyed);
        }
    });
}

#[test]
fn what_a_failed_acquisition_left_is_seen_before_it_is_destroyed() {
    with_both(|bench| {
        let lease = bench.acquired("left").unwrap();
        let record = CleanupRecord {
            creation_name: "left".into(),
            observed_id: None,
            account_fingerprint: "0".repeat(64),
            labels: vec![],
        };
        let hook = DestroyLease { target: DestroyTarget::Abandoned(record) };
        let seen = bench.call("destroy", hook).unwrap_err().cleanup.unwrap();
        assert_eq!(seen.observed_id.as_deref(), Some(lease.id.as_str()));
        assert!(matches!(bench.found("left"), Finding::Started(_)), "nothing was deleted yet");
        let hook = DestroyLease { target: DestroyTarget::Abandoned(seen) };
        assert_eq!(bench.call("destroy", hook).unwrap().state, Disposition::Destroyed);
    });
}

/// Content that breaks off in the middle.
struct Broken;

#[async_trait]
impl SourceContent for Broken {
    async fn tar(&mut self) -> Result<DynInputStream, TransferError> {
        // The header of a file that is never there.
        let mut header = tar::Header::new_ustar();
        header.set_path("half").unwrap();
        header.set_mode(0o644);
        header.set_size(1 << 20);
        header.set_cksum();
        Ok(Box::new(Pieces(vec![header.as_bytes().to_vec(), vec![b'x'; 4_000]])))
    }

    async fn next(&mut self) -> Result<Option<(Entry, Option<DynInputStream>)>, TransferError> {
        let entry = Entry { path: String::new(), kind: EntryKind::File(1 << 20), mode: 0o644 };
        Ok(Some((entry, Some(Box::new(Pieces(vec![vec![b'x'; 4_000]]))))))
    }

    fn totals(&self) -> (u64, u64) {
        (1, 1 << 20)
    }
}

/// These, and then an error.
struct Pieces(Vec<Vec<u8>>);

#[async_trait]
impl Pollable for Pieces {
    async fn ready(&mut self) {}
}

impl InputStream for Pieces {
    fn read(&mut self, _: usize) -> StreamResult<bytes::Bytes> {
        if self.0.is_empty() {
            return Err(StreamError::LastOperationFailed(wasmtime::format_err!("the disk broke")));
        }
        Ok(self.0.remove(0).into())
    }
}

#[test]
fn an_upload_that_breaks_off_leaves_the_target_as_it_was_and_nothing_beside_it() {
    with_both(|bench| {
        let lease = bench.acquired("broken").unwrap();
        let script = "mkdir tree && echo before > tree/file && echo before > file";
        assert!(matches!(bench.ran("call-1", &lease, &["sh", "-c", script]).0, Ok(Exit::Exited(0))));
        for (kind, target) in
            [(MappingKind::File, "/workspace/file"), (MappingKind::Directory, "/workspace/tree")]
        {
            let source = Source(Box::new(Broken));
            let mapping = Inbound { target_path: target.into(), kind, mode: None, source };
            let operation =
                InboundOperation { operation_id: "one".into(), mappings: vec![mapping], post_upload: vec![] };
            let hook = SyncIn { lease: lease.clone(), operations: vec![operation] };
            assert!(bench.call("sync-1", hook).is_err(), "{target}");
            let (_, listed) = bench.ran("call-2", &lease, &["sh", "-c", "cat file tree/file; ls -A . tree"]);
            assert_eq!(listed, "before\nbefore\n.:\nfile\ntree\n\ntree:\nfile\n", "{target}");
        }
        assert_eq!(bench.destroyed(&lease), Disposition::Destroyed);
    });
}
