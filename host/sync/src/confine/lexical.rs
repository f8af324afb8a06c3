//! Confinement by the text of a path: before anything is opened or sent, every path of an operation has to
//! lie under a root of whoever owns the operation.

use crate::operation::{Mapping, Operation};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Why a path was not admitted. Nothing of its operation was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// The path is relative, empty or holds a zero byte.
    #[error("{field}: {path:?} is not a confined absolute path; give it whole, from `/` on")]
    NotAbsolute {
        /// Where the path stands.
        field: String,
        /// The path.
        path: PathBuf,
    },
    /// The path lies under no root.
    #[error("{field}: {path:?} escapes its root; allowed is what lies under {}", listed(roots))]
    Escapes {
        /// Where the path stands.
        field: String,
        /// The path.
        path: PathBuf,
        /// The roots.
        roots: Vec<PathBuf>,
    },
    /// A working directory has a `..` in it, harmless or not.
    #[error("{field}: the working directory {path:?} has a `..`; write it without")]
    StepsOut {
        /// Where the path stands.
        field: String,
        /// The path.
        path: PathBuf,
    },
    /// A working directory lies under no target of its operation.
    #[error(
        "{field}: the working directory {path:?} escapes its root: it is under no target of its operation"
    )]
    OutsideTargets {
        /// Where the path stands.
        field: String,
        /// The path.
        path: PathBuf,
    },
}

/// Directories under which paths may lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roots(Vec<PathBuf>);

impl Roots {
    /// Roots from absolute paths.
    ///
    /// # Errors
    /// When one is not absolute.
    pub fn new<P: AsRef<Path>>(
        field: &str,
        roots: impl IntoIterator<Item = P>,
    ) -> Result<Self, ConfineError> {
        let roots = roots.into_iter().enumerate();
        roots
            .map(|(at, root)| absolute(&format!("{field}[{at}]"), root.as_ref()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The root that a normal path lies under, and the rest of the path below it.
    #[must_use]
    pub fn split<'a>(&self, path: &'a Path) -> Option<(&Path, &'a Path)> {
        self.0.iter().find_map(|root| Some((root.as_path(), path.strip_prefix(root).ok()?)))
    }

    /// The path without `.`, `..` and double slashes, if it lies under a root or is one.
    ///
    /// # Errors
    /// When it is relative or lies under none.
    pub fn admit(&self, field: &str, path: &Path) -> Result<PathBuf, ConfineError> {
        let normal = absolute(field, path)?;
        // Segment by segment: `/a/b2` is not under `/a/b`.
        if self.0.iter().any(|root| normal.starts_with(root)) {
            return Ok(normal);
        }
        Err(ConfineError::Escapes { field: field.into(), path: path.into(), roots: self.0.clone() })
    }
}

/// Admits every path of every operation, or none: the operations with normal paths.
///
/// # Errors
/// With the first field that holds a path that may not be there.
pub fn confine(
    operations: &[Operation],
    sources: &Roots,
    targets: &Roots,
) -> Result<Vec<Operation>, ConfineError> {
    let all = operations.iter().enumerate();
    all.map(|(at, operation)| {
        let field = format!("operations[{at}]");
        let mappings = operation.mappings.iter().enumerate();
        let mappings = mappings.map(|(at, mapping)| {
            let field = format!("{field}.files[{at}]");
            Ok(Mapping {
                source: sources.admit(&format!("{field}.sourcePath"), &mapping.source)?,
                target: targets.admit(&format!("{field}.targetPath"), &mapping.target)?,
                ..mapping.clone()
            })
        });
        let mappings = mappings.collect::<Result<Vec<_>, _>>()?;
        for (at, command) in operation.post_upload.iter().enumerate() {
            if let Some(cwd) = &command.cwd {
                let field = format!("{field}.postUploadCommands[{at}].cwd");
                working_directory(
                    &field,
                    cwd.as_ref(),
                    operation.mappings.iter().map(|mapping| mapping.target.as_path()),
                )?;
            }
        }
        Ok(Operation { mappings, ..operation.clone() })
    })
    .collect()
}

/// A working directory has to be a target or under one. A target written with a slash at its end keeps it
/// here, as the contract's own host does, so that `/a/` takes `/a/` and not `/a`.
fn working_directory<'a>(
    field: &str,
    cwd: &Path,
    targets: impl Iterator<Item = &'a Path>,
) -> Result<(), ConfineError> {
    let text = cwd.as_os_str().as_bytes();
    if text.first() != Some(&b'/') || text.contains(&0) {
        return Err(ConfineError::NotAbsolute { field: field.into(), path: cwd.into() });
    }
    if text.split(|byte| *byte == b'/').any(|segment| segment == b"..") {
        return Err(ConfineError::StepsOut { field: field.into(), path: cwd.into() });
    }
    let cwd_text = keep_slash(cwd);
    let under = |target: &Path| {
        let target = keep_slash(target);
        cwd_text == target
            || cwd_text.strip_prefix(target.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
    };
    match targets.into_iter().any(under) {
        true => Ok(()),
        false => Err(ConfineError::OutsideTargets { field: field.into(), path: cwd.into() }),
    }
}

/// The normal form of an absolute path, with the slash at its end if it had one.
fn keep_slash(path: &Path) -> Vec<u8> {
    let mut normal = normalise(path).into_os_string().into_vec();
    if path.as_os_str().as_bytes().ends_with(b"/") && normal != b"/" {
        normal.push(b'/');
    }
    normal
}

fn absolute(field: &str, path: &Path) -> Result<PathBuf, ConfineError> {
    let text = path.as_os_str().as_bytes();
    if text.first() != Some(&b'/') || text.contains(&0) {
        return Err(ConfineError::NotAbsolute { field: field.into(), path: path.into() });
    }
    Ok(normalise(path))
}

/// Takes out `.`, `..` and double slashes by the text alone. A step above the root stays at the root.
fn normalise(path: &Path) -> PathBuf {
    let mut normal: Vec<&[u8]> = Vec::new();
    for segment in path.as_os_str().as_bytes().split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                normal.pop();
            }
            name => normal.push(name),
        }
    }
    let mut text = vec![b'/'];
    text.extend(normal.join(&b'/'));
    OsString::from_vec(text).into()
}

