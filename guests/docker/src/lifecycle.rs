//! From the creation of a container to its end.

use crate::config::{Config, Pull};
use crate::container::{self, labels, lease, metadata, Container, Metadata, CREATION};
use crate::engine::{done, Engine, Refused};
use crate::exec;
use crate::Docker;
use leasehold_sdk::http::{encoded, Method};
use leasehold_sdk::{
    cleanup, destroy_failed, failed, gone, receipt, stop_failed, time, transient, AcquireError, AcquireLease,
    AcquireRequest, AcquisitionDiagnostic, AcquisitionPhase, Call, DestroyError, DestroyLease, DestroyTarget,
    Disposition, Error, FindLease, Finding, Lease, RealizeWorkspace, Receipt, ReleaseLease, ReleaseRequest,
    ResumeLease, ResumeRequest, Retention, StopError, StopLease, TransientCategory, Workspace,
    WorkspaceRequest,
};
use serde::Deserialize;

/// Seconds a container has to end by itself; its keeper ends at once.
const STOP_SECONDS: u32 = 5;

/// How long a removal that somebody else began is waited for, in milliseconds.
const REMOVAL_MS: u64 = 10_000;

/// A step of an acquisition: how far it had come, and what may be left.
struct Acquiring<'a> {
    call: &'a Call<Config>,
    creation: &'a str,
    began: u64,
    phase: AcquisitionPhase,
    seen: Option<String>,
    /// Whether the engine was asked to make something.
    asked: bool,
}

impl AcquireLease for Docker {
    fn acquire(call: &Call<Config>, request: AcquireRequest) -> Result<Lease, AcquireError> {
        let creation = request.creation_name.as_str();
        let mut acquiring = Acquiring {
            call,
            creation,
            began: time::ticks_ms(),
            phase: AcquisitionPhase::Create,
            seen: None,
            asked: false,
        };
        let made = acquiring.all(&request);
        made.map_err(|error| acquiring.failed(error))
    }
}

