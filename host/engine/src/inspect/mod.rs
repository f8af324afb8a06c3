//! What a component really exports and imports, read from its type. No guest code runs for this.

mod compare;
mod name;
mod print;

use compare::Resources;
use leasehold_bindings::shape::{CONTRACT, Interface};
use leasehold_contract::authority::{Need, Permission, need};
use leasehold_contract::method::{INTERFACE_VERSION, METHODS, MethodInfo, PROVIDER_PACKAGE};
use leasehold_contract::{Difference, Method, Verdict, Verification};
use name::Name;
use std::collections::BTreeMap;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::{ComponentInstance, ComponentItem};

/// Everything that reading a component's type says.
#[derive(Clone, Debug)]
pub struct Inspection {
    verification: Verification,
    unknown_exports: Vec<String>,
    other_exports: Vec<String>,
    imports: Vec<Import>,
    demand: Option<Demand>,
}

/// One thing a component wants from its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The interface, with the version the component names.
    pub name: String,
    /// What it needs.
    pub need: Wanted,
    /// Where its type differs from the contract's, for interfaces of the host package.
    pub difference: Option<Difference>,
}

/// What an import needs, as far as this host knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: it reaches nothing outside the call.
    Nothing,
    /// Any one of these permissions.
    AnyOf(&'static [Permission]),
    /// No permission covers it; the text says what to use instead.
    Never(&'static str),
    /// This host knows no such interface.
    Unknown,
}

/// What instances of a component need, where its structure tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Memories of one instance.
    pub memories: u32,
    /// Bytes that the largest of them has at the start.
    pub memory_bytes: u64,
    /// Tables of one instance.
    pub tables: u32,
    /// Elements that the largest of them has at the start.
    pub table_elements: u64,
}

impl Inspection {
    /// Reads a component's type.
    pub(crate) fn of(engine: &Engine, component: &Component) -> Inspection {
        let ty = component.component_type();
        let mut resources = Resources::default();
        let mut imports = Vec::new();
        for (name, item) in ty.imports(engine) {
            // A resource of a version that is not served is not the contract's, whatever its name.
            if let (ComponentItem::ComponentInstance(instance), Some(_)) = (&item.ty, need(name)) {
                resources.learn(engine, name, instance);
            }
            imports.push((name.to_owned(), item.ty));
        }
        let mut found = BTreeMap::new();
        let (mut unknown_exports, mut other_exports) = (Vec::new(), Vec::new());
        for (full, item) in ty.exports(engine) {
            let name = Name::parse(full);
            match item.ty {
                ComponentItem::ComponentInstance(instance) if CONTRACT.export(name.bare).is_some() => {
                    resources.learn(engine, full, &instance);
                    found
                        .entry(name.bare.to_owned())
                        .or_insert_with(Vec::new)
                        .push((full.to_owned(), instance));
                }
                _ if name.is_of(PROVIDER_PACKAGE) => unknown_exports.push(full.to_owned()),
                _ => other_exports.push(full.to_owned()),
            }
        }
        let mut verification = BTreeMap::new();
        for interface in CONTRACT.exports {
            let versions = found.remove(interface.name).unwrap_or_default();
            let verdicts = verdicts(engine, &resources, interface, &versions, &mut unknown_exports);
            verification.extend(verdicts);
        }
        let imports =
            imports.into_iter().map(|(name, item)| import(engine, &resources, name, &item)).collect();
        Inspection {
            verification: verification.into_iter().collect(),
            unknown_exports,
            other_exports,
            imports,
            demand: demand(component),
        }
    }

    /// The verdict on each method.
    pub fn verification(&self) -> &Verification {
        &self.verification
    }

    /// Exports under the contract's package name that the contract does not know.
    pub fn unknown_exports(&self) -> &[String] {
        &self.unknown_exports
    }

    /// Exports that are none of the contract's business, such as a language tool's own `init`.
    pub fn other_exports(&self) -> &[String] {
        &self.other_exports
    }

    /// Everything the component wants from its host.
    pub fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// What an instance needs; none when that depends on code.
    pub fn demand(&self) -> Option<Demand> {
        self.demand
    }
}

impl Import {
    /// The interface without its version.
    pub fn bare_name(&self) -> &str {
        Name::parse(&self.name).bare
    }
}

/// The methods an interface holds.
fn methods_of(interface: &Interface) -> impl Iterator<Item = &'static MethodInfo> {
    let short = interface.name.rsplit('/').next().unwrap_or_default();
    METHODS.iter().filter(move |info| info.interface == short)
}

