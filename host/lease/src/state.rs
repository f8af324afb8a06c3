//! The states of a lease and the one table that says which may follow which.

use std::fmt;

/// Where a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The provider is asked for an allocation; there may be one already.
    Acquiring,
    /// Somebody uses the allocation.
    Active,
    /// The provider is asked to end the use.
    Releasing,
    /// The use has ended, and the provider proved what became of the allocation.
    Released,
    /// There may be an allocation nobody uses; reconciling ends it.
    PendingCleanup,
    /// Nothing was made, or nothing of it is ours to end.
    Failed,
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
pub(crate) const TABLE: &[Transition] = &[
    row(State::Acquiring, State::Active, "the provider answered in time and somebody waited"),
    row(State::Acquiring, State::PendingCleanup, "it failed, came late, or its owner is gone"),
    row(State::Acquiring, State::Failed, "the provider answered with an allocation of another lease"),
    row(State::Active, State::Releasing, "the use ends"),
    row(State::Active, State::PendingCleanup, "nobody took it, or its owner is gone"),
    row(State::Releasing, State::Released, "the receipt fits"),
    row(State::Releasing, State::PendingCleanup, "no fitting receipt, or its owner is gone"),
    row(State::PendingCleanup, State::PendingCleanup, "an attempt begins, learns an id, or fails"),
    row(State::PendingCleanup, State::Released, "the receipt fits"),
    row(State::PendingCleanup, State::Failed, "nothing was ever made"),
];

const fn row(from: State, to: State, when: &'static str) -> Transition {
    Transition { from, to, when }
}

impl State {
    /// Every state.
    pub const ALL: [State; 6] = [
        State::Acquiring,
        State::Active,
        State::Releasing,
        State::Released,
        State::PendingCleanup,
        State::Failed,
    ];

    /// The word for it, in the store and for people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            State::Acquiring => "acquiring",
            State::Active => "active",
            State::Releasing => "releasing",
            State::Released => "released",
            State::PendingCleanup => "pending_cleanup",
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

    /// Whether nothing follows any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        !TABLE.iter().any(|entry| entry.from == self)
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
