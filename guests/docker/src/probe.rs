//! Whether the engine can be used.

use crate::engine::Engine;
use crate::Docker;
use leasehold_sdk::{Call, Diagnostic, Error, Probe, ProbeReport, Severity};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Version {
    version: String,
    #[serde(default)]
    api_version: String,
}

impl Probe for Docker {
    fn probe(call: &Call<Self::Config>) -> Result<ProbeReport, Error> {
        let engine = Engine::of(&call.config);
        let version = engine.get("/version").and_then(|asked| match asked {
            Ok(answer) => answer.json::<Version>(),
            Err(refused) => Err(refused.into_error("asking for its version")),
        });
        let version = match version {
            Ok(version) => version,
            Err(error) => return Ok(unusable(&error)),
        };
        let image = &call.config.image;
        let there = engine.image(image)?.is_some();
        let mut diagnostics = Vec::new();
        if !there {
            diagnostics.push(Diagnostic {
                severity: Severity::Warning,
                message: format!("the image `{image}` is not there yet; it is pulled for the first lease"),
                code: Some("image_missing".into()),
                details: None,
            });
        }
        let summary = format!("engine {}, API {}", version.version, version.api_version);
        Ok(ProbeReport { ok: true, summary: Some(summary), diagnostics })
    }
}

fn unusable(error: &Error) -> ProbeReport {
    let message = match error {
        Error::Denied(reason) => reason.clone(),
        Error::Transient(fault) => format!("the engine is not to be reached: {}", fault.message),
        Error::Failed(fault) => fault.message.clone(),
        other => format!("{other:?}"),
    };
    let diagnostic =
        Diagnostic { severity: Severity::Error, message, code: Some("engine_gone".into()), details: None };
    ProbeReport { ok: false, summary: None, diagnostics: vec![diagnostic] }
}