fn verdicts(
    engine: &Engine,
    resources: &Resources,
    interface: &'static Interface,
    versions: &[(String, ComponentInstance)],
    unknown: &mut Vec<String>,
) -> Vec<(Method, Verdict)> {
    // The very one that the engine will call: the exact version, else the latest compatible one.
    let served = versions
        .iter()
        .filter(|(full, _)| Name::parse(full).is_served(interface.version))
        .max_by_key(|(full, _)| Name::parse(full).preference(interface.version));
    // Whatever else is exported of this interface is not used, and its author should know.
    let others = versions.iter().filter(|(full, _)| served.is_none_or(|(served, _)| served != full));
    unknown.extend(others.map(|(full, _)| full.clone()));
    let Some((_, instance)) = served else {
        let verdict = match versions.first() {
            None => Verdict::Absent,
            Some((full, _)) => Verdict::UnknownVersion {
                found: Name::parse(full).version.unwrap_or("none").to_owned(),
                served: vec![INTERFACE_VERSION.to_owned()],
            },
        };
        return methods_of(interface).map(|info| (info.method, verdict.clone())).collect();
    };

    let mut verdicts: Vec<_> = methods_of(interface)
        .map(|info| (info.method, one(engine, resources, interface, instance, info.function)))
        .collect();
    // The functions of an interface are all or none: one that cannot be called takes the others with it.
    let fault = verdicts.iter().find_map(|(method, verdict)| match verdict {
        Verdict::Verified => None,
        Verdict::WrongShape(difference) => Some(difference.clone()),
        _ => Some(Difference {
            path: root(interface, method.info().function),
            expected: "a function".into(),
            found: "nothing".into(),
        }),
    });
    if let Some(fault) = fault {
        for (_, verdict) in verdicts.iter_mut().filter(|(_, verdict)| verdict.is_verified()) {
            *verdict = Verdict::WrongShape(fault.clone());
        }
    }
    for (function, _) in instance.exports(engine).filter(|(_, item)| is_func(&item.ty)) {
        if interface.function(function).is_none() {
            unknown.push(format!("{}.{function}", interface.name));
        }
    }
    verdicts
}

fn is_func(item: &ComponentItem) -> bool {
    matches!(item, ComponentItem::ComponentFunc(_))
}

fn one(
    engine: &Engine,
    resources: &Resources,
    interface: &'static Interface,
    instance: &ComponentInstance,
    function: &str,
) -> Verdict {
    let item = instance.get_export(engine, function).map(|item| item.ty);
    let difference = match (interface.function(function), item) {
        (None, _) | (_, None) => return Verdict::Absent,
        (Some(expected), Some(ComponentItem::ComponentFunc(found))) => {
            compare::function(resources, &root(interface, function), expected, &found)
        }
        (Some(_), Some(_)) => Some(Difference {
            path: root(interface, function),
            expected: "a function".into(),
            found: "something else".into(),
        }),
    };
    difference.map_or(Verdict::Verified, Verdict::WrongShape)
}

/// How a path names a function: `execute`, but `interactive-setup.start`.
fn root(interface: &Interface, function: &str) -> String {
    match interface.name.rsplit('/').next() {
        Some(short) if short != function => format!("{short}.{function}"),
        _ => function.to_owned(),
    }
}

fn import(engine: &Engine, resources: &Resources, name: String, item: &ComponentItem) -> Import {
    let parsed = Name::parse(&name);
    // Only interfaces are imported by the contract; anything else of that name is something else.
    let known = matches!(item, ComponentItem::ComponentInstance(_)).then(|| need(&name)).flatten();
    let need = match known {
        Some(Need::Nothing) => Wanted::Nothing,
        Some(Need::AnyOf(permissions)) => Wanted::AnyOf(permissions),
        Some(Need::Never(instead)) => Wanted::Never(instead),
        None => Wanted::Unknown,
    };
    let difference = match (CONTRACT.import(parsed.bare), item) {
        (Some(interface), ComponentItem::ComponentInstance(instance)) => {
            import_difference(engine, resources, interface, instance)
        }
        _ => None,
    };
    Import { name, need, difference }
}

/// A component imports only the functions it uses, so only those are compared.
fn import_difference(
    engine: &Engine,
    resources: &Resources,
    interface: &'static Interface,
    instance: &ComponentInstance,
) -> Option<Difference> {
    instance.exports(engine).filter(|(_, item)| is_func(&item.ty)).find_map(|(name, item)| {
        match (interface.function(name), item.ty) {
            (Some(expected), ComponentItem::ComponentFunc(found)) => {
                compare::function(resources, &root(interface, name), expected, &found)
            }
            _ => Some(Difference {
                path: root(interface, name),
                expected: format!("a function of {}", interface.name),
                found: "one that the contract does not have".into(),
            }),
        }
    })
}

fn demand(component: &Component) -> Option<Demand> {
    /// Bytes of a page of memory.
    const PAGE: u64 = 65_536;
    component.resources_required().map(|required| Demand {
        memories: required.num_memories,
        memory_bytes: required.max_initial_memory_size.unwrap_or(0).saturating_mul(PAGE),
        tables: required.num_tables,
        table_elements: required.max_initial_table_size.unwrap_or(0),
    })
}
