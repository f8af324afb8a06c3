//! What reading the type of each fixture says, as snapshots.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::Verdict;
use leasehold_contract::method::METHODS;
use leasehold_engine::Inspection;
use leasehold_tests::{bytes, engine, fixtures};
use std::fmt::Write as _;

#[test]
fn each_fixture_has_the_verdicts_its_maker_intended() {
    let mut report = String::new();
    for fixture in fixtures() {
        match engine().load(&bytes(&fixture)) {
            Ok(compiled) => writeln!(report, "{fixture}\n{}", summary(compiled.inspection())).unwrap(),
            Err(error) => writeln!(report, "{fixture}\n  refused: {error}\n").unwrap(),
        }
    }
    insta::assert_snapshot!(report);
}

fn summary(inspection: &Inspection) -> String {
    let mut text = String::new();
    let (mut verified, mut others) = (Vec::new(), Vec::new());
    for info in METHODS {
        match inspection.verification().verdict(info.method) {
            Verdict::Verified => verified.push(info.name),
            Verdict::Absent => others.push(info.name),
            verdict => {
                others.push(info.name);
                writeln!(text, "  {}: {verdict}", info.name).unwrap();
            }
        }
    }
    let verified = match (verified.len(), others.len()) {
        (0, _) => "none".to_owned(),
        (_, 0) => "all".to_owned(),
        (yes, no) if yes > no => format!("all but {}", others.join(" ")),
        _ => verified.join(" "),
    };
    writeln!(text, "  verified: {verified}").unwrap();
    if !inspection.unknown_exports().is_empty() {
        writeln!(text, "  unknown: {}", inspection.unknown_exports().join(" ")).unwrap();
    }
    text
}
