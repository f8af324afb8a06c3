//! Named points where a test ends the process, as `kill -9` would. In an ordinary build they are nothing.

/// A write to the store or a call of the provider: what can be cut off before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(any(test, feature = "fault-points")), allow(dead_code, reason = "only the points read it"))]
pub(crate) enum Step {
    /// The lease is written before the provider is asked.
    Intent,
    CallAcquire,
    /// The allocation is written and the lease handed over.
    Activate,
    /// An acquisition that failed or came late is written.
    Abandon,
    /// An answer that belongs to another lease is written.
    Reject,
    BeginRelease,
    CallRelease,
    EndRelease,
    /// A release without a fitting receipt is written.
    LeaveRelease,
    Claim,
    CallFind,
    /// An id that was found is written before anything is deleted.
    Observe,
    CallDestroy,
    /// The end of a cleanup is written.
    Settle,
    /// A cleanup that failed is written.
    PutOff,
}

#[cfg(any(test, feature = "fault-points"))]
mod points {
    use super::Step;

    /// The variable that names the point to end at: `before` or `after`, a space, and the step.
    pub(crate) const VARIABLE: &str = "LEASEHOLD_FAULT_POINT";

    impl Step {
        #[cfg(test)]
        pub(crate) const ALL: [Step; 15] = [
            Step::Intent,
            Step::CallAcquire,
            Step::Activate,
            Step::Abandon,
            Step::Reject,
            Step::BeginRelease,
            Step::CallRelease,
            Step::EndRelease,
            Step::LeaveRelease,
            Step::Claim,
            Step::CallFind,
            Step::Observe,
            Step::CallDestroy,
            Step::Settle,
            Step::PutOff,
        ];

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
