//! Containers: how they are made, and what is known of one.

use crate::config::Config;
use crate::engine::{done, Asked, Engine, Refused};
use crate::exec::RECORDS;
use leasehold_sdk::http::{encoded, Method};
use leasehold_sdk::{gone, Call, Error, Lease};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// The label with the creation name: what a container is found by.
pub(crate) const CREATION: &str = "leasehold.creation";

/// The label with the user that commands run as.
const USER: &str = "leasehold.user";

/// What keeps a container alive: a shell that sleeps, takes away orphans, and ends when it is told to or when its
/// time is over. Without a program to sleep with it ends at once.
const KEEPER: &str = "trap 'exit 0' TERM INT
while :; do
  s=3600
  if [ \"$1\" -gt 0 ]; then s=$(($1 - $(date +%s))); [ $s -gt 0 ] || exit 0; [ $s -lt 3600 ] || s=3600; fi
  sleep $s & wait $! ; [ $? -ne 127 ] || exit 3
done";

/// The directory of records in memory: it is the container's, ends with its processes, and is no file of the
/// workspace. Four thousand records fit; a command whose record does not is known by the engine alone.
const RECORDS_OPTIONS: &str = "size=16m,mode=1777";

/// The name of the container that is made under a creation name.
pub(crate) fn name(creation: &str) -> String {
    format!("leasehold-{creation}")
}

/// The labels of a container.
pub(crate) fn labels(call: &Call<Config>, creation: &str) -> Vec<(String, String)> {
    let mut labels = vec![
        (CREATION.to_owned(), creation.to_owned()),
        ("leasehold.environment".to_owned(), call.context.environment_id.clone()),
        ("leasehold.tenant".to_owned(), call.context.tenant.clone()),
    ];
    if let Some(run) = &call.context.run_id {
        labels.push(("leasehold.run".to_owned(), run.clone()));
    }
    labels
}

/// What the engine is asked to make.
pub(crate) fn specification(
    call: &Call<Config>,
    creation: &str,
    user: &str,
    expires_at_ms: Option<u64>,
) -> Value {
    let config = &call.config;
    let expires = expires_at_ms.map_or(0, |ms| ms / 1_000).to_string();
    let mut host = json!({
        "NetworkMode": config.network(),
        "SecurityOpt": ["no-new-privileges"],
        "Tmpfs": { RECORDS: RECORDS_OPTIONS },
    });
    if let Some(bytes) = config.memory_bytes {
        host["Memory"] = bytes.into();
        // The same, for memory and swap together: none is swapped out.
        host["MemorySwap"] = bytes.into();
    }
    if let Some(millis) = config.cpu_millis {
        host["NanoCpus"] = (u64::from(millis) * 1_000_000).into();
    }
    if let Some(processes) = config.processes {
        host["PidsLimit"] = processes.into();
    }
    let mut labels: BTreeMap<_, _> = labels(call, creation).into_iter().collect();
    labels.insert(USER.into(), user.into());
    json!({
        "Image": config.image,
        "Entrypoint": ["/bin/sh"],
        "Cmd": ["-c", KEEPER, "leasehold", expires],
        "WorkingDir": config.workspace(),
        "Labels": labels,
        "StopSignal": "SIGTERM",
        // The keeper is root, and so is what prepares and moves files; commands get their user each. A container
        // of an ordinary user would have no root with any rights in it.
        "User": "0",
        "HostConfig": host,
    })
}

/// A container as the engine describes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Container {
    /// Its id.
    pub(crate) id: String,
    /// Whether the engine is Podman.
    #[serde(skip)]
    pub(crate) podman: bool,
    /// What it is doing.
    pub(crate) state: State,
    config: Labelled,
}

/// What a container is doing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct State {
    /// Whether its processes run.
    #[serde(default)]
    pub(crate) running: bool,
    /// Whether they are held.
    #[serde(default)]
    pub(crate) paused: bool,
    /// Whether its memory was used up, where the engine says so.
    #[serde(default, rename = "OOMKilled")]
    pub(crate) oom_killed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Labelled {
    labels: Option<BTreeMap<String, String>>,
}

impl Container {
    /// The user that commands run as; nothing for root.
    pub(crate) fn user(&self) -> &str {
        self.config.labels.as_ref().and_then(|labels| labels.get(USER)).map_or("", String::as_str)
    }

    /// The name it was created under, when it is one of ours.
    pub(crate) fn creation(&self) -> Option<&str> {
        self.config.labels.as_ref()?.get(CREATION).map(String::as_str)
    }
}

/// What comes back with every later call.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    /// The name it was created under, by which its identity is proved.
    pub(crate) creation: String,
    /// Where commands run when nobody says.
    pub(crate) remote_cwd: String,
    /// The user that commands run as; nothing for root.
    #[serde(default)]
    pub(crate) user: String,
    /// Whether the engine is Podman, of which some things have to be worked around.
    #[serde(default)]
    pub(crate) podman: bool,
}

/// The lease of a container.
pub(crate) fn lease(id: &str, metadata: Metadata) -> Lease {
    leasehold_sdk::lease(id, &metadata)
}

/// What was put into a lease; none when it was not this provider that made it.
pub(crate) fn metadata(lease: &Lease) -> Option<Metadata> {
    serde_json::from_str(lease.metadata.as_deref()?).ok()
}

impl Engine<'_> {
    /// A container by id or name; none when there is none.
    pub(crate) fn inspect(&self, id: &str) -> Result<Option<Container>, Error> {
        match self.get(&format!("/containers/{}/json", encoded(id)))? {
            Ok(answer) => {
                let podman = answer.header("libpod-api-version").is_some();
                let container: Container = answer.json()?;
                Ok(Some(Container { podman, ..container }))
            }
            Err(Refused { status: 404, .. }) => Ok(None),
            Err(refused) => Err(refused.into_error("looking at a container")),
        }
    }

    /// A container that has to be there and running.
    pub(crate) fn running(&self, id: &str) -> Result<Container, Error> {
        let container = self.inspect(id)?.ok_or_else(gone)?;
        match container.state.running {
            true => Ok(container),
            false => Err(stopped(&container)),
        }
    }

    /// Does something with a container: `start`, `stop?t=5`, `unpause`.
    pub(crate) fn tell(&self, id: &str, what: &str) -> Asked<u16> {
        done(self.act(Method::Post, &format!("/containers/{}/{what}", encoded(id))))
    }
}

/// Why nothing can be done in a container that does not run.
pub(crate) fn stopped(container: &Container) -> Error {
    if container.state.oom_killed {
        return out_of_memory();
    }
    leasehold_sdk::failed(
        "sandbox_stopped",
        "the container does not run: it was stopped or killed from outside; take the lease up again, or let it go",
    )
}

/// The error of a bound that was reached.
pub(crate) fn out_of_memory() -> Error {
    leasehold_sdk::failed(
        "limit",
        "out of memory: the kernel ended the command at the sandbox's bound (memoryBytes)",
    )
}
