//! The one table of methods.
//!
//! Everything that names a method (interface files, verification, command line, documentation) is checked
//! against [`METHODS`] by a test, so that none of them can drift.

use serde::{Serialize, Serializer};

/// The version of the contract's interfaces this host serves.
pub const INTERFACE_VERSION: &str = "0.1.0";

/// The package that holds the interfaces a provider exports.
pub const PROVIDER_PACKAGE: &str = "leasehold:provider";

/// What a method is for; methods of one group are listed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Checks that need no allocation.
    Configuration,
    /// From creation to the end of an allocation.
    Lease,
    /// What is done inside an allocation.
    Work,
    /// Moving files.
    Sync,
    /// A sandbox prepared by hand.
    InteractiveSetup,
    /// A terminal for logging in.
    LoginPty,
}

/// Which rule of [`crate::budget`] gives a call its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetRule {
    /// A fixed time in milliseconds, whatever is configured.
    Fixed(u64),
    /// The requested time, else the configured one, plus the margin.
    Execute,
    /// The longest configured time plus the margin.
    Lease,
    /// Like `Lease`, with the declaration's default for a fresh acquisition.
    Acquire,
    /// Like `Acquire`, one deadline for all attempts.
    Resume,
    /// Like `Lease`, never above the ceiling for a stop.
    Stop,
}

/// What the contract says of one method.
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    /// The method.
    pub method: Method,
    /// Its name in JSON and in messages.
    pub name: &'static str,
    /// The interface, inside [`PROVIDER_PACKAGE`], that holds it.
    pub interface: &'static str,
    /// The function inside that interface.
    pub function: &'static str,
    /// What it is for.
    pub group: Group,
    /// Whether a component without it is no provider at all.
    pub required: bool,
    /// Whether a second call with the same arguments must change nothing more.
    pub idempotent: bool,
    /// Which rule gives a call its time.
    pub budget: BudgetRule,
    /// One line for people.
    pub summary: &'static str,
}

macro_rules! methods {
    ($($variant:ident $name:literal $interface:literal $function:literal
        $group:ident $required:literal $idempotent:literal $budget:expr, $summary:literal;)*) => {
        /// A method of the contract.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Method {
            $(#[doc = $summary] $variant,)*
        }

        /// Every method, in the order people see them.
        pub const METHODS: &[MethodInfo] = &[$(MethodInfo {
            method: Method::$variant, name: $name, interface: $interface, function: $function,
            group: Group::$group, required: $required, idempotent: $idempotent, budget: $budget,
            summary: $summary,
        },)*];
    };
}

// variant, wire name, interface, function, group, required, idempotent, budget
methods! {
    ValidateConfig "environmentValidateConfig" "validate-config" "validate-config"
        Configuration false true BudgetRule::Fixed(crate::budget::DEFAULT_MS), "Checks a configuration before it is stored.";
    Probe "environmentProbe" "probe" "probe"
        Configuration false true BudgetRule::Fixed(crate::budget::PROBE_MS), "Tries whether the back end can be used.";
    AcquireLease "environmentAcquireLease" "acquire-lease" "acquire-lease"
        Lease true true BudgetRule::Acquire, "Creates an allocation, idempotent by creation name.";
    ResumeLease "environmentResumeLease" "resume-lease" "resume-lease"
        Lease false true BudgetRule::Resume, "Takes up an allocation again in a later run.";
    ReleaseLease "environmentReleaseLease" "release-lease" "release-lease"
        Lease false true BudgetRule::Lease, "Ends the use of an allocation.";
    DestroyLease "environmentDestroyLease" "destroy-lease" "destroy-lease"
        Lease false true BudgetRule::Lease, "Deletes an allocation.";
    StopLease "environmentStopLease" "stop-lease" "stop-lease"
        Lease false true BudgetRule::Stop, "Stops an allocation and keeps its files.";
    FindLease "environmentFindLease" "find-lease" "find-lease"
        Lease false true BudgetRule::Lease, "Finds an allocation by the name it was created under.";
    RealizeWorkspace "environmentRealizeWorkspace" "realize-workspace" "realize-workspace"
        Work false true BudgetRule::Lease, "Prepares the workspace directory inside an allocation.";
    Execute "environmentExecute" "execute" "execute"
        Work false false BudgetRule::Execute, "Runs a command inside an allocation.";
    SyncIn "environmentSyncIn" "sync-in" "sync-in"
        Sync false true BudgetRule::Lease, "Moves files into an allocation.";
    SyncOut "environmentSyncOut" "sync-out" "sync-out"
        Sync false true BudgetRule::Lease, "Moves files out of an allocation.";
    StartInteractiveSetup "environmentStartInteractiveSetup" "interactive-setup" "start"
        InteractiveSetup false true BudgetRule::Execute, "Starts a sandbox that a person prepares.";
    GetInteractiveSetup "environmentGetInteractiveSetup" "interactive-setup" "get"
        InteractiveSetup false true BudgetRule::Execute, "Reads where a setup session stands.";
    CancelInteractiveSetup "environmentCancelInteractiveSetup" "interactive-setup" "cancel"
        InteractiveSetup false true BudgetRule::Execute, "Ends a setup session.";
    CaptureTemplate "environmentCaptureTemplate" "capture-template" "capture-template"
        InteractiveSetup false false BudgetRule::Execute, "Makes a template of a prepared sandbox.";
    DeleteTemplate "environmentDeleteTemplate" "delete-template" "delete-template"
        InteractiveSetup false true BudgetRule::Execute, "Deletes a template.";
    LoginPtyOpen "setupTokenPtyOpen" "login-pty" "open"
        LoginPty false false BudgetRule::Fixed(crate::budget::PTY_OPEN_MS), "Opens a terminal for logging in.";
    LoginPtyInput "setupTokenPtyInput" "login-pty" "input"
        LoginPty false false BudgetRule::Fixed(crate::budget::DEFAULT_MS), "Types into the terminal.";
    LoginPtyResize "setupTokenPtyResize" "login-pty" "resize"
        LoginPty false true BudgetRule::Fixed(crate::budget::DEFAULT_MS), "Tells the terminal its new size.";
    LoginPtyClose "setupTokenPtyClose" "login-pty" "close"
        LoginPty false true BudgetRule::Fixed(crate::budget::PTY_CLOSE_MS), "Ends the terminal.";
}

impl Method {
    /// What the contract says of this method.
    pub const fn info(self) -> &'static MethodInfo {
        // The macro writes variants and rows in one order, so a variant is its row's index.
        &METHODS[self as usize]
    }

    /// The name in JSON and in messages, for example `environmentAcquireLease`.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The method of this name; none when the contract has no such method. Case matters.
    pub fn by_name(name: &str) -> Option<Method> {
        METHODS.iter().find(|info| info.name == name).map(|info| info.method)
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_its_own_row_and_is_found_by_its_name() {
        for (index, info) in METHODS.iter().enumerate() {
            assert_eq!(info.method as usize, index);
            assert_eq!(Method::by_name(info.name), Some(info.method));
            assert_eq!(info.method.info().name, info.name);
        }
    }

    #[test]
    fn no_two_methods_share_a_name_or_a_function() {
        for a in METHODS {
            for b in METHODS {
                if a.method != b.method {
                    assert_ne!(a.name, b.name);
                    assert_ne!((a.interface, a.function), (b.interface, b.function));
                }
            }
        }
    }

    #[test]
    fn only_acquisition_is_required() {
        let required: Vec<_> = METHODS.iter().filter(|m| m.required).map(|m| m.method).collect();
        assert_eq!(required, [Method::AcquireLease]);
    }
}