impl Acquiring<'_> {
    fn all(&mut self, request: &AcquireRequest) -> Result<Lease, Error> {
        let engine = Engine::of(&self.call.config);
        let config = &self.call.config;
        let user = self.image_user(engine)?;
        let id = self.made(engine, &user, request.requested_expires_at_ms)?;
        self.seen = Some(id.clone());
        self.phase = AcquisitionPhase::Start;
        started(engine, &id)?;
        // It may have ended at once, in an image without what keeps it alive.
        let podman = engine.running(&id)?.podman;
        self.phase = AcquisitionPhase::Setup;
        let cwd = request.requested_cwd.as_deref().unwrap_or_else(|| config.workspace());
        // The engine makes the working directory, for root.
        if !user.is_empty() || cwd != config.workspace() {
            exec::directory(engine, &id, cwd, &user)?;
        }
        let metadata = Metadata { creation: self.creation.into(), remote_cwd: cwd.into(), user, podman };
        let mut lease = lease(&id, metadata);
        // The keeper ends then, and everything in the container with it.
        lease.expires_at_ms = request.requested_expires_at_ms.map(|ms| ms / 1_000 * 1_000);
        Ok(lease)
    }

    /// The user that commands run as, nothing for root. Gets the image where it is not there.
    fn image_user(&self, engine: Engine<'_>) -> Result<String, Error> {
        let config = &self.call.config;
        let image = &config.image;
        let mut found = engine.image(image)?;
        match config.pull {
            Pull::Never if found.is_none() => {
                let message = format!("the image `{image}` is not there, and `pull` is `never`");
                return Err(failed("image_missing", message));
            }
            Pull::Always => {
                engine.pull(image)?;
                found = engine.image(image)?;
            }
            Pull::Missing if found.is_none() => {
                engine.pull(image)?;
                found = engine.image(image)?;
            }
            _ => {}
        }
        let lost = || failed("image_missing", format!("the image `{image}` was pulled and is not there"));
        let of_image = found.ok_or_else(lost)?;
        let user = config.user.clone().unwrap_or(of_image);
        Ok(if matches!(user.as_str(), "0" | "root" | "0:0" | "root:root") { String::new() } else { user })
    }

    /// The id of a container of this creation name: a new one, or the one an earlier attempt made.
    fn made(&mut self, engine: Engine<'_>, user: &str, expires_at_ms: Option<u64>) -> Result<String, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Created {
            id: String,
        }
        let name = container::name(self.creation);
        let body = container::specification(self.call, self.creation, user, expires_at_ms);
        self.asked = true;
        match engine.post(&format!("/containers/create?name={}", encoded(&name)), &body)? {
            Ok(answer) => Ok(answer.json::<Created>()?.id),
            // Engines say in different ways that a name is taken, so the name itself is asked for.
            Err(refused) => match engine.inspect(&name)? {
                Some(found) => self.adopted(found),
                None => Err(refused.into_error("creating a container")),
            },
        }
    }

    /// One that has the name is taken up when an earlier attempt of ours made it, and left alone otherwise.
    fn adopted(&self, found: Container) -> Result<String, Error> {
        match found.creation() {
            Some(creation) if creation == self.creation => Ok(found.id),
            _ => Err(failed(
                "name_taken",
                format!(
                    "a container that is not ours has the name `{}`; rename or remove it",
                    container::name(self.creation)
                ),
            )),
        }
    }

    fn failed(&self, error: Error) -> AcquireError {
        let engine = Engine::of(&self.call.config);
        let labels = labels(self.call, self.creation);
        // A request that did not arrive made nothing, and neither did one that was refused for good.
        let harmless = match &error {
            Error::Transient(fault) => fault.category == TransientCategory::Network,
            Error::Failed(fault) => fault.code == "name_taken",
            Error::InvalidConfig(_) | Error::Denied(_) => true,
            Error::Gone => false,
        };
        let nothing_made = self.seen.is_none() && (!self.asked || harmless);
        let record = cleanup(self.creation, self.seen.as_deref(), engine.url(), &labels);
        AcquireError {
            error,
            diagnostic: Some(AcquisitionDiagnostic {
                phase: self.phase,
                elapsed_ms: time::ticks_ms().saturating_sub(self.began),
                budget_ms: self.call.context.remaining_ms,
                started: self.phase == AcquisitionPhase::Setup,
            }),
            cleanup: (!nothing_made).then_some(record),
        }
    }
}

/// Starts a container that does not run.
fn started(engine: Engine<'_>, id: &str) -> Result<(), Error> {
    match engine.tell(id, "start")? {
        Ok(_) => Ok(()),
        Err(refused) => Err(refused.of_container("starting a container")),
    }
}

impl FindLease for Docker {
    fn find(call: &Call<Config>, creation_name: String) -> Result<Finding, Error> {
        let engine = Engine::of(&call.config);
        let Some((id, state)) = found(engine, &creation_name)? else { return Ok(Finding::Absent) };
        Ok(match state.as_str() {
            "running" | "paused" | "exited" | "stopped" => {
                let Some(container) = engine.inspect(&id)? else { return Ok(Finding::Absent) };
                let metadata = Metadata {
                    user: container.user().into(),
                    podman: container.podman,
                    remote_cwd: call.config.workspace().into(),
                    creation: creation_name,
                };
                Finding::Started(lease(&id, metadata))
            }
            // Nobody starts it but whoever made it, and removes it but whoever began to.
            _ => Finding::Unusable(id),
        })
    }
}

/// Id and state of the container with this creation name.
fn found(engine: Engine<'_>, creation: &str) -> Result<Option<(String, String)>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Listed {
        id: String,
        state: String,
    }
    let filters = serde_json::json!({ "label": [format!("{CREATION}={creation}")] }).to_string();
    let path = format!("/containers/json?all=true&filters={}", encoded(&filters));
    let listed: Vec<Listed> = match engine.get(&path)? {
        Ok(answer) => answer.json()?,
        Err(refused) => return Err(refused.into_error("listing containers")),
    };
    Ok(listed.into_iter().next().map(|listed| (listed.id, listed.state)))
}

