//! Compares a component's types with the contract's, down to the first difference.
//!
//! The contract's side leads, so the work is bounded by the contract however large the component's types
//! are. Names count: of parameters, fields, cases. A difference is reported at the innermost *named* place,
//! with both types as they stand there.

use super::name::Name;
use super::print;
use leasehold_bindings::shape::{CONTRACT, Case, Field, Function, Shape};
use leasehold_contract::Difference;
use wasmtime::Engine;
use wasmtime::component::ResourceType;
use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem, Type};

/// Names of the resources a component knows. The type itself carries none.
#[derive(Debug, Default)]
pub(super) struct Resources(Vec<(ResourceType, &'static str)>);

impl Resources {
    /// Takes in the resources of an imported or exported interface. Only those that the contract has can be
    /// asked for, so a component's own thousands are passed over.
    pub(super) fn learn(&mut self, engine: &Engine, interface: &str, instance: &ComponentInstance) {
        let bare = Name::parse(interface).bare;
        for full in CONTRACT.resources {
            let Some(name) = full.strip_prefix(bare).and_then(|rest| rest.strip_prefix('.')) else {
                continue;
            };
            if let Some(ComponentItem::Resource(resource)) =
                instance.get_export(engine, name).map(|item| item.ty)
                && !self.0.iter().any(|(known, _)| *known == resource)
            {
                self.0.push((resource, full));
            }
        }
    }

    /// The resource's full name; one that the component never named is its own.
    pub(super) fn name(&self, resource: &ResourceType) -> &str {
        let known = self.0.iter().find(|(known, _)| known == resource);
        known.map_or("a resource of its own", |(_, name)| name)
    }
}

/// A place inside a function's type. It knows where it lies; the path is written only for a difference.
#[derive(Clone, Copy)]
struct Place<'a> {
    resources: &'a Resources,
    outer: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    /// A named part: a function, a parameter, a field, a case.
    Named(&'a str),
    /// The element of a list or an option, which has no name.
    Element,
}

/// The first difference between a function of the contract and one of a component. `root` names the
/// function in the path.
pub(super) fn function(
    resources: &Resources,
    root: &str,
    expected: &Function,
    found: &ComponentFunc,
) -> Option<Difference> {
    let root = Place { resources, outer: None, step: Step::Named(root) };
    if found.async_() {
        return root.differs("a function that is not async".into(), "an async one".into());
    }
    let params = root.inside("params");
    let mut given = found.params();
    for (position, Field { name, shape }) in expected.params.iter().enumerate() {
        match given.next() {
            None => {
                let expected = format!("a parameter of type {}", print::shape(shape));
                return params.inside(name).differs(expected, "nothing".into());
            }
            Some((other, _)) if other != *name => {
                let expected = format!("`{name}` at position {}", position + 1);
                return params.differs(expected, format!("`{}`", print::name(other)));
            }
            Some((_, ty)) => {
                if let Some(difference) = params.inside(name).ty(shape, &ty) {
                    return Some(difference);
                }
            }
        }
    }
    if let Some((extra, _)) = given.next() {
        let expected = format!("{} parameters", expected.params.len());
        return params.differs(expected, format!("one more, `{}`", print::name(extra)));
    }
    root.inside("result").optional(expected.result.as_ref(), found.results().next().as_ref())
}

impl Place<'_> {
    fn inside<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place { resources: self.resources, outer: Some(self), step: Step::Named(name) }
    }

    fn element(&self) -> Place<'_> {
        Place { resources: self.resources, outer: Some(self), step: Step::Element }
    }

    fn path(&self) -> String {
        match (self.outer, self.step) {
            (None, Step::Named(name)) => name.to_owned(),
            (None, Step::Element) => String::new(),
            (Some(outer), Step::Named(name)) => format!("{}.{name}", outer.path()),
            (Some(outer), Step::Element) => format!("{}[]", outer.path()),
        }
    }

    fn differs(&self, expected: String, found: String) -> Option<Difference> {
        Some(Difference { path: self.path(), expected, found })
    }

    fn whole(&self, expected: &Shape, found: &Type) -> Option<Difference> {
        self.differs(print::shape(expected), print::ty(self.resources, found))
    }

    fn ty(&self, expected: &Shape, found: &Type) -> Option<Difference> {
        match (expected, found) {
            (Shape::List(item), Type::List(list)) => self.item(expected, found, item, &list.ty()),
            (Shape::Option(item), Type::Option(option)) => self.item(expected, found, item, &option.ty()),
            (Shape::Result { ok, err }, Type::Result(result)) => self
                .inside("ok")
                .optional(*ok, result.ok().as_ref())
                .or_else(|| self.inside("err").optional(*err, result.err().as_ref())),
            (Shape::Tuple(items), Type::Tuple(tuple)) => {
                let same = items.len() == tuple.types().len()
                    && items.iter().zip(tuple.types()).all(|(item, ty)| self.ty(item, &ty).is_none());
                if same { None } else { self.whole(expected, found) }
            }
            (Shape::Record { fields, .. }, Type::Record(record)) => {
                let names = fields.iter().map(|field| field.name);
                self.names("field", names, record.fields().map(|field| field.name)).or_else(|| {
                    let pairs = fields.iter().zip(record.fields());
                    pairs
                        .into_iter()
                        .find_map(|(Field { name, shape }, found)| self.inside(name).ty(shape, &found.ty))
                })
            }
            (Shape::Variant { cases, .. }, Type::Variant(variant)) => {
                let names = cases.iter().map(|case| case.name);
                self.names("case", names, variant.cases().map(|case| case.name)).or_else(|| {
                    let pairs = cases.iter().zip(variant.cases());
                    pairs.into_iter().find_map(|(Case { name, payload }, found)| {
                        self.inside(name).optional(payload.as_ref(), found.ty.as_ref())
                    })
                })
            }
            (Shape::Enum { cases, .. }, Type::Enum(found)) => {
                self.names("case", cases.iter().copied(), found.names())
            }
            (Shape::Flags { flags, .. }, Type::Flags(found)) => {
                self.names("flag", flags.iter().copied(), found.names())
            }
            (Shape::Own(name), Type::Own(resource)) | (Shape::Borrow(name), Type::Borrow(resource)) => {
                if self.resources.name(resource) == *name { None } else { self.whole(expected, found) }
            }
            _ if primitive(expected).is_some_and(|expected| expected == *found) => None,
            _ => self.whole(expected, found),
        }
    }

    /// An element has no name of its own: when it is another type altogether, the container is named.
    fn item(&self, outer: &Shape, outer_found: &Type, item: &Shape, item_found: &Type) -> Option<Difference> {
        let element = self.element();
        let difference = element.ty(item, item_found)?;
        if difference.path == element.path() { self.whole(outer, outer_found) } else { Some(difference) }
    }

    fn optional(&self, expected: Option<&Shape>, found: Option<&Type>) -> Option<Difference> {
        match (expected, found) {
            (None, None) => None,
            (Some(expected), Some(found)) => self.ty(expected, found),
            (Some(expected), None) => self.differs(print::shape(expected), "nothing".into()),
            (None, Some(found)) => self.differs("nothing".into(), print::ty(self.resources, found)),
        }
    }

    /// Members are matched by position, as values are laid out; so the first name that differs tells.
    fn names<'n>(
        &self,
        what: &str,
        expected: impl ExactSizeIterator<Item = &'n str>,
        mut found: impl Iterator<Item = &'n str>,
    ) -> Option<Difference> {
        let count = expected.len();
        for (position, name) in expected.enumerate() {
            let other = found.next();
            if other != Some(name) {
                let expected = format!("{what} `{name}` at position {}", position + 1);
                let other = other.map_or("nothing".into(), |other| format!("`{}`", print::name(other)));
                return self.differs(expected, other);
            }
        }
        let extra = found.next()?;
        self.differs(format!("{count} {what}s"), format!("one more, `{}`", print::name(extra)))
    }
}

fn primitive(shape: &Shape) -> Option<Type> {
    Some(match shape {
        Shape::Bool => Type::Bool,
        Shape::S8 => Type::S8,
        Shape::U8 => Type::U8,
        Shape::S16 => Type::S16,
        Shape::U16 => Type::U16,
        Shape::S32 => Type::S32,
        Shape::U32 => Type::U32,
        Shape::S64 => Type::S64,
        Shape::U64 => Type::U64,
        Shape::F32 => Type::Float32,
        Shape::F64 => Type::Float64,
        Shape::Char => Type::Char,
        Shape::String => Type::String,
        _ => return None,
    })
}
