//! The provider `local`: every lease is a jail on the host's own machine.
//!
//! The allocation's id is the creation name, so an allocation is found again by the very name the host
//! stored before it asked for it, and asking twice finds the same jail. All isolation is the host's; this
//! guest only says which jail, how large, and what to run in it.

mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package leasehold:local;
            world local {
                import leasehold:host/jail@0.1.0;
                export leasehold:provider/validate-config@0.1.0;
                export leasehold:provider/acquire-lease@0.1.0;
                export leasehold:provider/find-lease@0.1.0;
                export leasehold:provider/resume-lease@0.1.0;
                export leasehold:provider/release-lease@0.1.0;
                export leasehold:provider/destroy-lease@0.1.0;
                export leasehold:provider/stop-lease@0.1.0;
                export leasehold:provider/realize-workspace@0.1.0;
                export leasehold:provider/execute@0.1.0;
                export leasehold:provider/sync-in@0.1.0;
                export leasehold:provider/sync-out@0.1.0;
            }
        ",
        world: "leasehold:local/local",
        generate_all,
    });
}

mod config;
mod errors;
mod lifecycle;
mod work;

/// The provider.
struct Local;

bindings::export!(Local with_types_in bindings);

/// Where the workspace is in every jail.
const WORKSPACE: &str = "/workspace";
