//! Fixtures of a wrong shape: the contract with one edit.
//!
//! An edit is kept as a difference, not as a copy of the interface, so that it stays *one* difference
//! when the contract changes. `guests/fixtures/shapes/<name>.edit` holds lines of these forms:
//!
//! ```text
//! # comment
//! edit execute                 the interface that the hunk changes
//! - env: list<tuple<…>>,       whole lines to take out; they must occur exactly once, in a row
//! + env: list<string>,         lines to put in their place
//! rename execute-stream        gives the edited interface another name
//! version 0.2.0                gives the whole package another version; `none` takes it away
//! export execute               the interface to export; by default the edited one
//! ```
//!
//! The component exports that interface and, as every provider must, `acquire-lease`. Functions trap.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use leasehold_contract::method::{INTERFACE_VERSION, PROVIDER_PACKAGE};

use crate::wit::{self, Contract};
use crate::{encode, generated, layout, text};

/// The contract's own package line, which `version` replaces.
const PACKAGE_LINE: &str = "package leasehold:provider@0.1.0;";

#[derive(Debug, Default, PartialEq, Eq)]
struct Edit {
    interface: String,
    remove: Vec<String>,
    insert: Vec<String>,
    rename: Option<String>,
    version: Option<String>,
    export: Option<String>,
}

/// Name and component of every shape.
///
/// # Errors
///
/// The first edit that cannot be read or no longer applies, named.
pub(crate) fn components(contract: &Contract) -> Result<Vec<(String, Vec<u8>)>> {
    let mut made = Vec::new();
    for (name, path) in text::sources(&layout::fixtures_dir().join("shapes"), "edit")? {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let bytes = parse(&text)
            .and_then(|edit| component(contract, &edit))
            .with_context(|| format!("the shape in {} cannot be made", path.display()))?;
        made.push((name, bytes));
    }
    Ok(made)
}

fn parse(text: &str) -> Result<Edit> {
    let mut edit = Edit::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim().to_string();
        match word {
            "-" => edit.remove.push(rest),
            "+" => edit.insert.push(rest),
            "edit" => edit.interface = rest,
            "rename" => edit.rename = Some(rest),
            "version" => edit.version = Some(rest),
            "export" => edit.export = Some(rest),
            _ => bail!("cannot read `{line}`; lines begin with edit, -, +, rename, version, export or #"),
        }
    }
    ensure!(!edit.interface.is_empty(), "no interface is named; begin with `edit <interface>`");
    Ok(edit)
}

fn component(contract: &Contract, edit: &Edit) -> Result<Vec<u8>> {
    let mut files = wit::interface_files()?;
    let opening = format!("interface {} {{", edit.interface);
    let (_, edited) = files
        .iter_mut()
        .find(|(_, text)| text.lines().any(|line| line == opening))
        .with_context(|| format!("the contract has no interface `{}`", edit.interface))?;
    *edited = apply(edited, &opening, edit)?;

    let mut version = format!("@{INTERFACE_VERSION}");
    let resolve = match &edit.version {
        None => wit::in_place_of_contract(&files)?,
        Some(other) => {
            version = if other == "none" { String::new() } else { format!("@{other}") };
            let line = format!("package {PROVIDER_PACKAGE}{version};");
            for (_, text) in &mut files {
                *text = text.replace(PACKAGE_LINE, &line);
            }
            contract.beside(&files)?
        }
    };
    let exported = edit.export.as_ref().or(edit.rename.as_ref()).unwrap_or(&edit.interface);
    let mut items = vec![format!("export {PROVIDER_PACKAGE}/{exported}{version};")];
    let acquire = generated::export("acquire-lease");
    if items[0] != acquire {
        items.push(acquire);
    }
    let (resolve, world) = wit::world_of(resolve, &items)?;
    encode::dummy(&resolve, world)
}

/// Applies the edit inside the interface that starts with the line `opening` and ends with the next `}`
/// at the start of a line.
fn apply(text: &str, opening: &str, edit: &Edit) -> Result<String> {
    let (before, rest) = text.split_once(opening).context("the interface is not there")?;
    let (body, after) = rest.split_once("\n}").context("the interface has no end")?;
    // Comments stand between the lines a hunk names, and a component does not keep them.
    let lines: Vec<&str> =
        body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).collect();

    let mut changed: Vec<&str> = Vec::new();
    if edit.remove.is_empty() {
        ensure!(edit.insert.is_empty(), "lines to insert need a line to replace; repeat it to keep it");
        changed.extend(&lines);
    } else {
        let length = edit.remove.len();
        let found: Vec<usize> = (0..lines.len())
            .filter(|&at| lines.get(at..at + length).is_some_and(|w| w == edit.remove))
            .collect();
        let [at] = found[..] else {
            bail!(
                "the lines to take out occur {} times in `{}`, not once:\n{}",
                found.len(),
                edit.interface,
                edit.remove.join("\n")
            );
        };
        changed.extend(&lines[..at]);
        changed.extend(edit.insert.iter().map(String::as_str));
        changed.extend(&lines[at + length..]);
    }
    let name = edit.rename.as_ref().unwrap_or(&edit.interface);
    Ok(format!("{before}interface {name} {{\n{}\n}}{after}", changed.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "interface a {\n  /// One.\n  x: u32,\n  /// Two.\n  y: u32,\n  x: u32,\n}\ninterface b {\n}\n";

    fn edited(hunk: &str) -> Result<String> {
        apply(TEXT, "interface a {", &parse(&format!("edit a\n{hunk}")).unwrap())
    }

    #[test]
    fn a_hunk_replaces_the_one_place_it_names() {
        let text = edited("- x: u32,\n- y: u32,\n+ z: u32,").unwrap();
        assert_eq!(text, "interface a {\nz: u32,\nx: u32,\n}\ninterface b {\n}\n");
    }

    #[test]
    fn a_hunk_that_fits_twice_or_nowhere_is_refused() {
        assert!(edited("- x: u32,").unwrap_err().to_string().contains("2 times"));
        assert!(edited("- q: u32,").unwrap_err().to_string().contains("0 times"));
    }

    #[test]
    fn an_unknown_line_is_refused_with_what_is_known() {
        assert!(parse("edit a\nremove x").unwrap_err().to_string().contains("lines begin with"));
    }

    #[test]
    fn the_package_line_is_the_contracts() {
        assert_eq!(PACKAGE_LINE, format!("package {PROVIDER_PACKAGE}@{INTERFACE_VERSION};"));
    }
}
