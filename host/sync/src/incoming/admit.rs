//! Whether an entry may stand beside those before it.

use super::check;
use super::extract::Extraction;
use super::fault::Fault;
use crate::manifest::{Entry, Timestamp};
use crate::rule::Rule;
use std::path::Path;

/// The mode of a directory that an archive implies without an entry of its own.
const IMPLIED_MODE: u32 = 0o755;

impl Extraction<'_> {
    /// Makes the directories that a path needs and that have no entry of their own yet.
    pub(super) fn parents(&mut self, path: &Path) -> Result<(), Fault> {
        let mut missing = Vec::new();
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            match self.manifest.get(parent) {
                Some(entry) if entry.is_directory() => break,
                Some(_) => return Err(Rule::ParentNotDirectory(parent.into()).into()),
                None => missing.push(parent.to_owned()),
            }
        }
        for parent in missing.into_iter().rev() {
            self.admit(&parent)?;
            let kind = self.directory(&parent)?;
            let known = self.known.and_then(|known| known.get(&parent)).filter(|entry| entry.is_directory());
            let mode = known.map_or(IMPLIED_MODE, |entry| entry.mode);
            self.manifest.insert(parent.clone(), Entry { kind, mode, mtime: Timestamp::default() });
            self.implied.insert(parent);
        }
        Ok(())
    }

    /// Counts a path that is about to be made, and refuses one that another stands in the way of.
    pub(super) fn admit(&mut self, path: &Path) -> Result<(), Fault> {
        if self.manifest.get(path).is_some() {
            return Err(Rule::Duplicate.into());
        }
        if self.manifest.len() == self.limits.entries {
            return Err(Rule::TooManyEntries(self.limits.entries).into());
        }
        self.add_text(path.as_os_str().len())?;
        let folded = check::fold(path);
        let other = match self.folded.get(&folded) {
            Some(other) => Some(other.clone()),
            None if folded != path && self.manifest.get(&folded).is_some() => Some(folded.clone()),
            None => None,
        };
        let was_sent = |path: &Path| self.known.is_some_and(|known| known.get(path).is_some());
        if let Some(other) = other
            && !(was_sent(&other) && was_sent(path))
        {
            return Err(Rule::CaseFold(other).into());
        }
        if folded != path {
            self.folded.insert(folded, path.to_owned());
        }
        Ok(())
    }

    pub(super) fn add_text(&mut self, length: usize) -> Result<(), Rule> {
        self.text = self.text.saturating_add(length);
        if self.text > self.limits.text_bytes {
            return Err(Rule::TooMuchText(self.limits.text_bytes));
        }
        Ok(())
    }
}
