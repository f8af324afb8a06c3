//! What a receipt must say to prove what was asked for.

use crate::{Disposition, Receipt, Retention};

/// What was asked of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To end the use, under the retention decided at acquisition.
    Release(Retention),
    /// To delete an allocation whose id was once seen.
    Destroy,
    /// To stop it and keep its files.
    Stop,
}

impl Asked {
    /// Whether this is an answer to what was asked. An allocation that is gone needs no ending, so that
    /// fits wherever the end was asked for: its id was once seen. One that was to be kept and is said to be
    /// deleted does not fit, and a stop is proved by nothing but a stop.
    fn accepts(self, state: Disposition) -> bool {
        use Disposition::{AlreadyGone, Destroyed, Retained, Stopped};
        match self {
            Asked::Destroy | Asked::Release(Retention::Ephemeral) => matches!(state, Destroyed | AlreadyGone),
            Asked::Release(Retention::Reuse) => matches!(state, Stopped | Retained | AlreadyGone),
            Asked::Stop => state == Stopped,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Asked::Release(Retention::Ephemeral) => "a release that deletes",
            Asked::Release(Retention::Reuse) => "a release that keeps",
            Asked::Destroy => "a destroy",
            Asked::Stop => "a stop",
        }
    }

    /// Checks a receipt for the allocation of this id, or says in what it falls short.
    pub(crate) fn check(self, id: &str, receipt: &Receipt) -> Result<Disposition, String> {
        if receipt.lease_id != id {
            let other = receipt.lease_id.escape_debug();
            return Err(format!("the receipt is about allocation `{other}`, not about `{id}`"));
        }
        match self.accepts(receipt.state) {
            true => Ok(receipt.state),
            false => Err(format!("the receipt answers {} with `{}`", self.words(), receipt.state.word())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Disposition::{AlreadyGone, Destroyed, Retained, Stopped};

    #[test]
    fn a_receipt_proves_only_what_was_asked_of_exactly_that_allocation() {
        let fitting = |asked: Asked| {
            let all = [Destroyed, AlreadyGone, Stopped, Retained];
            all.map(|state| asked.check("a", &Receipt { lease_id: "a".into(), state }).is_ok())
        };
        assert_eq!(fitting(Asked::Destroy), [true, true, false, false]);
        assert_eq!(fitting(Asked::Release(Retention::Ephemeral)), [true, true, false, false]);
        assert_eq!(fitting(Asked::Release(Retention::Reuse)), [false, true, true, true]);
        assert_eq!(fitting(Asked::Stop), [false, false, true, false]);
        let other = Receipt { lease_id: "b".into(), state: Destroyed };
        let refused = Asked::Destroy.check("a", &other).unwrap_err();
        assert_eq!(refused, "the receipt is about allocation `b`, not about `a`");
    }
}
