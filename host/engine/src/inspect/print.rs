//! Types as text, for people.
//!
//! A component's types may be huge by design of an attacker, so their text is bounded in depth and length.

use super::compare::Resources;
use leasehold_bindings::shape::{Case, Field, Shape};
use wasmtime::component::types::Type;

/// How deep a printed type goes; deeper parts are `…`. Deeper tells a reader nothing.
const DEPTH_MAX: usize = 3;

/// Members of a record, variant, enum or tuple that are printed.
const MEMBERS_MAX: usize = 8;

/// Characters of a member's name that are printed; names may have a hundred thousand.
const NAME_MAX: usize = 64;

/// Characters of a whole type that are printed.
const TYPE_MAX: usize = 480;

/// A type of the contract.
pub(super) fn shape(shape: &Shape) -> String {
    cut(&contract(shape, 0), TYPE_MAX)
}

/// A type of a component.
pub(super) fn ty(resources: &Resources, ty: &Type) -> String {
    cut(&component(resources, ty, 0), TYPE_MAX)
}

/// The name of a member.
pub(super) fn name(name: &str) -> String {
    cut(name, NAME_MAX)
}

fn contract(shape: &Shape, depth: usize) -> String {
    if depth > DEPTH_MAX {
        return "…".into();
    }
    let inner = |shape: &Shape| contract(shape, depth + 1);
    let optional = |shape: &Option<&Shape>| shape.map_or_else(|| "_".into(), inner);
    match shape {
        Shape::List(item) => format!("list<{}>", inner(item)),
        Shape::Option(item) => format!("option<{}>", inner(item)),
        Shape::Result { ok, err } => format!("result<{}, {}>", optional(ok), optional(err)),
        Shape::Tuple(items) => format!("tuple<{}>", joined(items.iter().map(inner))),
        Shape::Record { fields, .. } => {
            let fields = fields.iter().map(|Field { name, shape }| format!("{name}: {}", inner(shape)));
            format!("record {{ {} }}", joined(fields))
        }
        Shape::Variant { cases, .. } => {
            let cases = cases.iter().map(|Case { name, payload }| case(name, payload.as_ref().map(inner)));
            format!("variant {{ {} }}", joined(cases))
        }
        Shape::Enum { cases, .. } => format!("enum {{ {} }}", joined(cases.iter().map(ToString::to_string))),
        Shape::Flags { flags, .. } => {
            format!("flags {{ {} }}", joined(flags.iter().map(ToString::to_string)))
        }
        Shape::Own(name) => format!("own<{name}>"),
        Shape::Borrow(name) => format!("borrow<{name}>"),
        primitive => format!("{primitive:?}").to_lowercase(),
    }
}

fn component(resources: &Resources, ty: &Type, depth: usize) -> String {
    if depth > DEPTH_MAX {
        return "…".into();
    }
    let inner = |ty: Type| component(resources, &ty, depth + 1);
    let optional = |ty: Option<Type>| ty.map_or_else(|| "_".into(), inner);
    match ty {
        Type::List(list) => format!("list<{}>", inner(list.ty())),
        Type::FixedLengthList(list) => format!("list<{}, {}>", inner(list.ty()), list.len()),
        Type::Map(map) => format!("map<{}, {}>", inner(map.key()), inner(map.value())),
        Type::Option(option) => format!("option<{}>", inner(option.ty())),
        Type::Result(result) => format!("result<{}, {}>", optional(result.ok()), optional(result.err())),
        Type::Tuple(tuple) => format!("tuple<{}>", joined(tuple.types().map(inner))),
        Type::Record(record) => {
            let fields = record.fields().map(|field| format!("{}: {}", name(field.name), inner(field.ty)));
            format!("record {{ {} }}", joined(fields))
        }
        Type::Variant(variant) => {
            let cases = variant.cases().map(|found| case(found.name, found.ty.map(inner)));
            format!("variant {{ {} }}", joined(cases))
        }
        Type::Enum(e) => format!("enum {{ {} }}", joined(e.names().map(name))),
        Type::Flags(flags) => format!("flags {{ {} }}", joined(flags.names().map(name))),
        Type::Own(resource) => format!("own<{}>", resources.name(resource)),
        Type::Borrow(resource) => format!("borrow<{}>", resources.name(resource)),
        Type::Future(future) => format!("future<{}>", optional(future.ty())),
        Type::Stream(stream) => format!("stream<{}>", optional(stream.ty())),
        Type::Float32 => "f32".into(),
        Type::Float64 => "f64".into(),
        Type::ErrorContext => "error-context".into(),
        primitive => format!("{primitive:?}").to_lowercase(),
    }
}

fn case(case: &str, payload: Option<String>) -> String {
    payload.map_or_else(|| name(case), |payload| format!("{}({payload})", name(case)))
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn joined(members: impl ExactSizeIterator<Item = String>) -> String {
    let left_out = members.len().saturating_sub(MEMBERS_MAX);
    let mut shown: Vec<_> = members.take(MEMBERS_MAX).collect();
    if left_out > 0 {
        shown.push(format!("… {left_out} more"));
    }
    shown.join(", ")
}
