//! The report for people.

use super::Report;
use crate::table::{bytes, grouped, section};
use leasehold_contract::Verdict;
use leasehold_contract::method::METHODS;
use leasehold_contract::text::plain;
use leasehold_engine::inspect::{Import, Wanted};

/// Names of a list that are printed; a component may export a million things.
const NAMES_MAX: usize = 40;

pub(super) fn write(report: &Report) -> String {
    let compiled = &report.compiled;
    let inspection = compiled.inspection();
    let mut text = format!("{}\nblake3 {}\n\n", plain(&report.name, 1_000), compiled.digest());
    text.push_str(&section("methods", &methods(report)));
    text.push_str(&names("not in the contract, never called", inspection.unknown_exports()));
    text.push_str(&names("other exports", inspection.other_exports()));
    text.push_str(&wanted(inspection.imports()));
    text.push('\n');
    text.push_str(&section("capabilities, nothing declared", &capabilities(report)));
    text.push('\n');
    text.push_str(&section("size", &sizes(report)));
    text
}

fn methods(report: &Report) -> Vec<Vec<String>> {
    let verification = report.compiled.inspection().verification();
    let row = |name: &str, verdict: &Verdict| {
        let detail = match verdict {
            Verdict::Verified | Verdict::Absent => String::new(),
            Verdict::WrongShape(difference) => difference.to_string(),
            Verdict::UnknownVersion { .. } => verdict.to_string(),
        };
        vec![name.to_owned(), verdict.word().replace('-', " "), detail]
    };
    METHODS.iter().map(|info| row(info.name, verification.verdict(info.method))).collect()
}

/// What reaches something comes first and is never left out.
fn wanted(imports: &[Import]) -> String {
    if imports.is_empty() {
        return String::new();
    }
    let (harmless, reaching): (Vec<_>, Vec<_>) =
        imports.iter().partition(|import| import.need == Wanted::Nothing && import.difference.is_none());
    let mut rows: Vec<_> = reaching.into_iter().map(import).collect();
    rows.extend(harmless.iter().take(NAMES_MAX).map(|harmless| import(harmless)));
    if harmless.len() > NAMES_MAX {
        rows.push(vec![
            format!("… {} more", grouped((harmless.len() - NAMES_MAX) as u64)),
            "reach nothing".into(),
        ]);
    }
    format!("\n{}", section("wanted authority", &rows))
}

fn import(import: &Import) -> Vec<String> {
    let needs = match import.need {
        Wanted::Nothing => "reaches nothing".to_owned(),
        Wanted::AnyOf(permissions) => {
            let names: Vec<_> = permissions.iter().map(|permission| format!("`{permission}`")).collect();
            format!("permission {}", names.join(" or "))
        }
        Wanted::Never(instead) => format!("never granted; {instead}"),
        Wanted::Unknown => "not an interface this host serves".to_owned(),
    };
    let difference = import.difference.as_ref().map(|difference| format!("; wrong shape at {difference}"));
    vec![import.name.clone(), needs + &difference.unwrap_or_default()]
}

fn capabilities(report: &Report) -> Vec<Vec<String>> {
    let answer = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    report
        .effective
        .iter()
        .map(|(capability, found)| {
            let reason = found.reason().unwrap_or_default().to_owned();
            vec![capability.to_string(), answer(found.effective()), reason]
        })
        .collect()
}

fn sizes(report: &Report) -> Vec<Vec<String>> {
    let compiled = &report.compiled;
    let mut rows = vec![
        vec!["component".into(), bytes(compiled.component_bytes())],
        vec!["compiled".into(), bytes(compiled.compiled_bytes())],
    ];
    if let Some(demand) = compiled.inspection().demand() {
        let memories = format!("{}, the largest starts with {}", demand.memories, bytes(demand.memory_bytes));
        let elements = grouped(demand.table_elements);
        let tables = format!("{}, the largest starts with {elements} elements", demand.tables);
        rows.push(vec!["memories".into(), memories]);
        rows.push(vec!["tables".into(), tables]);
    }
    rows
}

fn names(heading: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let mut rows: Vec<_> = names.iter().take(NAMES_MAX).map(|name| vec![name.clone()]).collect();
    if names.len() > NAMES_MAX {
        rows.push(vec![format!("… {} more", grouped((names.len() - NAMES_MAX) as u64))]);
    }
    format!("\n{}", section(heading, &rows))
}
