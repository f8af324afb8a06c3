//! The provider `docker` with real engines: every test with both of them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod bounds;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod faults;
mod files;
mod leases;
mod shop;

/// Every test once with each engine.
macro_rules! both {
    ($($module:ident { $($test:ident)* })*) => {
        mod podman {
            $($(#[test] fn $test() { crate::shop::with(leasehold_tests::engines::Kind::Podman, crate::$module::$test); })*)*
        }
        mod docker {
            $($(#[test] fn $test() { crate::shop::with(leasehold_tests::engines::Kind::Docker, crate::$module::$test); })*)*
        }
    };
}

both! {
    commands {
        the_exit_code_is_the_commands_or_says_why_there_is_none
        output_and_errors_stay_apart_and_input_passes_through
        a_command_that_reads_nothing_of_a_long_input_still_writes_all_its_output
        a_timeout_ends_everything_the_command_started
        a_long_command_runs_beside_others
    }
    files {
        the_folder_goes_in_the_command_runs_and_what_it_changed_comes_back
        a_file_and_a_folder_are_copied_in_and_out_of_places_that_were_not_there
        bytes_of_files_pass_the_provider_by
        an_ordinary_user_owns_its_workspace
    }
    bounds {
        memory_that_is_used_up_is_said_so
        processes_are_bounded_there_is_no_network_and_no_way_to_more_rights
        what_would_open_the_machine_is_refused
        an_image_that_cannot_be_had_is_named
        an_engine_that_is_not_there_is_said_so
        an_engine_at_an_address_serves_like_one_at_a_socket
    }
    leases {
        a_lease_is_labelled_stopped_with_its_files_and_taken_up_again
        what_is_gone_is_gone_and_what_is_stopped_is_said_so
        many_leases_at_once_leave_nothing
    }
    faults {
        a_disk_that_is_full_is_said_so_and_the_target_is_as_it_was
        a_container_killed_under_a_command_is_told_and_leaves_nothing
        an_engine_that_crashes_under_a_command_loses_no_exit_code
        a_host_killed_at_any_step_leaves_nothing_after_a_reconcile
    }
}
