//! Compares a component's types with the contract's, down to the first difference.
//!
//! The contract's side leads, so the work is bounded by the contract however large the component's types
//! are. Names count: of parameters, fields, cases. A difference is reported at the innermost *named* place,
//! with both types as they stand there.

use super::name::Name;
use super::print;
use leasehold_bindings::shape::{Case, Field, Function, Shape};
use leasehold_contract::Difference;
use wasmtime::Engine;
use wasmtime::component::ResourceType;
use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem, Type};

/// Names of the resources a component knows. The type itself carries none.
#[derive(Debug, Default)]
pub(super) struct Resources(Vec<(ResourceType, String)>);

impl Resources {
    /// Takes in the resources of an imported or exported interface.
    pub(super) fn learn(&mut self, engine: &Engine, interface: &str, instance: &ComponentInstance) {
        let bare = Name::parse(interface).bare;
        for (name, item) in instance.exports(engine) {
            if let ComponentItem::Resource(resource) = item.ty
                && !self.0.iter().any(|(known, _)| *known == resource)
            {
                self.0.push((resource, format!("{bare}.{name}")));
            }
        }
    }

    /// The resource's full name; one that the component never named is its own.
    pub(super) fn name(&self, resource: &ResourceType) -> &str {
        let known = self.0.iter().find(|(known, _)| known == resource);
        known.map_or("a resource of its own", |(_, name)| name)
    }
}

/// A place inside a function's type.
#[derive(Clone, Copy)]
struct Place<'a> {
    resources: &'a Resources,
    path: &'a str,
}

/// The first difference between a function of the contract and one of a component. `root` names the
/// function in the path.
pub(super) fn function(
    resources: &Resources,
    root: &str,
    expected: &Function,
    found: &ComponentFunc,
) -> Option<Difference> {
    let at = |path: &str, expected: String, found: String| {
        Some(Difference { path: path.to_owned(), expected, found })
    };
    if found.async_() {
        return at(root, "a function that is not async".into(), "an async one".into());
    }
    let params = format!("{root}.params");
    let mut given = found.params();
    for (position, Field { name, shape }) in expected.params.iter().enumerate() {
        let path = format!("{params}.{name}");
        match given.next() {
            None => return at(&path, format!("a parameter of type {}", print::shape(shape)), "nothing".into()),
            Some((other, _)) if other != *name => {
                return at(&params, format!("`{name}` at position {}", position + 1), format!("`{}`", print::name(other)));
            }
            Some((_, ty)) => {
                let difference = (Place { resources, path: &path }).ty(shape, &ty);
                if difference.is_some() {
                    return difference;
                }
            }
        }
    }
    if let Some((extra, _)) = given.next() {
        return at(&params, format!("{} parameters", expected.params.len()), format!("one more, `{}`", print::name(extra)));
    }
    let result = format!("{root}.result");
    let place = Place { resources, path: &result };
    place.optional(expected.result.as_ref(), found.results().next().as_ref())
}

