//! Checks on what a guest answers: every field has a limit, open fields are the JSON they claim to be, and no
//! field carries a secret out.

use crate::call::outcome::CallError;
use crate::call::scope::Authority;
use crate::limits::{Limit, Limits};
use leasehold_bindings::exports::{
    acquire_lease::{AcquireError, AcquisitionDiagnostic},
    capture_template::Template,
    destroy_lease::DestroyError,
    execute::{ExecuteResult, Exit},
    find_lease::Finding,
    interactive_setup::{Connection, SessionStatus, SetupHandle, SetupSession},
    probe::{Diagnostic, ProbeReport},
    realize_workspace::Workspace,
    stop_lease::StopError,
    validate_config::AcceptedConfig,
};
use leasehold_bindings::sync_types::OperationResult;
use leasehold_bindings::types::{
    CleanupRecord, Error, FieldError, Lease, PermanentFault, Receipt, TransientFault,
};
use leasehold_contract::Method;
use leasehold_contract::text::plain;

/// Highest whole number that every guest language can hold; see the contract's note on numbers.
const NUMBER_MAX: u64 = 1 << 53;

/// Characters of a code; the contract's.
const CODE_MAX: usize = 100;

/// Labels of a cleanup record, and characters of each part; the contract's.
const LABELS_MAX: usize = 16;
const LABEL_CHARS_MAX: usize = 200;

/// An answer whose every field can be checked.
pub trait Returned {
    /// Checks the fields and takes secrets out of them. The first fault is kept; later ones are not looked for.
    fn check(&mut self, check: &mut Check<'_>);
}

/// Collects the first fault of an answer.
#[derive(Debug)]
pub struct Check<'a> {
    limits: &'a Limits,
    authority: Option<&'a dyn Authority>,
    method: Method,
    fault: Option<CallError>,
}

impl<'a> Check<'a> {
    /// Checks an answer of `method`.
    ///
    /// # Errors
    /// The first field that breaks its limit or its form.
    pub(crate) fn run(
        method: Method,
        limits: &'a Limits,
        authority: Option<&'a dyn Authority>,
        answer: &mut impl Returned,
    ) -> Result<(), CallError> {
        let mut check = Check { limits, authority, method, fault: None };
        answer.check(&mut check);
        check.fault.map_or(Ok(()), Err)
    }

    fn size(&mut self, limit: Limit, field: &'static str, at: usize) {
        let (allowed, at) = (self.limits.get(limit), at as u64);
        if at > allowed && self.fault.is_none() {
            self.fault = Some(CallError::Limit { limit, field: Some(field), allowed, at: Some(at) });
        }
    }

    fn malformed(&mut self, field: &'static str, reason: String) {
        let method = self.method;
        self.fault.get_or_insert(CallError::Malformed { method, field, reason });
    }

    fn scrub(&self, text: &mut String) {
        if let Some(authority) = self.authority {
            authority.scrub(text);
        }
    }

    fn id(&mut self, field: &'static str, text: &mut String) {
        self.size(Limit::Id, field, text.len());
        if text.is_empty() {
            self.malformed(field, "is empty".into());
        }
        self.scrub(text);
    }

    /// A code that scripts and metrics use.
    fn code(&mut self, field: &'static str, text: &mut String) {
        let good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        if text.is_empty() || text.len() > CODE_MAX || !text.bytes().all(good) {
            self.scrub(text);
            let shown = plain(text, CODE_MAX);
            self.malformed(field, format!("`{shown}` is no code: 1 to {CODE_MAX} of a-z, 0-9 and `_`"));
        }
        self.scrub(text);
    }

    fn message(&mut self, field: &'static str, text: &mut String) {
        self.size(Limit::Message, field, text.len());
        self.scrub(text);
    }

    fn object(&mut self, limit: Limit, field: &'static str, text: Option<&String>) {
        let Some(text) = text else { return };
        self.size(limit, field, text.len());
        if self.fault.is_none()
            && let Err(error) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text)
        {
            // The parser quotes what it found.
            let mut reason = format!("is no JSON object: {error}");
            self.scrub(&mut reason);
            self.malformed(field, plain(&reason, 300));
        }
    }

    fn metadata(&mut self, field: &'static str, text: Option<&mut String>) {
        self.object(Limit::Metadata, field, text.as_deref());
        if let (Some(authority), Some(text)) = (self.authority, text) {
            authority.scrub_json(text);
        }
    }

    fn config(&mut self, field: &'static str, text: Option<&mut String>) {
        self.object(Limit::Config, field, text.as_deref());
        if let (Some(authority), Some(text)) = (self.authority, text) {
            authority.restore(text);
        }
    }

    fn items(&mut self, field: &'static str, count: usize) {
        self.size(Limit::Items, field, count);
    }

    fn number(&mut self, field: &'static str, value: Option<u64>) {
        if let Some(value) = value.filter(|value| *value > NUMBER_MAX) {
            self.malformed(field, format!("is {value}, above 2^53"));
        }
    }
}

