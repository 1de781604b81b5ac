//! Sweeps: one experiment at every point of a grid. Each point is laid over the scenario in the
//! same way as a variant.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use serde::Serialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    error::Mistake,
    ticks::{Scale, Ticks, quoted},
};

/// The most points of one sweep: each is a whole scenario in memory.
const POINTS_MAX: usize = 10_000;

/// The keys of an axis that is written as a table.
const KEYS: [&str; 6] = ["from", "to", "step", "points", "values", "name"];

/// The coordinate of a point on one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coordinate {
    /// The name of the axis: the last key of its path, or the name that the file gives it.
    pub axis: String,
    /// The value as the file would write it.
    pub value: String,
    /// The value as a number, if it is one: a time in seconds, a rate in percent.
    pub number: Option<f64>,
}

/// A key of the scenario, and the values that it takes.
#[derive(Debug, Clone)]
pub(super) struct Axis<'i> {
    name: String,
    path: Vec<String>,
    /// Its position in the file.
    span: Range<usize>,
    values: Vec<Value<'i>>,
}

/// One value of an axis.
#[derive(Debug, Clone)]
enum Value<'i> {
    /// A value that is written in the file.
    Listed(Spanned<DeValue<'i>>),
    /// A value of a range, between two that are written in the file: its TOML.
    Between(String),
}

impl Value<'_> {
    /// Returns the text by which values are compared: `1s` and `1000ms` are one value.
    fn text(&self) -> String {
        match self {
            Value::Between(toml) => toml.trim_matches('"').to_owned(),
            Value::Listed(value) => match (value.get_ref(), Ticks::read(value.get_ref())) {
                (_, Some(ticks)) => ticks.to_string(),
                (DeValue::String(text), None) => text.to_string(),
                (other, None) => plain(other).to_string(),
            },
        }
    }
}

/// Converts a value without the positions of its parts.
fn plain(value: &DeValue<'_>) -> toml::Value {
    match value {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Boolean(is) => toml::Value::Boolean(*is),
        DeValue::Array(values) => {
            toml::Value::Array(values.iter().map(|value| plain(value.get_ref())).collect())
        }
        DeValue::Table(table) => {
            let keys = table.iter().map(|(key, value)| (key.get_ref().to_string(), plain(value.get_ref())));
            toml::Value::Table(keys.collect())
        }
        DeValue::Integer(number) => toml::Value::String(number.to_string()),
        DeValue::Float(number) => toml::Value::String(number.to_string()),
        DeValue::Datetime(instant) => toml::Value::Datetime(*instant),
    }
}

/// A value that is set for a key from outside the file, such as `fault.jump.clock_step.by=+5s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    path: Vec<String>,
    /// As TOML.
    value: String,
}

impl std::str::FromStr for Setting {
    type Err = String;

    /// Reads `path=value`. A value that is not valid TOML is a text, so that durations need no
    /// quotes.
    fn from_str(text: &str) -> Result<Setting, String> {
        let form = || format!("expected key=value, such as network.latency=5ms, found {text:?}");
        let (path, value) = text.split_once('=').ok_or_else(form)?;
        let path: Vec<String> = path.split('.').map(|key| key.trim().to_owned()).collect();
        if path.iter().any(String::is_empty) {
            return Err(form());
        }
        let value = value.trim();
        let value = if DeValue::parse(value).is_ok() { value.to_owned() } else { quoted(value) };
        Ok(Setting { path, value })
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.path.join("."), self.value.trim_matches('"'))
    }
}

impl Setting {
    /// Sets the key at this path to this value.
    pub fn of(path: &str, value: Ticks) -> Setting {
        Setting { path: path.split('.').map(str::to_owned).collect(), value: value.toml() }
    }

    /// Checks that the key may be set from outside.
    fn check(&self) -> Result<(), Mistake> {
        let message = match &*self.path[0] {
            "sweep" => {
                "an axis of a sweep is set by its key alone, which takes the axis away: network.latency=5ms"
            }
            "variant" => "a variant is chosen by FILE#VARIANT, and its keys are set as those of the file",
            _ => return Ok(()),
        };
        Err(Mistake::at(0..0, message))
    }

