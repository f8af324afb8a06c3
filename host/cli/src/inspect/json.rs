//! The report for machines.

use super::Report;
use leasehold_contract::method::{INTERFACE_VERSION, METHODS, MethodInfo, PROVIDER_PACKAGE};
use leasehold_contract::{Difference, Verdict};
use leasehold_engine::inspect::{Import, Wanted};
use serde_json::{Map, Value, json};

pub(super) fn write(report: &Report) -> String {
    let compiled = &report.compiled;
    let inspection = compiled.inspection();
    let verification = inspection.verification();
    let methods: Vec<_> =
        METHODS.iter().map(|info| method(info, verification.verdict(info.method))).collect();
    let imports: Vec<_> = inspection.imports().iter().map(import).collect();
    let flags: Map<_, _> = report
        .effective
        .iter()
        .map(|(capability, found)| (capability.name().to_owned(), found.effective().into()))
        .collect();
    let reasons: Map<_, _> = report
        .effective
        .iter()
        .filter_map(|(capability, found)| Some((capability.name().to_owned(), found.reason()?.into())))
        .collect();
    let mut sizes = json!({
        "componentBytes": compiled.component_bytes(),
        "compiledBytes": compiled.compiled_bytes(),
    });
    if let Some(demand) = inspection.demand() {
        sizes["memories"] = demand.memories.into();
        sizes["memoryBytes"] = demand.memory_bytes.into();
        sizes["tables"] = demand.tables.into();
        sizes["tableElements"] = demand.table_elements.into();
    }
    let report = json!({
        "file": report.name,
        "blake3": compiled.digest().to_string(),
        "methods": methods,
        "unknownExports": inspection.unknown_exports(),
        "otherExports": inspection.other_exports(),
        "imports": imports,
        "capabilities": flags,
        "reasons": reasons,
        "sizes": sizes,
    });
    format!("{report:#}\n")
}

fn method(info: &MethodInfo, verdict: &Verdict) -> Value {
    let mut row = json!({
        "name": info.name,
        "interface": format!("{PROVIDER_PACKAGE}/{}@{INTERFACE_VERSION}", info.interface),
        "function": info.function,
        "verdict": verdict.word(),
    });
    match verdict {
        Verdict::Verified | Verdict::Absent => {}
        Verdict::WrongShape(difference) => add(&mut row, difference),
        Verdict::UnknownVersion { found, served } => {
            row["found"] = found.as_str().into();
            row["served"] = json!(served);
        }
    }
    row
}

fn import(import: &Import) -> Value {
    let mut row = json!({"name": import.name});
    match import.need {
        Wanted::Nothing => row["permissions"] = json!([]),
        Wanted::AnyOf(permissions) => row["permissions"] = json!(permissions),
        Wanted::Never(instead) => row["never"] = instead.into(),
        Wanted::Unknown => row["unknown"] = true.into(),
    }
    if let Some(difference) = &import.difference {
        add(&mut row, difference);
    }
    row
}

fn add(row: &mut Value, Difference { path, expected, found }: &Difference) {
    row["path"] = path.as_str().into();
    row["expected"] = expected.as_str().into();
    row["found"] = found.as_str().into();
}
