//! The driver's configuration.

use crate::Docker;
use leasehold_sdk::{invalid_all, AcceptedConfig, Call, Error, ValidateConfig};
use serde::Deserialize;

/// The engine when none is named: the socket that is granted under this name.
const ENGINE: &str = "http://docker";

/// Where the workspace is when nobody says.
const WORKSPACE: &str = "/workspace";

/// The configuration as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Config {
    /// Image to start from.
    #[serde(default)]
    pub(crate) image: String,
    engine: Option<String>,
    /// When the image is pulled.
    #[serde(default)]
    pub(crate) pull: Pull,
    /// Memory of all processes together, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Processes and threads at one time.
    pub(crate) processes: Option<u32>,
    /// Processor time, in thousandths of one processor.
    pub(crate) cpu_millis: Option<u32>,
    network: Option<String>,
    /// User that commands run as.
    pub(crate) user: Option<String>,
    workspace: Option<String>,
    /// What people ask for who know the engine; refused with a reason.
    mounts: Option<serde_json::Value>,
    binds: Option<serde_json::Value>,
    volumes: Option<serde_json::Value>,
    privileged: Option<serde_json::Value>,
    /// The contract's own field: time for a call, which is the host's affair.
    #[serde(rename = "timeoutMs")]
    _timeout_ms: Option<serde_json::Value>,
    /// The contract's own field: the host decides on reuse and says so.
    #[serde(rename = "reuseLease")]
    _reuse_lease: Option<bool>,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Pull {
    /// When the engine does not have it.
    #[default]
    Missing,
    /// Before every new container.
    Always,
    /// Never.
    Never,
}

impl Config {
    /// Everything that its types allow and the provider does not, at once.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut faults = Vec::new();
        let mut fault = |path: &'static str, message: &str| faults.push((path, message.to_owned()));
        if self.image.trim().is_empty() {
            fault("image", "say which image, for example `debian:stable-slim`");
        }
        if self.authority().is_none() {
            fault("engine", "write http://NAME for a granted socket, or http://HOST:PORT; nothing behind it");
        }
        if matches!(self.network(), "host" | "ns") || self.network().contains(':') {
            fault("network", "a network of the machine or of another container is refused; name one of the engine, or leave it out for none");
        }
        let workspace = self.workspace();
        let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !workspace.starts_with('/') || !workspace.split('/').skip(1).all(plain) {
            fault("workspace", "write an absolute path below the root, without `.` and `..`");
        }
        for (path, there) in [("mounts", &self.mounts), ("binds", &self.binds), ("volumes", &self.volumes)] {
            if there.is_some() {
                fault(path, "directories of the machine are never mounted; take files in with a sync");
            }
        }
        if self.privileged.is_some() {
            fault("privileged", "a sandbox with the machine's own rights is none");
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(invalid_all(faults)),
        }
    }

    /// The engine's URL without a path.
    pub(crate) fn engine(&self) -> &str {
        self.engine.as_deref().unwrap_or(ENGINE)
    }

    /// What a connection to the engine is granted under.
    pub(crate) fn authority(&self) -> Option<&str> {
        let authority = self.engine().strip_prefix("http://")?;
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte);
        (!authority.is_empty() && authority.bytes().all(good)).then_some(authority)
    }

    /// The network to join.
    pub(crate) fn network(&self) -> &str {
        self.network.as_deref().unwrap_or("none")
    }

    /// Where the workspace is.
    pub(crate) fn workspace(&self) -> &str {
        self.workspace.as_deref().unwrap_or(WORKSPACE)
    }
}

impl ValidateConfig for Docker {
    fn validate(call: &Call<Config>) -> Result<AcceptedConfig, Error> {
        let mut warnings = Vec::new();
        if call.config.network() != "none" {
            warnings.push(format!(
                "commands reach whatever the network `{}` reaches; nothing of it passes through the host",
                call.config.network()
            ));
        }
        Ok(AcceptedConfig { normalized: None, warnings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let config: Config = serde_json::from_str(text).unwrap();
        match config.check() {
            Ok(()) => vec![],
            Err(Error::InvalidConfig(faults)) => faults.into_iter().map(|fault| fault.path).collect(),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_fault_of_a_configuration_is_told_at_once() {
        assert!(faults(r#"{"image":"a"}"#).is_empty());
        assert!(faults(r#"{"image":"a","engine":"http://127.0.0.1:2375","network":"bridge"}"#).is_empty());
        assert_eq!(faults("{}"), ["image"]);
        assert_eq!(
            faults(
                r#"{"image":"a","engine":"https://x/","network":"host","workspace":"/","mounts":["/:/"]}"#
            ),
            ["engine", "network", "workspace", "mounts"]
        );
        assert_eq!(
            faults(r#"{"image":"a","network":"container:x","privileged":true}"#),
            ["network", "privileged"]
        );
    }
}