    /// Sets the key in a table. It refuses keys of a fault, host or link that does not exist,
    /// because they would make half of a new one.
    pub(super) fn lay<'i>(&'i self, on: &mut DeTable<'i>) -> Result<(), Mistake> {
        self.check()?;
        if let [kind, name, _, ..] = &self.path[..]
            && NAMED.contains(&&**kind)
        {
            let there = on.get(&**kind).map(Spanned::get_ref);
            let known: Vec<&str> = match there {
                Some(DeValue::Table(there)) => there.keys().map(|key| &**key.get_ref()).collect(),
                _ => Vec::new(),
            };
            if !known.contains(&&**name) {
                return Err(Mistake::unknown(0..0, kind, name, known.into_iter()));
            }
        }
        let value = DeValue::parse(&self.value).map_err(|error| Mistake::of_toml(&error))?.into_inner();
        put(on, &self.path, Spanned::new(0..0, value))
    }

    /// Returns true if both set the same key.
    pub(super) fn is_of_same_key(&self, other: &Setting) -> bool {
        self.path == other.path
    }

    /// Returns true if the setting is for the key of this axis.
    pub(super) fn is_of(&self, axis: &Axis<'_>) -> bool {
        self.path == axis.path
    }
}

/// The tables whose entries get their names from the author of the file.
const NAMED: [&str; 5] = ["client", "fault", "link", "node", "sentinel"];

/// Removes `[sweep]` from the table, and reads its axes in the order of the file.
pub(super) fn take<'i>(root: &mut DeTable<'i>) -> Result<Vec<Axis<'i>>, Mistake> {
    let Some(sweep) = root.remove("sweep") else { return Ok(Vec::new()) };
    let span = sweep.span();
    let DeValue::Table(sweep) = sweep.into_inner() else {
        let message = "expected a table of axes: [sweep] with \"network.latency\" = [\"1ms\", \"5ms\"]";
        return Err(Mistake::at(span, message));
    };
    let mut axes = Vec::new();
    collect(&sweep, &mut Vec::new(), &mut axes)?;
    if axes.is_empty() {
        return Err(Mistake::at(span, "the sweep has no axis: give a key and its values"));
    }
    name_apart(&mut axes);
    let points = axes.iter().try_fold(1_usize, |points, axis| points.checked_mul(axis.values.len()));
    if points.is_none_or(|points| points > POINTS_MAX) {
        let sizes: Vec<String> = axes.iter().map(|axis| axis.values.len().to_string()).collect();
        let message = format!("{} are too many points: at most {POINTS_MAX} can be", sizes.join(" times "));
        return Err(Mistake::at(span, message));
    }
    Ok(axes)
}

/// Collects the axes. A table that is not an axis is a part of paths, so that `"a.b" = [1]` and
/// `a.b = [1]` are the same.
fn collect<'i>(
    table: &DeTable<'i>,
    above: &mut Vec<String>,
    axes: &mut Vec<Axis<'i>>,
) -> Result<(), Mistake> {
    for (key, value) in table {
        let depth = above.len();
        above.extend(key.get_ref().split('.').map(str::to_owned));
        match value.get_ref() {
            DeValue::Table(inner) if !is_axis(inner) => collect(inner, above, axes)?,
            DeValue::Table(form) => axes.push(ranged(form, above.clone(), value.span())?),
            DeValue::Array(values) => {
                let values = values.iter().cloned().map(Value::Listed).collect();
                axes.push(axis(above.clone(), value.span(), values, None)?);
            }
            _ => {
                let message = "expected the values of this key: a list, or { from, to, step }";
                return Err(Mistake::at(value.span(), message));
            }
        }
        above.truncate(depth);
    }
    Ok(())
}

/// Returns true if the table is an axis. A link has keys `from` and `to` as well, so a sweep of
/// these must give lists.
fn is_axis(table: &DeTable<'_>) -> bool {
    let is_end = |key: &str| {
        table.get(key).is_some_and(|end| !matches!(end.get_ref(), DeValue::Table(_) | DeValue::Array(_)))
    };
    table.contains_key("values") || is_end("from") || is_end("to")
}

