//! What [`crate::export!`] is made of.

/// Answers, as constants, which methods a type has.
pub struct Has<T>(core::marker::PhantomData<T>);

macro_rules! has {
    ($($method:ident $constant:ident;)*) => {
        $(
            impl<T: crate::$method> Has<T> {
                /// Found before the trait's own constant where the type has the method.
                pub const $constant: bool = true;
            }
        )*
        /// The answers for everything else.
        pub trait HasNot {
            $(
                /// The method is not implemented.
                const $constant: bool = false;
            )*
        }
        impl<T> HasNot for Has<T> {}
    };
}

has! {
    ValidateConfig VALIDATE_CONFIG;
    Probe PROBE;
    AcquireLease ACQUIRE_LEASE;
    ResumeLease RESUME_LEASE;
    ReleaseLease RELEASE_LEASE;
    DestroyLease DESTROY_LEASE;
    StopLease STOP_LEASE;
    FindLease FIND_LEASE;
    RealizeWorkspace REALIZE_WORKSPACE;
    Execute EXECUTE;
    SyncIn SYNC_IN;
    SyncOut SYNC_OUT;
    InteractiveSetup INTERACTIVE_SETUP;
    CaptureTemplate CAPTURE_TEMPLATE;
    DeleteTemplate DELETE_TEMPLATE;
    LoginPty LOGIN_PTY;
}

/// Whether a name is among these.
pub const fn names(all: &[&str], name: &str) -> bool {
    let mut at = 0;
    while at < all.len() {
        if same(all[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Exports the methods of a provider: `export!(Mine: AcquireLease, ReleaseLease, Execute);`, once in a
/// component, at its root.
///
/// Exactly what is implemented has to be named; anything else does not compile. The rest of the contract is not
/// exported, and the host sees that this provider does not have it.
///
/// ```compile_fail
/// # use leasehold_sdk::*;
/// # struct Mine;
/// # impl Provider for Mine { type Config = (); }
/// impl DeleteTemplate for Mine {
///     fn delete(_: &Call<()>, _: String, _: Option<String>) -> Result<bool, Error> { Ok(false) }
/// }
/// impl ValidateConfig for Mine {}
/// export!(Mine: ValidateConfig); // `DeleteTemplate` is implemented and not exported
/// # fn main() {}
/// ```
///
/// ```
/// # use leasehold_sdk::*;
/// # struct Mine;
/// # impl Provider for Mine { type Config = (); }
/// # impl DeleteTemplate for Mine {
/// #     fn delete(_: &Call<()>, _: String, _: Option<String>) -> Result<bool, Error> { Ok(false) }
/// # }
/// # impl ValidateConfig for Mine {}
/// export!(Mine: ValidateConfig, DeleteTemplate);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export {
    ($provider:ident : $($method:ident),+ $(,)?) => {
        $($crate::export!(@one $provider $method);)+
        const _: () = {
            #[allow(unused_imports, reason = "a provider that has every method asks for none of the others")]
            use $crate::exported::HasNot as _;
            const NAMED: &[&str] = &[$(stringify!($method)),+];
            assert!(
                !<$crate::exported::Has<$provider>>::VALIDATE_CONFIG || $crate::exported::names(NAMED, "ValidateConfig"),
                "ValidateConfig is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::PROBE || $crate::exported::names(NAMED, "Probe"),
                "Probe is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::ACQUIRE_LEASE || $crate::exported::names(NAMED, "AcquireLease"),
                "AcquireLease is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::RESUME_LEASE || $crate::exported::names(NAMED, "ResumeLease"),
                "ResumeLease is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::RELEASE_LEASE || $crate::exported::names(NAMED, "ReleaseLease"),
                "ReleaseLease is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::DESTROY_LEASE || $crate::exported::names(NAMED, "DestroyLease"),
                "DestroyLease is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::STOP_LEASE || $crate::exported::names(NAMED, "StopLease"),
                "StopLease is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::FIND_LEASE || $crate::exported::names(NAMED, "FindLease"),
                "FindLease is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::REALIZE_WORKSPACE || $crate::exported::names(NAMED, "RealizeWorkspace"),
                "RealizeWorkspace is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::EXECUTE || $crate::exported::names(NAMED, "Execute"),
                "Execute is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::SYNC_IN || $crate::exported::names(NAMED, "SyncIn"),
                "SyncIn is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::SYNC_OUT || $crate::exported::names(NAMED, "SyncOut"),
                "SyncOut is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::INTERACTIVE_SETUP || $crate::exported::names(NAMED, "InteractiveSetup"),
                "InteractiveSetup is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::CAPTURE_TEMPLATE || $crate::exported::names(NAMED, "CaptureTemplate"),
                "CaptureTemplate is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::DELETE_TEMPLATE || $crate::exported::names(NAMED, "DeleteTemplate"),
                "DeleteTemplate is implemented and not exported: name it in `export!`"
            );
            assert!(
                !<$crate::exported::Has<$provider>>::LOGIN_PTY || $crate::exported::names(NAMED, "LoginPty"),
                "LoginPty is implemented and not exported: name it in `export!`"
            );
        };
    };
    (@one $provider:ident ValidateConfig) => {
        $crate::raw::validate_config::export!($provider with_types_in $crate::raw::validate_config);
    };
    (@one $provider:ident Probe) => {
        $crate::raw::probe::export!($provider with_types_in $crate::raw::probe);
    };
    (@one $provider:ident AcquireLease) => {
        $crate::raw::acquire_lease::export!($provider with_types_in $crate::raw::acquire_lease);
    };
    (@one $provider:ident ResumeLease) => {
        $crate::raw::resume_lease::export!($provider with_types_in $crate::raw::resume_lease);
    };
    (@one $provider:ident ReleaseLease) => {
        $crate::raw::release_lease::export!($provider with_types_in $crate::raw::release_lease);
    };
    (@one $provider:ident DestroyLease) => {
        $crate::raw::destroy_lease::export!($provider with_types_in $crate::raw::destroy_lease);
    };
    (@one $provider:ident StopLease) => {
        $crate::raw::stop_lease::export!($provider with_types_in $crate::raw::stop_lease);
    };
    (@one $provider:ident FindLease) => {
        $crate::raw::find_lease::export!($provider with_types_in $crate::raw::find_lease);
    };
    (@one $provider:ident RealizeWorkspace) => {
        $crate::raw::realize_workspace::export!($provider with_types_in $crate::raw::realize_workspace);
    };
    (@one $provider:ident Execute) => {
        $crate::raw::execute::export!($provider with_types_in $crate::raw::execute);
    };
    (@one $provider:ident SyncIn) => {
        $crate::raw::sync_in::export!($provider with_types_in $crate::raw::sync_in);
    };
    (@one $provider:ident SyncOut) => {
        $crate::raw::sync_out::export!($provider with_types_in $crate::raw::sync_out);
    };
    (@one $provider:ident InteractiveSetup) => {
        $crate::raw::interactive_setup::export!($provider with_types_in $crate::raw::interactive_setup);
    };
    (@one $provider:ident CaptureTemplate) => {
        $crate::raw::capture_template::export!($provider with_types_in $crate::raw::capture_template);
    };
    (@one $provider:ident DeleteTemplate) => {
        $crate::raw::delete_template::export!($provider with_types_in $crate::raw::delete_template);
    };
    (@one $provider:ident LoginPty) => {
        $crate::raw::login_pty::export!($provider with_types_in $crate::raw::login_pty);
    };
    (@one $provider:ident $other:ident) => {
        compile_error!(concat!("`", stringify!($other), "` is no method of the contract"));
    };
}
