//! Fixtures written by hand as core modules in text form.
//!
//! `guests/fixtures/text/<name>.wat` starts with comment lines. Of these the builder reads:
//!
//! ```text
//! ;; exports: acquire-lease delete-template   interfaces of the contract that the component exports
//! ;; world: minimal                           or: a world of the contract
//! ;; beside: 300 x empty                      instances of `text/beside/empty.wat` to add
//! ```
//!
//! A module beside gets no imports and exports nothing; it is there for its memory, its start function
//! or its mere number.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::wit::Contract;
use crate::{beside, encode, generated, layout};

#[derive(Debug, Default, PartialEq, Eq)]
struct Header {
    exports: Vec<String>,
    world: Option<String>,
    beside: Option<(u32, String)>,
}

/// Name and component of every text fixture.
///
/// # Errors
///
/// The first file that is no module or does not fit its world, named.
pub(crate) fn components(contract: &Contract) -> Result<Vec<(String, Vec<u8>)>> {
    let mut made = Vec::new();
    for (name, path) in sources(&layout::fixtures_dir().join("text"), "wat")? {
        let bytes = component(contract, &path)
            .with_context(|| format!("{} does not become a component", path.display()))?;
        made.push((name, bytes));
    }
    Ok(made)
}

/// Files with this extension in a directory, by name.
pub(crate) fn sources(dir: &Path, extension: &str) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == extension)
            && let Some(stem) = path.file_stem().and_then(|stem| stem.to_str())
        {
            found.push((stem.to_string(), path));
        }
    }
    found.sort();
    Ok(found)
}

fn component(contract: &Contract, path: &Path) -> Result<Vec<u8>> {
    let header = parse(&fs::read_to_string(path)?)?;
    let (resolve, world) = match &header.world {
        Some(name) => contract.world(name)?,
        None => {
            let items: Vec<String> = header.exports.iter().map(|name| generated::export(name)).collect();
            contract.world_of(&items)?
        }
    };
    let component = encode::core(wat::parse_file(path)?, &resolve, world)?;
    match header.beside {
        None => Ok(component),
        Some((count, name)) => {
            let module = layout::fixtures_dir().join("text/beside").join(format!("{name}.wat"));
            beside::add(component, &wat::parse_file(module)?, count)
        }
    }
}

fn parse(text: &str) -> Result<Header> {
    let mut header = Header::default();
    for line in text.lines().map_while(|line| line.strip_prefix(";;")) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key.trim() {
            "exports" => header.exports = value.split_whitespace().map(str::to_string).collect(),
            "world" => header.world = Some(value.to_string()),
            "beside" => {
                let (count, name) =
                    value.split_once(" x ").context("write `;; beside: <number> x <name>`")?;
                header.beside = Some((count.trim().parse()?, name.trim().to_string()));
            }
            _ => {}
        }
    }
    if header.exports.is_empty() == header.world.is_none() {
        bail!(
            "the first comment lines must hold `;; exports: <interfaces>` or `;; world: <name>`, one of the two"
        );
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_up_to_the_first_other_line() {
        let header = parse(";; Loops.\n;; exports: a b\n;; beside: 3 x c\n(module)\n;; world: d\n").unwrap();
        assert_eq!(header.exports, ["a", "b"]);
        assert_eq!(header.beside, Some((3, "c".to_string())));
        assert_eq!(header.world, None);
    }

    #[test]
    fn a_file_without_a_world_is_refused() {
        assert!(parse("(module)").unwrap_err().to_string().contains("one of the two"));
    }
}
