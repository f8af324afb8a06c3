//! Named points where a test ends the process, as `kill -9` would. In an ordinary build they are nothing.

/// One table of every write to the store and every call of a provider: what can be cut off before and after.
macro_rules! steps {
    ($($(#[$meaning:meta])* $step:ident),* $(,)?) => {
        /// A write to the store or a call of the provider.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(not(any(test, feature = "fault-points")), allow(dead_code, reason = "only the points read it"))]
        pub(crate) enum Step { $($(#[$meaning])* $step),* }

        #[cfg(test)]
        impl Step {
            pub(crate) const ALL: &[Step] = &[$(Step::$step),*];
        }
    };
}

steps! {
    /// The lease is written before the provider is asked.
    Intent,
    CallAcquire,
    /// The allocation is written and the lease handed over.
    Activate,
    /// An acquisition that failed or came late is written.
    Abandon,
    /// An answer that belongs to another lease is written.
    Reject,
    /// A kept lease is taken up.
    BeginResume,
    CallResume,
    /// What a resume learned is written, and the lease handed over.
    EndResume,
    /// A resume that failed is written, with what becomes of the lease.
    LeaveResume,
    /// A longer life that the provider promised is written.
    Renew,
    /// That a lease holds work, or no longer does, is written.
    Preserve,
    BeginRelease,
    CallRelease,
    EndRelease,
    /// A release without a fitting receipt is written.
    LeaveRelease,
    /// That a lease is to be deleted is written.
    BeginDestroy,
    /// That a lease is to be stopped is written.
    StopIntent,
    CallStop,
    Claim,
    /// A lease whose provider is not ready is put off.
    Defer,
    CallFind,
    /// An id that was found is written before anything is deleted.
    Observe,
    CallDestroy,
    /// The end of a cleanup is written.
    Settle,
    /// A cleanup that failed is written.
    PutOff,
    /// What the store did not take is put into a file.
    Spool,
    /// What was put into a file is written to the store.
    TakeIn,
}

#[cfg(any(test, feature = "fault-points"))]
mod points {
    use super::Step;

    /// The variable that names the point to end at: `before` or `after`, a space, and the step.
    pub(crate) const VARIABLE: &str = "LEASEHOLD_FAULT_POINT";

    impl Step {
        /// Ends the process here when the variable says so.
        pub(crate) fn before(self) {
            self.reach("before");
        }

        /// Ends the process here when the variable says so.
        pub(crate) fn after(self) {
            self.reach("after");
        }

        fn reach(self, side: &str) {
            let wanted = std::env::var(VARIABLE);
            if wanted.is_ok_and(|wanted| wanted == format!("{side} {self:?}")) {
                // A failure to end the process leaves it running, and the test sees that it did.
                let me = rustix::process::getpid();
                rustix::process::kill_process(me, rustix::process::Signal::KILL).ok();
                std::thread::park();
            }
        }
    }
}

#[cfg(test)]
pub(crate) use points::VARIABLE;

#[cfg(not(any(test, feature = "fault-points")))]
impl Step {
    pub(crate) const fn before(self) {}
    pub(crate) const fn after(self) {}
}