fn axis<'i>(
    path: Vec<String>,
    span: Range<usize>,
    values: Vec<Value<'i>>,
    name: Option<String>,
) -> Result<Axis<'i>, Mistake> {
    if values.is_empty() {
        return Err(Mistake::at(span, "an axis without values leaves nothing to run"));
    }
    let mut told = BTreeSet::new();
    if let Some(twice) = values.iter().map(Value::text).find(|value| !told.insert(value.clone())) {
        return Err(Mistake::at(span, format!("{twice} is on this axis twice: each point is run once")));
    }
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    Ok(Axis { name, path, span, values })
}

fn ranged<'i>(form: &DeTable<'i>, path: Vec<String>, span: Range<usize>) -> Result<Axis<'i>, Mistake> {
    for key in form.keys() {
        if !KEYS.contains(&&**key.get_ref()) {
            let known = KEYS.iter().copied();
            return Err(Mistake::unknown(key.span(), "key of an axis", key.get_ref(), known));
        }
    }
    let name = match form.get("name").map(|name| (name.get_ref(), name.span())) {
        None => None,
        Some((DeValue::String(name), _)) if is_name(name) => Some(name.to_string()),
        Some((_, span)) => {
            let message = "expected the name of the axis: letters, digits, `-` and `_`";
            return Err(Mistake::at(span, message));
        }
    };
    let of_range = ["from", "to", "step", "points"].iter().find_map(|key| form.get_key_value(*key));
    if let Some(values) = form.get("values") {
        if let Some((key, _)) = of_range {
            let message = format!("an axis has `values` or a range, and not `{}` as well", key.get_ref());
            return Err(Mistake::at(key.span(), message));
        }
        let DeValue::Array(values) = values.get_ref() else {
            return Err(Mistake::at(values.span(), "expected a list of values"));
        };
        return axis(path, span, values.iter().cloned().map(Value::Listed).collect(), name);
    }
    let end = |key: &str| {
        let Some(end) = form.get(key) else {
            return Err(Mistake::at(span.clone(), format!("a range needs `{key}`")));
        };
        Ticks::read(end.get_ref()).ok_or_else(|| {
            let message = format!("expected `{key}` as a number, a duration with its unit or a rate");
            Mistake::at(end.span(), message)
        })
    };
    let (from, to) = (end("from")?, end("to")?);
    if from.scale != to.scale || from.ticks > to.ticks {
        let message = "a range goes from a smaller value to a larger one of the same kind";
        return Err(Mistake::at(span, message));
    }
    let values = match (form.get("step"), form.get("points")) {
        (Some(_), None) => by_step(from, to, end("step")?, &span)?,
        (None, Some(points)) => by_points(from, to, points)?,
        _ => return Err(Mistake::at(span, "a range needs either `step` or `points`")),
    };
    axis(path, span, values.into_iter().map(|value| Value::Between(value.toml())).collect(), name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Returns `from`, and every further step up to `to`.
fn by_step(from: Ticks, to: Ticks, step: Ticks, span: &Range<usize>) -> Result<Vec<Ticks>, Mistake> {
    if step.scale != from.scale || step.ticks <= 0 {
        return Err(Mistake::at(span.clone(), "the step is to be of the kind of the range, and above zero"));
    }
    let count = (to.ticks - from.ticks) / step.ticks;
    if count >= POINTS_MAX as i128 {
        let message = format!("the range has more than {POINTS_MAX} values: give a longer step");
        return Err(Mistake::at(span.clone(), message));
    }
    let value = |at| Ticks { ticks: from.ticks + at * step.ticks, ..from };
    let last = value(count);
    if last != to {
        let message = format!(
            "steps of {step} from {from} end at {last} and not at {to}: give `to = {}`, another step, or a number of `points`",
            last.toml()
        );
        return Err(Mistake::at(span.clone(), message));
    }
    Ok((0..=count).map(value).collect())
}

/// Returns this number of values, at equal distances.
fn by_points(from: Ticks, to: Ticks, points: &Spanned<DeValue<'_>>) -> Result<Vec<Ticks>, Mistake> {
    let count = Ticks::read(points.get_ref()).filter(|count| count.scale == Scale::Number);
    let count = count.map(|count| count.ticks).filter(|count| (2..=POINTS_MAX as i128).contains(count));
    let Some(count) = count else {
        return Err(Mistake::at(
            points.span(),
            format!("expected a number of points, from 2 to {POINTS_MAX}"),
        ));
    };
    let between = to.ticks - from.ticks + 1;
    if between < count {
        let message = format!("from {from} to {to} there are {between} values: give no more points");
        return Err(Mistake::at(points.span(), message));
    }
    let at = |at| Ticks { ticks: from.ticks + (to.ticks - from.ticks) * at / (count - 1), ..from };
    Ok((0..count).map(at).collect())
}

/// Names axes by their whole paths if the last keys of their paths are the same.
fn name_apart(axes: &mut [Axis<'_>]) {
    let names: Vec<String> = axes.iter().map(|axis| axis.name.clone()).collect();
    for axis in axes {
        if names.iter().filter(|name| **name == axis.name).count() > 1 {
            axis.name = axis.path.join(".");
        }
    }
}

/// Returns all points of the grid, each as the index of a value for each axis. The last axis
/// changes fastest.
pub(super) fn points(axes: &[Axis<'_>]) -> Vec<Vec<usize>> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        let with = |point: &Vec<usize>, at| point.iter().copied().chain([at]).collect();
        points.iter().flat_map(|point| (0..axis.values.len()).map(move |at| with(point, at))).collect()
    })
}

impl<'i> Axis<'i> {
    /// Sets the key of the axis to this value.
    pub(super) fn lay(&'i self, at: usize, on: &mut DeTable<'i>) -> Result<(), Mistake> {
        let value = match &self.values[at] {
            Value::Listed(value) => value.clone(),
            Value::Between(toml) => {
                let value = DeValue::parse(toml).map_err(|error| Mistake::of_toml(&error))?.into_inner();
                Spanned::new(self.span.clone(), value)
            }
        };
        put(on, &self.path, value)
    }

    /// Returns the coordinate of points with this value.
    pub(super) fn coordinate(&self, at: usize) -> Coordinate {
        let (value, number) = match &self.values[at] {
            Value::Listed(value) => (shown(value.get_ref(), at), Ticks::read(value.get_ref())),
            Value::Between(toml) => {
                let value = toml.trim_matches('"').to_owned();
                let number = value.parse().ok();
                (value, number)
            }
        };
        Coordinate { axis: self.name.clone(), value, number: number.map(Ticks::number) }
    }
}

/// Returns a listed value as it is written, or its position in the list, from 1, if it is a list or
/// a table.
fn shown(value: &DeValue<'_>, at: usize) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(on) => on.to_string(),
        _ => format!("{}", at + 1),
    }
}

