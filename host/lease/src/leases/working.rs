//! What this process works on right now, so that its own reconciler keeps off it and takes up only what
//! a task of this process dropped.

use crate::LeaseId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many tasks work on which lease.
#[derive(Clone, Debug, Default)]
pub(super) struct Working {
    tasks: Arc<Mutex<HashMap<LeaseId, usize>>>,
}

/// One task's work on one lease; over when dropped.
#[derive(Debug)]
pub(super) struct Work {
    working: Working,
    id: LeaseId,
}

impl Working {
    fn tasks(&self) -> MutexGuard<'_, HashMap<LeaseId, usize>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins work on a lease. Which of several tasks may go on is decided by the store.
    pub(super) fn begin(&self, id: &LeaseId) -> Work {
        *self.tasks().entry(id.clone()).or_default() += 1;
        Work { working: self.clone(), id: id.clone() }
    }

    /// Begins work on a lease nothing in this process works on.
    pub(super) fn begin_alone(&self, id: &LeaseId) -> Option<Work> {
        let mut tasks = self.tasks();
        if tasks.contains_key(id) {
            return None;
        }
        tasks.insert(id.clone(), 1);
        Some(Work { working: self.clone(), id: id.clone() })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut tasks = self.working.tasks();
        if let Some(count) = tasks.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                tasks.remove(&self.id);
            }
        }
    }
}
