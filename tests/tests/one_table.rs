//! The table of methods, the interface files and the contract compiled into the host say the same.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use leasehold_contract::authority;
use leasehold_contract::method::{INTERFACE_VERSION, METHODS, PROVIDER_PACKAGE};
use leasehold_engine::bindings::shape::CONTRACT;
use std::collections::BTreeSet;

#[test]
fn every_method_is_a_function_of_the_interface_files_and_every_function_a_method() {
    let table: BTreeSet<_> = METHODS
        .iter()
        .map(|info| (format!("{PROVIDER_PACKAGE}/{}", info.interface), info.function.to_owned()))
        .collect();
    let files: BTreeSet<_> = CONTRACT
        .exports
        .iter()
        .flat_map(|interface| {
            interface.functions.iter().map(|function| (interface.name.to_owned(), function.name.to_owned()))
        })
        .collect();
    assert_eq!(table, files);
}

#[test]
fn every_interface_carries_the_version_the_table_serves_and_every_call_begins_with_the_context() {
    for interface in CONTRACT.exports {
        assert_eq!(interface.version, INTERFACE_VERSION, "{}", interface.name);
        for function in interface.functions {
            assert_eq!(function.params[0].name, "ctx", "{}.{}", interface.name, function.name);
        }
    }
}

#[test]
fn every_interface_of_the_host_package_has_a_row_that_says_what_it_needs() {
    for interface in CONTRACT.imports {
        let name = format!("{}@{}", interface.name, interface.version);
        assert!(authority::need(&name).is_some(), "{name}");
    }
}

#[test]
fn every_item_of_the_interface_files_is_documented() {
    let wit = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let mut files: Vec<_> = std::fs::read_dir(&wit).unwrap().map(|file| file.unwrap().path()).collect();
    files
        .extend(std::fs::read_dir(wit.join("deps/leasehold-host")).unwrap().map(|file| file.unwrap().path()));
    let mut bare = Vec::new();
    for file in files.iter().filter(|path| path.extension().is_some_and(|end| end == "wit")) {
        let text = std::fs::read_to_string(file).unwrap();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            if begins_item(line) && !lines[..index].last().is_some_and(|above| above.starts_with("///")) {
                bare.push(format!("{}:{}: {line}", file.display(), index + 1));
            }
        }
    }
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}

/// Interfaces, types, fields, cases and functions; not parameters on lines of their own, imports or exports.
fn begins_item(line: &str) -> bool {
    let keyword = ["interface ", "world ", "record ", "variant ", "enum ", "flags ", "resource "];
    if keyword.iter().any(|keyword| line.starts_with(keyword)) {
        return true;
    }
    let member =
        line.ends_with(',') && !line.contains("func(") && !line.starts_with(['(', ')', '}', '-', '{']);
    let parameter = ["ctx: ", "request: execute-request", "input: ", "standard-output: ", "standard-error: "];
    (member && !parameter.iter().any(|name| line.starts_with(name))) || line.contains(": func(")
}
