//! Adds core instances to a finished component.
//!
//! Encoders make one component of one module. A component with many instances or several memories is
//! made by appending two sections: the module, and instances of it. Indices grow in file order, so
//! appending disturbs nothing, and start functions run after those of the component proper.

use anyhow::{Context, Result, ensure};

/// Length of magic number, version and layer.
const PREAMBLE: usize = 8;
/// Section of one core module.
const CORE_MODULE: u8 = 1;
/// Section of core instances.
const CORE_INSTANCE: u8 = 2;

/// Adds `count` instances of `module`, which must not import anything.
pub(crate) fn add(mut component: Vec<u8>, module: &[u8], count: u32) -> Result<Vec<u8>> {
    let index = core_modules(&component)?;
    component.push(CORE_MODULE);
    number(&mut component, u32::try_from(module.len())?);
    component.extend_from_slice(module);

    let mut instances = Vec::new();
    number(&mut instances, count);
    for _ in 0..count {
        instances.push(0); // instantiate, rather than bundle exports
        number(&mut instances, index);
        number(&mut instances, 0); // no arguments
    }
    component.push(CORE_INSTANCE);
    number(&mut component, u32::try_from(instances.len())?);
    component.extend_from_slice(&instances);
    // Decoding validates, which nothing else does after the encoder.
    wit_component::decode(&component).context("the component with modules beside is not valid")?;
    Ok(component)
}

/// Counts the core modules at the top level of a component.
fn core_modules(component: &[u8]) -> Result<u32> {
    let mut rest = component.get(PREAMBLE..).context("too short for a component")?;
    let mut modules = 0;
    while let Some((&id, tail)) = rest.split_first() {
        let (length, tail) = read_number(tail)?;
        modules += u32::from(id == CORE_MODULE);
        rest = tail.get(length as usize..).context("a section ends behind the component")?;
    }
    Ok(modules)
}

/// Writes an unsigned LEB128 number.
fn number(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads an unsigned LEB128 number.
fn read_number(bytes: &[u8]) -> Result<(u32, &[u8])> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        ensure!(at < 5, "a number is longer than 32 bits");
        value |= u32::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Ok((value, &bytes[at + 1..]));
        }
    }
    anyhow::bail!("a number is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_writing_and_reading() {
        for value in [0, 1, 127, 128, 300, 1 << 21, u32::MAX] {
            let mut bytes = Vec::new();
            number(&mut bytes, value);
            assert_eq!(read_number(&bytes).unwrap(), (value, &[][..]));
        }
        assert!(read_number(&[0x80]).is_err());
    }

    #[test]
    fn modules_are_counted_behind_those_already_there() {
        let empty = wat::parse_str("(component (core module) (core module))").unwrap();
        assert_eq!(core_modules(&empty).unwrap(), 2);
        let module = wat::parse_str("(module)").unwrap();
        assert_eq!(core_modules(&add(empty, &module, 3).unwrap()).unwrap(), 3);
    }
}
