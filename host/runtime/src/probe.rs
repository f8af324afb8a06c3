//! What probing an environment found.

use leasehold_contract::Method;
use leasehold_engine::CallError;
use leasehold_engine::bindings::exports::probe::{ProbeReport, Severity};
use leasehold_lease::Fault;
use leasehold_lease::registry::Refusal;
use serde_json::{Value, json};

/// Whether a lease could be acquired from an environment now, and what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Probed {
    /// Whether it could.
    pub ok: bool,
    /// One line for people.
    pub summary: Option<String>,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// How much it matters: `info`, `warning` or `error`.
    pub severity: &'static str,
    /// For people.
    pub message: String,
    /// A stable code, when there is one.
    pub code: Option<String>,
    /// More, when there is more.
    pub details: Option<Value>,
}

impl Probed {
    /// Nobody can be asked.
    pub(crate) fn not_to_be_had(provider: &str, refusal: &Refusal) -> Probed {
        let details = json!({"driver": "sandbox", "provider": provider});
        Probed::no(refusal.to_string(), "provider_unavailable", Some(details))
    }

    /// The provider has no way to find out; nothing is against it.
    pub(crate) fn has_no_probe(provider: &str) -> Probed {
        let message =
            format!("`{provider}` has no {}; only an acquisition shows whether it works", Method::Probe);
        let found = Diagnostic { severity: "info", message, code: None, details: None };
        Probed { ok: true, summary: Some("loaded, and cannot be probed".into()), diagnostics: vec![found] }
    }

    pub(crate) fn answered(answer: Result<Result<ProbeReport, Fault>, CallError>) -> Probed {
        match answer {
            Ok(Ok(report)) => Probed::reported(report),
            Ok(Err(fault)) => Probed::no(fault.to_string(), "probe_failed", None),
            Err(error) => Probed::no(error.to_string(), error.code(), None),
        }
    }

    fn reported(report: ProbeReport) -> Probed {
        let diagnostics = report.diagnostics.into_iter().map(|found| Diagnostic {
            severity: match found.severity {
                Severity::Info => "info",
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            message: found.message,
            code: found.code,
            details: found.details.and_then(|text| serde_json::from_str(&text).ok()),
        });
        Probed { ok: report.ok, summary: report.summary, diagnostics: diagnostics.collect() }
    }

    fn no(message: String, code: &str, details: Option<Value>) -> Probed {
        let found = Diagnostic { severity: "error", message, code: Some(code.into()), details };
        Probed { ok: false, summary: None, diagnostics: vec![found] }
    }
}
