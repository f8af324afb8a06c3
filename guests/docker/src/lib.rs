//! The provider `docker`: every lease is a container of an engine that speaks Docker's API.
//!
//! A container is found again by the label that holds its creation name, and its name is made of that name too,
//! so that the engine itself refuses a second one. Nothing is trusted that Docker and Podman say differently:
//! the exit code of a command is in a file that the sandbox writes, a stream that ends is not taken for a command
//! that ended, and an archive is unpacked beside its target.

mod config;
mod container;
mod engine;
mod exec;
mod execute;
mod lifecycle;
mod probe;
mod pull;
mod sync;

use leasehold_sdk::{export, Provider};

/// The provider.
struct Docker;

impl Provider for Docker {
    type Config = config::Config;

    fn check(config: &config::Config) -> Result<(), leasehold_sdk::Error> {
        config.check()
    }
}

export!(
    Docker: ValidateConfig, Probe, AcquireLease, FindLease, ResumeLease, ReleaseLease, DestroyLease,
    StopLease, RealizeWorkspace, Execute, SyncIn, SyncOut
);
