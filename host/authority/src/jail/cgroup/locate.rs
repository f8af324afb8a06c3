//! Where groups of jails can be made.
//!
//! In version 1 that is below the group this process is in. In version 2 a group that holds processes cannot
//! hand controllers on, so it is the nearest group above that does; a jail then lies beside its host, not
//! below it, and the host's own bounds count by [`memory_allowed`] and [`processes_allowed`].

use super::{Controller, Version};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the kernel says of this process's groups.
pub(super) struct Trees {
    mounts: String,
    own: String,
}

/// One mounted tree of groups, and the group of it that this process is in.
struct Tree {
    top: PathBuf,
    own: PathBuf,
    version: Version,
    /// Mount options, which name the controllers of a tree of version 1.
    options: String,
}

impl Trees {
    pub(super) fn look() -> Trees {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Trees { mounts: read("/proc/self/mountinfo"), own: read("/proc/self/cgroup") }
    }

    /// The group under which to make one, for each controller that can be had.
    pub(super) fn parents(&self, wanted: &[Controller]) -> BTreeMap<Controller, (PathBuf, Version)> {
        let trees = self.trees();
        let mut found = BTreeMap::new();
        for tree in trees.iter().filter(|tree| tree.version == Version::One) {
            for controller in wanted.iter().filter(|controller| tree.has(**controller)) {
                found.entry(*controller).or_insert_with(|| (tree.own.clone(), Version::One));
            }
        }
        let rest: Vec<_> = wanted.iter().copied().filter(|wanted| !found.contains_key(wanted)).collect();
        let unified = trees.iter().find(|tree| tree.version == Version::Two);
        if let Some((parent, handed_on)) = unified.and_then(|tree| tree.hands_on(&rest)) {
            found.extend(handed_on.into_iter().map(|one| (one, (parent.clone(), Version::Two))));
        }
        found
    }

    /// The smallest number that files of this name give, from this process's group upwards.
    fn smallest(&self, controller: Controller, one: &str, two: &str) -> Option<u64> {
        let number = |group: &Path, file: &str| {
            std::fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok()
        };
        let of = |tree: &Tree| {
            let file = if tree.version == Version::One { one } else { two };
            tree.upwards().filter_map(|group| number(group, file)).min()
        };
        let concerned = |tree: &&Tree| tree.version == Version::Two || tree.has(controller);
        self.trees().iter().filter(concerned).filter_map(of).min()
    }

    fn trees(&self) -> Vec<Tree> {
        self.mounts.lines().filter_map(|line| self.tree(line)).collect()
    }

    fn tree(&self, line: &str) -> Option<Tree> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (shown, top) = (mount.next()?, PathBuf::from(mount.next()?));
        let mut kind = kind.split(' ');
        let version = match kind.next()? {
            "cgroup" => Version::One,
            "cgroup2" => Version::Two,
            _ => return None,
        };
        let options = kind.nth(1).unwrap_or_default().to_owned();
        let group = self.own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let ours = match version {
                Version::One => controllers.split(',').any(|one| names(&options, one)),
                Version::Two => number == "0",
            };
            ours.then(|| path.trim_start_matches('/'))
        })?;
        // In a container the mount shows only a part of the tree.
        let shown = shown.trim_start_matches('/');
        let below = group.strip_prefix(shown).unwrap_or(group).trim_start_matches('/');
        let own = top.join(below);
        own.is_dir().then_some(Tree { top, own, version, options })
    }
}

fn names(list: &str, name: &str) -> bool {
    list.split([',', ' ', '\n']).any(|one| one == name)
}

impl Tree {
    fn has(&self, controller: Controller) -> bool {
        self.version == Version::One && names(&self.options, controller.name())
    }

    fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.own.ancestors().take_while(|group| group.starts_with(&self.top))
    }

    /// The nearest group that hands on the most of these controllers to groups below it.
    fn hands_on(&self, wanted: &[Controller]) -> Option<(PathBuf, Vec<Controller>)> {
        let given = |group: &Path| {
            // The real root alone may hold processes and still hand on whatever it has.
            let file = if group.join("cgroup.type").exists() {
                "cgroup.subtree_control"
            } else {
                "cgroup.controllers"
            };
            let listed = std::fs::read_to_string(group.join(file)).unwrap_or_default();
            wanted.iter().copied().filter(|one| names(&listed, one.name())).collect::<Vec<_>>()
        };
        let mut best: Option<(PathBuf, Vec<Controller>)> = None;
        for group in self.upwards() {
            let given = given(group);
            if given.len() > best.as_ref().map_or(0, |(_, most)| most.len()) {
                best = Some((group.to_owned(), given));
            }
        }
        best
    }
}

/// Memory that this process's groups allow it, in bytes.
pub(in crate::jail) fn memory_allowed() -> Option<u64> {
    Trees::look().smallest(Controller::Memory, "memory.limit_in_bytes", "memory.max")
}

/// Processes that this process's groups allow.
pub(in crate::jail) fn processes_allowed() -> Option<u64> {
    Trees::look().smallest(Controller::Processes, "pids.max", "pids.max")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const ALL: [Controller; 3] = [Controller::Memory, Controller::Processes, Controller::Processor];

    /// A tree of version 2 as systemd makes it, in plain files: what matters here is only text.
    fn unified(groups: &[(&str, &str)]) -> TempDir {
        let top = TempDir::new().unwrap();
        fs::write(top.path().join("cgroup.controllers"), "cpu memory pids").unwrap();
        for (group, handed_on) in groups {
            let group = top.path().join(group);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.type"), "domain").unwrap();
            fs::write(group.join("cgroup.subtree_control"), handed_on).unwrap();
        }
        top
    }

    fn trees(top: &TempDir, shown: &str, own: &str) -> Trees {
        let mounts = format!("30 23 0:26 {shown} {} rw - cgroup2 cgroup2 rw", top.path().display());
        Trees { mounts, own: format!("0::{own}\n") }
    }

    #[test]
    fn in_version_two_a_jail_lies_beside_its_host_where_controllers_are_handed_on() {
        let top = unified(&[
            ("user.slice", "cpu memory pids"),
            ("user.slice/user-0.slice", "memory pids"),
            ("user.slice/user-0.slice/session-1.scope", ""),
        ]);
        let own = "/user.slice/user-0.slice/session-1.scope";
        let found = trees(&top, "/", own).parents(&ALL[..2]);
        assert_eq!(found[&Controller::Memory], (top.path().join("user.slice/user-0.slice"), Version::Two));
        // One process is in one group: the nearest that has all, or as many as can be had.
        let found = trees(&top, "/", own).parents(&ALL);
        assert_eq!(found.len(), 3);
        assert!(found.values().all(|(parent, _)| *parent == top.path().join("user.slice")));
    }

    #[test]
    fn a_container_that_hands_nothing_on_gives_nothing() {
        let top = unified(&[]);
        fs::write(top.path().join("cgroup.type"), "domain").unwrap();
        fs::write(top.path().join("cgroup.subtree_control"), "").unwrap();
        assert!(trees(&top, "/", "/").parents(&ALL).is_empty());
        // The part of the tree that is shown lies at the mount itself.
        fs::write(top.path().join("cgroup.subtree_control"), "memory").unwrap();
        let found = trees(&top, "/docker/abc", "/docker/abc").parents(&ALL);
        assert_eq!(found[&Controller::Memory].0, top.path().join(""));
    }

    #[test]
    fn the_smallest_bound_on_the_way_up_counts() {
        let top = unified(&[("a", "memory"), ("a/b", "")]);
        fs::write(top.path().join("a/memory.max"), "1000\n").unwrap();
        fs::write(top.path().join("a/b/memory.max"), "max\n").unwrap();
        let trees = trees(&top, "/", "/a/b");
        assert_eq!(trees.smallest(Controller::Memory, "", "memory.max"), Some(1000));
        assert_eq!(trees.smallest(Controller::Processes, "", "pids.max"), None);
    }
}