impl<T: Returned, E: Returned> Returned for Result<T, E> {
    fn check(&mut self, check: &mut Check<'_>) {
        match self {
            Ok(answer) => answer.check(check),
            Err(error) => error.check(check),
        }
    }
}

impl Returned for () {
    fn check(&mut self, _: &mut Check<'_>) {}
}

impl Returned for bool {
    fn check(&mut self, _: &mut Check<'_>) {}
}

impl Returned for Option<i32> {
    fn check(&mut self, _: &mut Check<'_>) {}
}

impl Returned for SessionStatus {
    fn check(&mut self, _: &mut Check<'_>) {}
}

impl Returned for Error {
    fn check(&mut self, check: &mut Check<'_>) {
        match self {
            Error::InvalidConfig(faults) => {
                check.items("error.invalid-config", faults.len());
                for FieldError { path, message } in faults {
                    check.message("error.invalid-config.path", path);
                    check.message("error.invalid-config.message", message);
                }
            }
            Error::Gone => {}
            Error::Denied(message) => check.message("error.denied", message),
            Error::Transient(TransientFault { message, retry_after_ms, .. }) => {
                check.number("error.transient.retry-after-ms", *retry_after_ms);
                check.message("error.transient.message", message);
            }
            Error::Failed(PermanentFault { code, message }) => {
                check.code("error.failed.code", code);
                check.message("error.failed.message", message);
            }
        }
    }
}

impl Returned for AcceptedConfig {
    fn check(&mut self, check: &mut Check<'_>) {
        check.config("normalized", self.normalized.as_mut());
        check.items("warnings", self.warnings.len());
        self.warnings.iter_mut().for_each(|warning| check.message("warnings", warning));
    }
}

impl Returned for ProbeReport {
    fn check(&mut self, check: &mut Check<'_>) {
        self.summary.iter_mut().for_each(|summary| check.message("summary", summary));
        check.items("diagnostics", self.diagnostics.len());
        for Diagnostic { message, code, details, .. } in &mut self.diagnostics {
            check.message("diagnostics.message", message);
            code.iter_mut().for_each(|code| check.code("diagnostics.code", code));
            check.metadata("diagnostics.details", details.as_mut());
        }
    }
}

impl Returned for Lease {
    fn check(&mut self, check: &mut Check<'_>) {
        check.id("lease.id", &mut self.id);
        check.metadata("lease.metadata", self.metadata.as_mut());
        check.number("lease.expires-at-ms", self.expires_at_ms);
    }
}

impl Returned for CleanupRecord {
    fn check(&mut self, check: &mut Check<'_>) {
        check.id("cleanup.creation-name", &mut self.creation_name);
        self.observed_id.iter_mut().for_each(|id| check.id("cleanup.observed-id", id));
        let hex = |c: u8| c.is_ascii_digit() || matches!(c, b'a'..=b'f');
        if self.account_fingerprint.len() != 64 || !self.account_fingerprint.bytes().all(hex) {
            check.malformed("cleanup.account-fingerprint", "must be 64 lower-case hex digits".into());
        }
        let long = |text: &String| text.is_empty() || text.chars().count() > LABEL_CHARS_MAX;
        for (key, value) in &mut self.labels {
            check.scrub(key);
            check.scrub(value);
        }
        if self.labels.len() > LABELS_MAX || self.labels.iter().any(|(key, value)| long(key) || long(value)) {
            let message =
                format!("must be at most {LABELS_MAX}, each part of 1 to {LABEL_CHARS_MAX} characters");
            check.malformed("cleanup.labels", message);
        }
    }
}

impl Returned for AcquireError {
    fn check(&mut self, check: &mut Check<'_>) {
        self.error.check(check);
        if let Some(AcquisitionDiagnostic { elapsed_ms, budget_ms, .. }) = self.diagnostic {
            check.number("diagnostic.elapsed-ms", Some(elapsed_ms));
            check.number("diagnostic.budget-ms", Some(budget_ms));
        }
        self.cleanup.iter_mut().for_each(|cleanup| cleanup.check(check));
    }
}

impl Returned for DestroyError {
    fn check(&mut self, check: &mut Check<'_>) {
        self.error.check(check);
        self.cleanup.iter_mut().for_each(|cleanup| cleanup.check(check));
    }
}

impl Returned for StopError {
    fn check(&mut self, check: &mut Check<'_>) {
        self.error.check(check);
    }
}

impl Returned for Receipt {
    fn check(&mut self, check: &mut Check<'_>) {
        check.id("receipt.lease-id", &mut self.lease_id);
    }
}

impl Returned for Finding {
    fn check(&mut self, check: &mut Check<'_>) {
        match self {
            Finding::Started(lease) => lease.check(check),
            Finding::Preparing(id) => check.id("finding.preparing", id),
            Finding::Unusable(id) => check.id("finding.unusable", id),
            Finding::Absent => {}
        }
    }
}

impl Returned for Workspace {
    fn check(&mut self, check: &mut Check<'_>) {
        check.message("cwd", &mut self.cwd);
        // The host makes paths from it; a relative one or the root would name something else entirely.
        let mut parts = self.cwd.split('/').filter(|part| !part.is_empty()).peekable();
        let below_root = self.cwd.starts_with('/') && parts.peek().is_some();
        if !below_root || parts.any(|part| matches!(part, "." | "..")) || self.cwd.contains(char::is_control)
        {
            let message = "must be an absolute path below the root, without `.`, `..` and control characters";
            check.malformed("cwd", message.into());
        }
        check.metadata("metadata", self.metadata.as_mut());
    }
}

impl Returned for ExecuteResult {
    fn check(&mut self, check: &mut Check<'_>) {
        if let Exit::Signaled(signal) = &mut self.exit {
            check.id("exit.signaled", signal);
        }
        check.metadata("metadata", self.metadata.as_mut());
    }
}

impl Returned for Vec<OperationResult> {
    fn check(&mut self, check: &mut Check<'_>) {
        check.items("operations", self.len());
        for OperationResult { operation_id, files, bytes } in self.iter_mut() {
            check.id("operations.operation-id", operation_id);
            check.number("operations.files", Some(*files));
            check.number("operations.bytes", Some(*bytes));
        }
    }
}

impl Returned for SetupHandle {
    fn check(&mut self, check: &mut Check<'_>) {
        check.id("handle.lease-id", &mut self.lease_id);
        check.metadata("handle.metadata", self.metadata.as_mut());
    }
}

impl Returned for SetupSession {
    fn check(&mut self, check: &mut Check<'_>) {
        self.handle.check(check);
        if let Some(Connection { summary, payload }) = &mut self.connection {
            check.metadata("connection.summary", Some(summary));
            check.metadata("connection.payload", payload.as_mut());
        }
    }
}

impl Returned for Template {
    fn check(&mut self, check: &mut Check<'_>) {
        check.id("reference", &mut self.reference);
        check.id("kind", &mut self.kind);
        check.metadata("metadata", self.metadata.as_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(id: &str, metadata: Option<String>, expires_at_ms: Option<u64>) -> Lease {
        Lease { id: id.into(), metadata, expires_at_ms }
    }

    #[test]
    fn a_field_over_its_limit_or_of_another_form_is_named() {
        let big = format!("{{\"a\":\"{}\"}}", "x".repeat(64 << 10));
        for (mut lease, expected) in [
            (lease("a", Some("{}".into()), Some(1)), None),
            (
                lease("", None, None),
                Some("the answer of environmentAcquireLease cannot be used: lease.id: is empty"),
            ),
            (
                lease(&"x".repeat(1025), None, None),
                Some("limit `id-bytes` hit in `lease.id`: 1025 of at most 1024 bytes"),
            ),
            (
                lease("a", Some(big), None),
                Some("limit `metadata-bytes` hit in `lease.metadata`: 65544 of at most 65536 bytes"),
            ),
            (
                lease("a", Some("[]".into()), None),
                Some(
                    "the answer of environmentAcquireLease cannot be used: lease.metadata: is no JSON object: invalid type: sequence, expected a map at line 1 column 0",
                ),
            ),
            (
                lease("a", None, Some(u64::MAX)),
                Some(
                    "the answer of environmentAcquireLease cannot be used: lease.expires-at-ms: is 18446744073709551615, above 2^53",
                ),
            ),
        ] {
            let checked = Check::run(Method::AcquireLease, &Limits::default(), None, &mut lease);
            assert_eq!(checked.err().map(|error| error.to_string()).as_deref(), expected);
        }
    }

    #[test]
    fn a_workspace_is_never_the_root_directory() {
        for (cwd, good) in [
            ("/workspace", true),
            ("/workspace/a..b/", true),
            ("/", false),
            ("//", false),
            ("/..", false),
            ("/.", false),
            ("/a/../..", false),
            ("/a\n", false),
            ("work", false),
            ("", false),
        ] {
            let mut workspace = Workspace { cwd: cwd.into(), metadata: None };
            let checked = Check::run(Method::RealizeWorkspace, &Limits::default(), None, &mut workspace);
            assert_eq!(checked.is_ok(), good, "{cwd:?}");
        }
    }
}