fn listed(roots: &[PathBuf]) -> String {
    match roots {
        [] => "no root at all".into(),
        roots => roots.iter().map(|root| format!("{root:?}")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;
    use crate::operation::{MappingKind, PostUpload};
    use proptest::prelude::*;

    fn admit(path: &str) -> Result<PathBuf, ConfineError> {
        Roots::new("roots", ["/remote/ws"]).unwrap().admit("path", Path::new(path))
    }

    #[test]
    fn a_path_is_admitted_by_what_it_means_and_not_by_how_it_is_written() {
        for (path, normal) in [
            ("/remote/ws/sub", "/remote/ws/sub"),
            ("/remote/ws", "/remote/ws"),
            ("/remote/ws/", "/remote/ws"),
            ("//remote/ws/x", "/remote/ws/x"),
            ("/remote/ws/a/../b", "/remote/ws/b"),
            ("/remote/./ws//a", "/remote/ws/a"),
            ("/remote/ws2/../ws/a", "/remote/ws/a"),
        ] {
            assert_eq!(admit(path).unwrap(), Path::new(normal), "{path}");
        }
        for path in ["relative/path", "../x", "", ".", "/remote/ws/a\0b"] {
            assert!(matches!(admit(path), Err(ConfineError::NotAbsolute { .. })), "{path}");
        }
        for path in ["/remote/ws/../etc/passwd", "/etc/passwd", "/remote/ws2", "/remote/ws/..", "/..", "/"] {
            assert!(matches!(admit(path), Err(ConfineError::Escapes { .. })), "{path}");
        }
    }

    fn operation(target: &str, cwd: &str) -> Operation {
        let command = PostUpload { command: "true".into(), cwd: Some(cwd.into()), timeout: None };
        Operation {
            id: "sync-op-1".into(),
            mappings: vec![Mapping::new(MappingKind::Directory, "/host/a", target)],
            post_upload: vec![command],
        }
    }

    #[test]
    fn a_working_directory_is_a_target_or_under_one_and_has_no_step_out() {
        let roots = Roots::new("roots", ["/"]).unwrap();
        let confined = |target: &str, cwd: &str| confine(&[operation(target, cwd)], &roots, &roots).is_ok();
        for (target, cwd, good) in [
            ("/remote/a", "/remote/a", true),
            ("/remote/a", "/remote/a/b", true),
            ("/remote/a", "/remote/a/", true),
            ("/remote/a", "/remote/ab", false),
            ("/remote/a", "/remote", false),
            ("/remote/a", "/remote/a/../etc", false),
            ("/remote/a", "/remote/a/b/../c", false),
            ("/remote/a", "/etc/passwd", false),
            ("/remote/a", "remote/a", false),
            ("/remote/a/", "/remote/a", false),
            ("/remote/a/", "/remote/a/", true),
            ("/", "/", true),
            ("/", "/remote", false),
        ] {
            assert_eq!(confined(target, cwd), good, "{target} {cwd}");
        }
        let nothing = Operation { mappings: vec![], ..operation("/", "/") };
        assert!(confine(&[nothing], &roots, &roots).is_err());
    }

    #[test]
    fn one_bad_path_anywhere_refuses_all_and_names_its_field() {
        let (host, sandbox) = (Roots::new("s", ["/host"]).unwrap(), Roots::new("t", ["/remote"]).unwrap());
        let good = Mapping::new(MappingKind::File, "/host/a", "/remote/a");
        let bad = Mapping::new(MappingKind::File, "/host/b", "/etc/passwd");
        let operation = |mappings| Operation { id: "1".into(), mappings, post_upload: vec![] };
        let error = confine(&[operation(vec![good.clone()]), operation(vec![good, bad])], &host, &sandbox);
        let text = error.unwrap_err().to_string();
        assert!(
            text.starts_with("operations[1].files[1].targetPath: \"/etc/passwd\" escapes its root"),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn what_is_admitted_lies_under_the_root_for_the_kernel_too(
            segments in proptest::collection::vec(proptest::sample::select(vec!["a", "b", "..", ".", "", "ab"]), 0..8),
        ) {
            let path = format!("/{}", segments.join("/"));
            let roots = Roots::new("roots", ["/a"]).unwrap();
            // An independent reading: walk the segments and count.
            let mut stack = Vec::new();
            for segment in &segments {
                match *segment {
                    "" | "." => {}
                    ".." => { stack.pop(); }
                    name => stack.push(name),
                }
            }
            prop_assert_eq!(roots.admit("p", Path::new(&path)).is_ok(), stack.first() == Some(&"a"));
        }
    }
}
