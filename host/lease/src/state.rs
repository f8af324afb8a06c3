//! The states of a lease and the one table that says which may follow which.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The provider is asked for an allocation; there may be one already.
    Acquiring,
    /// Somebody uses the allocation.
    Active,
    /// The provider is asked to take a kept allocation up again.
    Resuming,
    /// The provider is asked to end the use.
    Releasing,
    /// Nobody uses the allocation, and it is kept: for another run, or because it holds work.
    Retained,
    /// There may be an allocation nobody uses; reconciling brings it to its goal.
    PendingCleanup,
    /// The allocation has ended, and the provider proved it.
    Released,
    /// Nothing was made, or nothing of it is ours to end.
    Failed,
}

/// What is to become of an allocation nobody uses any more. Decided when its use ends, and from then on
/// only a person may turn a stop into a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// To be deleted.
    Delete,
    /// To be kept for another run: released under the retention `reuse`.
    Keep,
    /// To be stopped with its files kept, whatever the retention says. Deletion is never a fallback.
    Stop,
}

/// One entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// When it happens.
    pub when: &'static str,
}

/// Every allowed transition. What is not here is an error.
const TABLE: &[Transition] = {
    use State::{Acquiring, Active, Failed, PendingCleanup, Released, Releasing, Resuming, Retained};
    &[
        row(Acquiring, Active, "the provider answered in time and somebody waited"),
        row(Acquiring, PendingCleanup, "it failed, came late, or its owner is gone"),
        row(Acquiring, Failed, "nothing was made, or it belongs to another lease"),
        row(Active, Resuming, "the run that holds it takes it up again"),
        row(Active, Releasing, "the use ends"),
        row(Active, PendingCleanup, "nobody took it, its owner is gone, its time is over, or it is stopped"),
        row(Resuming, Active, "the provider proved that it is the same allocation"),
        row(Resuming, PendingCleanup, "it is gone, failed, came late, or its owner is gone"),
        row(Releasing, Released, "the receipt proves the end"),
        row(Releasing, Retained, "the receipt proves that it is kept"),
        row(Releasing, PendingCleanup, "no fitting receipt, or its owner is gone"),
        row(Retained, Resuming, "another run takes it up"),
        row(Retained, PendingCleanup, "it is to be deleted or stopped"),
        row(PendingCleanup, PendingCleanup, "an attempt begins, learns an id, or fails"),
        row(PendingCleanup, Released, "the receipt proves the end"),
        row(PendingCleanup, Retained, "the receipt proves that it is kept"),
        row(PendingCleanup, Failed, "nothing was ever made, or it belongs to another lease"),
    ]
};

const fn row(from: State, to: State, when: &'static str) -> Transition {
    Transition { from, to, when }
}

impl State {
    /// Every state.
    pub const ALL: [State; 8] = [
        State::Acquiring,
        State::Active,
        State::Resuming,
        State::Releasing,
        State::Retained,
        State::PendingCleanup,
        State::Released,
        State::Failed,
    ];

    /// The word for it, in the store and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            State::Acquiring => "acquiring",
            State::Active => "active",
            State::Resuming => "resuming",
            State::Releasing => "releasing",
            State::Retained => "retained",
            State::PendingCleanup => "pending_cleanup",
            State::Released => "released",
            State::Failed => "failed",
        }
    }

    /// Reads the word for a state.
    #[must_use]
    pub fn parse(word: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether this state may follow by the table.
    #[must_use]
    pub fn may_become(self, to: State) -> bool {
        TABLE.iter().any(|entry| entry.from == self && entry.to == to)
    }

    /// Whether nothing follows any more, and nothing of it exists.
    #[must_use]
    pub fn is_final(self) -> bool {
        !TABLE.iter().any(|entry| entry.from == self)
    }

    /// Whether it waits for something to be done by somebody.
    #[must_use]
    pub fn is_unfinished(self) -> bool {
        matches!(self, State::Acquiring | State::Resuming | State::Releasing | State::PendingCleanup)
    }

    /// The table of allowed transitions.
    #[must_use]
    pub const fn transitions() -> &'static [Transition] {
        TABLE
    }
}

impl fmt::Display for State {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.word())
    }
}

impl Goal {
    const ALL: [Goal; 3] = [Goal::Delete, Goal::Keep, Goal::Stop];

    /// The word for it, in the store and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Goal::Delete => "delete",
            Goal::Keep => "keep",
            Goal::Stop => "stop",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Goal> {
        Goal::ALL.into_iter().find(|goal| goal.word() == word)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.word())
    }
}