/// Writes a value at a path, and makes the tables on the way to it. Items of lists are counted from
/// 0.
fn put<'i>(table: &mut DeTable<'i>, path: &[String], value: Spanned<DeValue<'i>>) -> Result<(), Mistake> {
    let Some((key, rest)) = path.split_first() else { return Ok(()) };
    let written = Spanned::new(value.span(), Cow::Owned(key.clone()));
    if rest.is_empty() {
        table.insert(written, value);
        return Ok(());
    }
    let new = || Spanned::new(value.span(), DeValue::Table(DeTable::new()));
    put_into(table.entry(written).or_insert_with(new).get_mut(), key, rest, value)
}

fn put_into<'i>(
    inside: &mut DeValue<'i>,
    name: &str,
    path: &[String],
    value: Spanned<DeValue<'i>>,
) -> Result<(), Mistake> {
    match (inside, path) {
        (DeValue::Table(table), path) => put(table, path, value),
        (DeValue::Array(items), [at, rest @ ..]) => {
            let length = items.len();
            let Some(item) = at.parse().ok().and_then(|at: usize| items.get_mut(at)) else {
                let message = format!("`{name}` is a list of {length}, counted from 0, and has no `{at}`");
                return Err(Mistake::at(value.span(), message));
            };
            if rest.is_empty() {
                *item = value;
                return Ok(());
            }
            put_into(item.get_mut(), at, rest, value)
        }
        (_, path) => {
            let key = path.join(".");
            Err(Mistake::at(value.span(), format!("`{name}` is no table, so it has no `{key}`")))
        }
    }
}
