//! Writes the contract's types as a constant expression, from the interface files in `wit/`.

use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::PathBuf;
use wit_parser::{Function, Handle, InterfaceId, Resolve, Type, TypeDefKind, TypeId, WorldItem};

/// The world that holds everything the contract knows.
const WORLD: &str = "full";

fn main() -> Result<()> {
    let wit = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../wit");
    println!("cargo::rerun-if-changed={}", wit.display());

    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(&wit).with_context(|| format!("parsing {}", wit.display()))?;
    let world = &resolve.worlds[resolve.select_world(&[package], Some(WORLD))?];

    let exports = interfaces(&resolve, world.exports.values(), "leasehold:provider/")?;
    let imports = interfaces(&resolve, world.imports.values(), "leasehold:host/")?;
    let resources = resources(&resolve)?;
    let source =
        format!("Contract {{ exports: &[{exports}], imports: &[{imports}], resources: &{resources:?} }}\n");

    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("contract.rs");
    std::fs::write(&out, source).with_context(|| format!("writing {}", out.display()))
}

/// Every resource of the contract and of the interfaces it uses, by its full name.
fn resources(resolve: &Resolve) -> Result<Vec<String>> {
    let resources = resolve.types.iter().filter(|(_, ty)| matches!(ty.kind, TypeDefKind::Resource));
    let mut names = resources.map(|(id, _)| resource(resolve, id)).collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn interfaces<'a>(
    resolve: &Resolve,
    items: impl Iterator<Item = &'a WorldItem>,
    prefix: &str,
) -> Result<String> {
    let mut out = String::new();
    for item in items {
        let WorldItem::Interface { id, .. } = item else { continue };
        let (name, version) = full_name(resolve, *id)?;
        if !name.starts_with(prefix) {
            continue;
        }
        let functions = resolve.interfaces[*id].functions.values();
        let functions = functions.map(|f| function(resolve, f)).collect::<Result<Vec<_>>>()?.join(", ");
        // An interface that holds only types has nothing to call and nothing to verify by itself.
        if !functions.is_empty() {
            write!(out, "Interface {{ name: {name:?}, version: {version:?}, functions: &[{functions}] }},")?;
        }
    }
    Ok(out)
}

fn full_name(resolve: &Resolve, id: InterfaceId) -> Result<(String, String)> {
    let interface = &resolve.interfaces[id];
    let package = interface.package.context("an interface outside every package")?;
    let package = &resolve.packages[package].name;
    let name = interface.name.as_deref().context("an interface without a name")?;
    let version = package.version.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok((format!("{}:{}/{name}", package.namespace, package.name), version))
}

fn function(resolve: &Resolve, function: &Function) -> Result<String> {
    let params = function.params.iter().map(|param| {
        Ok(format!("Field {{ name: {:?}, shape: {} }}", param.name, shape(resolve, &param.ty)?))
    });
    let params = params.collect::<Result<Vec<_>>>()?.join(", ");
    let result = match &function.result {
        Some(ty) => format!("Some({})", shape(resolve, ty)?),
        None => "None".into(),
    };
    Ok(format!("Function {{ name: {:?}, params: &[{params}], result: {result} }}", function.name))
}

fn shape(resolve: &Resolve, ty: &Type) -> Result<String> {
    Ok(match ty {
        Type::Id(id) => return defined(resolve, *id),
        Type::Bool => "Shape::Bool",
        Type::S8 => "Shape::S8",
        Type::U8 => "Shape::U8",
        Type::S16 => "Shape::S16",
        Type::U16 => "Shape::U16",
        Type::S32 => "Shape::S32",
        Type::U32 => "Shape::U32",
        Type::S64 => "Shape::S64",
        Type::U64 => "Shape::U64",
        Type::F32 => "Shape::F32",
        Type::F64 => "Shape::F64",
        Type::Char => "Shape::Char",
        Type::String => "Shape::String",
        other => bail!("the contract uses a type this build script does not know: {other:?}"),
    }
    .into())
}

fn defined(resolve: &Resolve, id: TypeId) -> Result<String> {
    let def = &resolve.types[id];
    let name = def.name.as_deref().unwrap_or_default();
    let by_reference = |ty: &Type| Ok::<_, anyhow::Error>(format!("&{}", shape(resolve, ty)?));
    let optional = |ty: &Option<Type>| {
        Ok::<_, anyhow::Error>(match ty {
            Some(ty) => format!("Some({})", by_reference(ty)?),
            None => "None".into(),
        })
    };
    Ok(match &def.kind {
        TypeDefKind::Type(ty) => shape(resolve, ty)?,
        TypeDefKind::List(ty) => format!("Shape::List({})", by_reference(ty)?),
        TypeDefKind::Option(ty) => format!("Shape::Option({})", by_reference(ty)?),
        TypeDefKind::Result(r) => {
            format!("Shape::Result {{ ok: {}, err: {} }}", optional(&r.ok)?, optional(&r.err)?)
        }
        TypeDefKind::Tuple(tuple) => {
            let types = tuple.types.iter().map(|ty| shape(resolve, ty)).collect::<Result<Vec<_>>>()?;
            format!("Shape::Tuple(&[{}])", types.join(", "))
        }
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter().map(|field| {
                Ok(format!("Field {{ name: {:?}, shape: {} }}", field.name, shape(resolve, &field.ty)?))
            });
            let fields = fields.collect::<Result<Vec<_>>>()?.join(", ");
            format!("Shape::Record {{ name: {name:?}, fields: &[{fields}] }}")
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter().map(|case| {
                let payload = match &case.ty {
                    Some(ty) => format!("Some({})", shape(resolve, ty)?),
                    None => "None".into(),
                };
                Ok(format!("Case {{ name: {:?}, payload: {payload} }}", case.name))
            });
            let cases = cases.collect::<Result<Vec<_>>>()?.join(", ");
            format!("Shape::Variant {{ name: {name:?}, cases: &[{cases}] }}")
        }
        TypeDefKind::Enum(e) => {
            let cases: Vec<_> = e.cases.iter().map(|case| format!("{:?}", case.name)).collect();
            format!("Shape::Enum {{ name: {name:?}, cases: &[{}] }}", cases.join(", "))
        }
        TypeDefKind::Flags(f) => {
            let flags: Vec<_> = f.flags.iter().map(|flag| format!("{:?}", flag.name)).collect();
            format!("Shape::Flags {{ name: {name:?}, flags: &[{}] }}", flags.join(", "))
        }
        TypeDefKind::Handle(Handle::Own(id)) => format!("Shape::Own({:?})", resource(resolve, *id)?),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("Shape::Borrow({:?})", resource(resolve, *id)?),
        // A resource named by itself in a signature means an owned handle.
        TypeDefKind::Resource => format!("Shape::Own({:?})", resource(resolve, id)?),
        other => bail!("the contract uses a type this build script does not know: {other:?}"),
    })
}

/// The name under which a resource is known wherever it is used: `wasi:io/streams.input-stream`.
fn resource(resolve: &Resolve, mut id: TypeId) -> Result<String> {
    while let TypeDefKind::Type(Type::Id(next)) = &resolve.types[id].kind {
        id = *next;
    }
    let def = &resolve.types[id];
    let wit_parser::TypeOwner::Interface(owner) = def.owner else { bail!("a resource outside interfaces") };
    Ok(format!("{}.{}", full_name(resolve, owner)?.0, def.name.as_deref().unwrap_or_default()))
}
