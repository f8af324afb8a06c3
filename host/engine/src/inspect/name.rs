//! Names of interfaces and their versions.

/// A name as components carry it: `leasehold:provider/execute@0.1.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// The name without its version.
    pub(super) bare: &'a str,
    /// The version, when there is one.
    pub(super) version: Option<&'a str>,
}

impl<'a> Name<'a> {
    pub(super) fn parse(full: &'a str) -> Name<'a> {
        match full.split_once('@') {
            Some((bare, version)) => Name { bare, version: Some(version) },
            None => Name { bare: full, version: None },
        }
    }

    /// Whether the name lies in this package.
    pub(super) fn is_of(&self, package: &str) -> bool {
        self.bare.strip_prefix(package).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether a host that serves `served` can serve this version: the same major version or, below 1.0,
    /// the same minor one. The engine links by the same rule, and the shape is compared besides.
    pub(super) fn is_served(&self, served: &str) -> bool {
        let parse = |version: &str| semver::Version::parse(version).ok();
        match (self.version.and_then(parse), parse(served)) {
            (Some(found), Some(served)) if !found.pre.is_empty() || !served.pre.is_empty() => found == served,
            (Some(found), Some(served)) => {
                let track = |v: &semver::Version| (v.major, if v.major == 0 { v.minor } else { 0 });
                track(&found) == track(&served)
            }
            _ => false,
        }
    }

    /// Orders served versions as the engine prefers them: the exact one first, then the latest.
    pub(super) fn preference(&self, served: &str) -> (bool, Option<semver::Version>) {
        let version = self.version.and_then(|version| semver::Version::parse(version).ok());
        (self.version == Some(served), version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_served_when_it_is_compatible() {
        for (name, served, expected) in [
            ("a:b/c@0.1.0", "0.1.0", true),
            ("a:b/c@0.1.7", "0.1.0", true),
            ("a:b/c@0.2.0", "0.1.0", false),
            ("a:b/c@1.0.0", "0.1.0", false),
            ("a:b/c@1.9.0", "1.2.0", true),
            ("a:b/c@0.1.0-rc.1", "0.1.0", false),
            ("a:b/c", "0.1.0", false),
            ("a:b/c@zero", "0.1.0", false),
        ] {
            assert_eq!(Name::parse(name).is_served(served), expected, "{name} {served}");
        }
    }

    #[test]
    fn a_package_is_not_the_prefix_of_another() {
        assert!(Name::parse("leasehold:provider/execute@0.1.0").is_of("leasehold:provider"));
        assert!(!Name::parse("leasehold:provider-two/execute").is_of("leasehold:provider"));
        assert!(!Name::parse("execute").is_of("leasehold:provider"));
    }
}
