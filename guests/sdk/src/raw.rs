//! The generated half of each method: its types, and the macro that exports it.
//!
//! One world a method, because a world exports all it names: the component has exactly those exports whose
//! macros are called.
#![allow(missing_docs, reason = "the documentation of generated items is in wit/")]

pub mod validate_config {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-validate-config; world validate-config-alone { export leasehold:provider/validate-config@0.1.0; }",
        world: "leasehold:sdk-validate-config/validate-config-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::validate_config::*;
}

pub mod probe {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-probe; world probe-alone { export leasehold:provider/probe@0.1.0; }",
        world: "leasehold:sdk-probe/probe-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::probe::*;
}

pub mod acquire_lease {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-acquire-lease; world acquire-lease-alone { export leasehold:provider/acquire-lease@0.1.0; }",
        world: "leasehold:sdk-acquire-lease/acquire-lease-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::acquire_lease::*;
}

pub mod resume_lease {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-resume-lease; world resume-lease-alone { export leasehold:provider/resume-lease@0.1.0; }",
        world: "leasehold:sdk-resume-lease/resume-lease-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::resume_lease::*;
}

pub mod release_lease {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-release-lease; world release-lease-alone { export leasehold:provider/release-lease@0.1.0; }",
        world: "leasehold:sdk-release-lease/release-lease-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::release_lease::*;
}

pub mod destroy_lease {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-destroy-lease; world destroy-lease-alone { export leasehold:provider/destroy-lease@0.1.0; }",
        world: "leasehold:sdk-destroy-lease/destroy-lease-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::destroy_lease::*;
}

pub mod stop_lease {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-stop-lease; world stop-lease-alone { export leasehold:provider/stop-lease@0.1.0; }",
        world: "leasehold:sdk-stop-lease/stop-lease-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::stop_lease::*;
}

pub mod find_lease {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-find-lease; world find-lease-alone { export leasehold:provider/find-lease@0.1.0; }",
        world: "leasehold:sdk-find-lease/find-lease-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::find_lease::*;
}

pub mod realize_workspace {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-realize-workspace; world realize-workspace-alone { export leasehold:provider/realize-workspace@0.1.0; }",
        world: "leasehold:sdk-realize-workspace/realize-workspace-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::realize_workspace::*;
}

pub mod execute {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-execute; world execute-alone { export leasehold:provider/execute@0.1.0; }",
        world: "leasehold:sdk-execute/execute-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
            "wasi:io/error@0.2.12": crate::imports::wasi::io::error,
            "wasi:io/poll@0.2.12": crate::imports::wasi::io::poll,
            "wasi:io/streams@0.2.12": crate::imports::wasi::io::streams,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::execute::*;
}

pub mod sync_in {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-sync-in; world sync-in-alone { export leasehold:provider/sync-in@0.1.0; }",
        world: "leasehold:sdk-sync-in/sync-in-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
            "wasi:io/error@0.2.12": crate::imports::wasi::io::error,
            "wasi:io/poll@0.2.12": crate::imports::wasi::io::poll,
            "wasi:io/streams@0.2.12": crate::imports::wasi::io::streams,
            "leasehold:provider/sync-types@0.1.0": crate::imports::leasehold::provider::sync_types,
            "leasehold:host/transfer@0.1.0": crate::imports::leasehold::host::transfer,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::sync_in::*;
}

pub mod sync_out {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-sync-out; world sync-out-alone { export leasehold:provider/sync-out@0.1.0; }",
        world: "leasehold:sdk-sync-out/sync-out-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
            "wasi:io/error@0.2.12": crate::imports::wasi::io::error,
            "wasi:io/poll@0.2.12": crate::imports::wasi::io::poll,
            "wasi:io/streams@0.2.12": crate::imports::wasi::io::streams,
            "leasehold:provider/sync-types@0.1.0": crate::imports::leasehold::provider::sync_types,
            "leasehold:host/transfer@0.1.0": crate::imports::leasehold::host::transfer,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::sync_out::*;
}

pub mod interactive_setup {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-interactive-setup; world interactive-setup-alone { export leasehold:provider/interactive-setup@0.1.0; }",
        world: "leasehold:sdk-interactive-setup/interactive-setup-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::interactive_setup::*;
}

pub mod capture_template {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-capture-template; world capture-template-alone { export leasehold:provider/capture-template@0.1.0; }",
        world: "leasehold:sdk-capture-template/capture-template-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        generate_all,
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::capture_template::*;
}

pub mod delete_template {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-delete-template; world delete-template-alone { export leasehold:provider/delete-template@0.1.0; }",
        world: "leasehold:sdk-delete-template/delete-template-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::delete_template::*;
}

pub mod login_pty {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package leasehold:sdk-login-pty; world login-pty-alone { export leasehold:provider/login-pty@0.1.0; }",
        world: "leasehold:sdk-login-pty/login-pty-alone",
        with: {
            "leasehold:provider/types@0.1.0": crate::imports::leasehold::provider::types,
            "wasi:io/error@0.2.12": crate::imports::wasi::io::error,
            "wasi:io/poll@0.2.12": crate::imports::wasi::io::poll,
            "wasi:io/streams@0.2.12": crate::imports::wasi::io::streams,
        },
        pub_export_macro: true,
    });
    pub use exports::leasehold::provider::login_pty::*;
}
