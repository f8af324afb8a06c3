//! What reading a component's type says of each method.

use crate::method::{METHODS, Method};
use serde::{Deserialize, Serialize};

/// The first place where a type differs from the contract's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Where, from the function inwards: `execute.params.request.env`.
    pub path: String,
    /// What the contract has there.
    pub expected: String,
    /// What the component has there.
    pub found: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: expected {}, found {}", self.path, self.expected, self.found)
    }
}

/// What reading a component's type says of one method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Exported, and the type is the contract's in every part.
    Verified,
    /// Not exported.
    Absent,
    /// Exported with another type.
    WrongShape(Difference),
    /// Exported in a version this host does not serve.
    UnknownVersion {
        /// The version the component exports.
        found: String,
        /// The versions this host serves.
        served: Vec<String>,
    },
}

impl Verdict {
    /// Whether the method may be called.
    pub fn is_verified(&self) -> bool {
        matches!(self, Verdict::Verified)
    }

    /// The verdict in one word, as tables and JSON show it.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Verified => "verified",
            Verdict::Absent => "absent",
            Verdict::WrongShape(_) => "wrong-shape",
            Verdict::UnknownVersion { .. } => "unknown-version",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Verified => f.write_str("verified"),
            Verdict::Absent => f.write_str("absent"),
            Verdict::WrongShape(difference) => write!(f, "wrong shape at {difference}"),
            Verdict::UnknownVersion { found, served } => {
                write!(f, "version {found} is not served (served: {})", served.join(", "))
            }
        }
    }
}

/// The verdicts on all methods. A method without a verdict is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    verdicts: std::collections::BTreeMap<Method, Verdict>,
}

impl Verification {
    /// A verification in which exactly these methods are verified and all others absent.
    pub fn of(methods: impl IntoIterator<Item = Method>) -> Self {
        methods.into_iter().map(|method| (method, Verdict::Verified)).collect()
    }

    /// The verdict on one method.
    pub fn verdict(&self, method: Method) -> &Verdict {
        self.verdicts.get(&method).unwrap_or(&Verdict::Absent)
    }

    /// Whether the method may be called.
    pub fn has(&self, method: Method) -> bool {
        self.verdict(method).is_verified()
    }

    /// The verified methods, in the table's order.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        METHODS.iter().map(|info| info.method).filter(|method| self.has(*method))
    }
}

impl FromIterator<(Method, Verdict)> for Verification {
    fn from_iter<I: IntoIterator<Item = (Method, Verdict)>>(verdicts: I) -> Self {
        Verification { verdicts: verdicts.into_iter().collect() }
    }
}