impl Place<'_> {
    fn differs(&self, expected: String, found: String) -> Option<Difference> {
        Some(Difference { path: self.path.to_owned(), expected, found })
    }

    fn whole(&self, expected: &Shape, found: &Type) -> Option<Difference> {
        self.differs(print::shape(expected), print::ty(self.resources, found))
    }

    /// Goes on at a named place further in.
    fn inside(&self, name: &str, expected: &Shape, found: &Type) -> Option<Difference> {
        let path = format!("{}.{name}", self.path);
        Place { resources: self.resources, path: &path }.ty(expected, found)
    }

    fn ty(&self, expected: &Shape, found: &Type) -> Option<Difference> {
        match (expected, found) {
            (Shape::List(expected_item), Type::List(list)) => {
                self.element(expected, found, expected_item, &list.ty())
            }
            (Shape::Option(expected_item), Type::Option(option)) => {
                self.element(expected, found, expected_item, &option.ty())
            }
            (Shape::Result { ok, err }, Type::Result(result)) => {
                let ok_path = format!("{}.ok", self.path);
                let err_path = format!("{}.err", self.path);
                let at = |path| Place { resources: self.resources, path };
                at(ok_path.as_str())
                    .optional(*ok, result.ok().as_ref())
                    .or_else(|| at(err_path.as_str()).optional(*err, result.err().as_ref()))
            }
            (Shape::Tuple(items), Type::Tuple(tuple)) => {
                let same = items.len() == tuple.types().len()
                    && items.iter().zip(tuple.types()).all(|(item, ty)| self.ty(item, &ty).is_none());
                if same { None } else { self.whole(expected, found) }
            }
            (Shape::Record { fields, .. }, Type::Record(record)) => {
                let found: Vec<_> = record.fields().map(|field| (field.name.to_owned(), Some(field.ty))).collect();
                let expected: Vec<_> =
                    fields.iter().map(|Field { name, shape }| (*name, Some(shape))).collect();
                self.members("field", &expected, &found)
            }
            (Shape::Variant { cases, .. }, Type::Variant(variant)) => {
                let found: Vec<_> = variant.cases().map(|case| (case.name.to_owned(), case.ty)).collect();
                let expected: Vec<_> =
                    cases.iter().map(|Case { name, payload }| (*name, payload.as_ref())).collect();
                self.members("case", &expected, &found)
            }
            (Shape::Enum { cases, .. }, Type::Enum(found)) => self.names("case", cases, found.names()),
            (Shape::Flags { flags, .. }, Type::Flags(found)) => self.names("flag", flags, found.names()),
            (Shape::Own(name), Type::Own(resource)) | (Shape::Borrow(name), Type::Borrow(resource)) => {
                if self.resources.name(resource) == *name { None } else { self.whole(expected, found) }
            }
            _ if primitive(expected).is_some_and(|expected| expected == *found) => None,
            _ => self.whole(expected, found),
        }
    }

    /// An element has no name of its own: when it is another type altogether, the container is named.
    fn element(&self, outer: &Shape, outer_found: &Type, item: &Shape, item_found: &Type) -> Option<Difference> {
        let path = format!("{}[]", self.path);
        let difference = Place { resources: self.resources, path: &path }.ty(item, item_found)?;
        if difference.path == path { self.whole(outer, outer_found) } else { Some(difference) }
    }

    fn optional(&self, expected: Option<&Shape>, found: Option<&Type>) -> Option<Difference> {
        match (expected, found) {
            (None, None) => None,
            (Some(expected), Some(found)) => self.ty(expected, found),
            (Some(expected), None) => self.differs(print::shape(expected), "nothing".into()),
            (None, Some(found)) => self.differs("nothing".into(), print::ty(self.resources, found)),
        }
    }

    fn members(
        &self,
        what: &str,
        expected: &[(&str, Option<&Shape>)],
        found: &[(String, Option<Type>)],
    ) -> Option<Difference> {
        let names: Vec<_> = expected.iter().map(|(name, _)| *name).collect();
        self.names(what, &names, found.iter().map(|(name, _)| name.as_str())).or_else(|| {
            expected.iter().zip(found).find_map(|((name, expected), (_, found))| match (expected, found) {
                (Some(expected), Some(found)) => self.inside(name, expected, found),
                (None, None) => None,
                _ => {
                    let path = format!("{}.{name}", self.path);
                    Place { resources: self.resources, path: &path }.optional(*expected, found.as_ref())
                }
            })
        })
    }

    /// Members are matched by position, as values are laid out; so the first name that differs tells.
    fn names<'n>(
        &self,
        what: &str,
        expected: &[&str],
        found: impl Iterator<Item = &'n str>,
    ) -> Option<Difference> {
        let found: Vec<_> = found.collect();
        let shown = |name: Option<&&str>| name.map_or("nothing".to_owned(), |name| format!("`{}`", print::name(name)));
        let longest = expected.len().max(found.len());
        let position = (0..longest).find(|position| expected.get(*position) != found.get(*position))?;
        match expected.get(position) {
            Some(name) => {
                let expected = format!("{what} `{name}` at position {}", position + 1);
                self.differs(expected, shown(found.get(position)))
            }
            None => {
                self.differs(format!("{position} {what}s"), format!("one more, {}", shown(found.get(position))))
            }
        }
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