impl ResumeLease for Docker {
    fn resume(call: &Call<Config>, request: ResumeRequest) -> Result<Lease, Error> {
        let engine = Engine::of(&call.config);
        let id = &request.lease.id;
        let container = engine.inspect(id)?.ok_or_else(gone)?;
        let known = metadata(&request.lease);
        let same = container.id == *id
            && known.as_ref().is_some_and(|known| container.creation() == Some(known.creation.as_str()));
        if !same {
            let message = "the container of this id is not the one that was leased";
            return Err(failed("identity", message));
        }
        if container.state.paused {
            if let Err(refused) = engine.tell(id, "unpause")? {
                return Err(refused.of_container("continuing a container"));
            }
        } else if !container.state.running {
            started(engine, id)?;
        }
        engine.running(id)?;
        let mut resumed = request.lease.clone();
        if let (Some(cwd), Some(known)) = (&request.requested_cwd, known) {
            exec::directory(engine, id, cwd, &known.user)?;
            resumed.metadata = lease(id, Metadata { remote_cwd: cwd.clone(), ..known }).metadata;
        }
        Ok(resumed)
    }
}

impl ReleaseLease for Docker {
    fn release(call: &Call<Config>, request: ReleaseRequest) -> Result<Receipt, Error> {
        let engine = Engine::of(&call.config);
        match request.retention {
            Retention::Ephemeral => destroyed(engine, &request.lease.id),
            Retention::Reuse => stopped(engine, &request.lease.id),
        }
    }
}

impl DestroyLease for Docker {
    fn destroy(call: &Call<Config>, target: DestroyTarget) -> Result<Receipt, DestroyError> {
        let engine = Engine::of(&call.config);
        let mut record = match target {
            DestroyTarget::Lease(lease) => return destroyed(engine, &lease.id).map_err(destroy_failed),
            DestroyTarget::Abandoned(record) => record,
        };
        if let Some(id) = &record.observed_id {
            return destroyed(engine, id).map_err(destroy_failed);
        }
        let later = |message: &str| transient(TransientCategory::Unavailable, message);
        match found(engine, &record.creation_name).map_err(destroy_failed)? {
            // The host stores what was seen before anything is deleted, and calls again.
            Some((id, _)) => {
                record.observed_id = Some(id);
                let error = later("the container was found; call again to delete it");
                Err(DestroyError { error, cleanup: Some(record) })
            }
            None => Err(destroy_failed(later("no container has this creation name now"))),
        }
    }
}

impl StopLease for Docker {
    fn stop(call: &Call<Config>, lease: Lease) -> Result<Receipt, StopError> {
        stopped(Engine::of(&call.config), &lease.id).map_err(stop_failed)
    }
}

impl RealizeWorkspace for Docker {
    fn realize(call: &Call<Config>, request: WorkspaceRequest) -> Result<Workspace, Error> {
        let engine = Engine::of(&call.config);
        let cwd = request.path.unwrap_or_else(|| call.config.workspace().to_owned());
        let user = metadata(&request.lease).map(|known| known.user).unwrap_or_default();
        exec::directory(engine, &request.lease.id, &cwd, &user)?;
        Ok(Workspace { cwd, metadata: None })
    }
}

fn stopped(engine: Engine<'_>, id: &str) -> Result<Receipt, Error> {
    match engine.tell(id, &format!("stop?t={STOP_SECONDS}"))? {
        Ok(_) => Ok(receipt(id, Disposition::Stopped)),
        Err(refused) => Err(refused.of_container("stopping a container")),
    }
}

fn destroyed(engine: Engine<'_>, id: &str) -> Result<Receipt, Error> {
    let path = format!("/containers/{}?force=true&v=true", encoded(id));
    match done(engine.act(Method::Delete, &path))? {
        Ok(_) => Ok(receipt(id, Disposition::Destroyed)),
        Err(Refused { status: 404, .. }) => Ok(receipt(id, Disposition::AlreadyGone)),
        Err(refused) => {
            // Somebody else may be removing it; only that it is gone is a proof.
            let until = time::ticks_ms() + REMOVAL_MS;
            while time::ticks_ms() < until {
                if engine.inspect(id)?.is_none() {
                    return Ok(receipt(id, Disposition::Destroyed));
                }
                if refused.status != 409 {
                    break;
                }
                time::sleep(50);
            }
            Err(refused.into_error("removing a container"))
        }
    }
}
