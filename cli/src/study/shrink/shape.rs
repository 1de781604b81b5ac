//! Changes an author's file only in the places where the scenario has changed. Comments, order and
//! the notation of values stay.

use toml::{Table, Value};
use toml_edit::{Array, DocumentMut, Item, TableLike};

use super::to_table;
use lockstorm::file::scenario::{Scenario, parse};

/// The parts of a file with several conditions. Only one condition is shrunk.
const OF_FILES: [&str; 2] = ["variant", "sweep"];

/// The key of the lock in a file with only one lock, which omits it.
const LOCK: &str = "lock";

/// A file, and the tables of its scenario.
pub(super) struct Shape(Option<(DocumentMut, Table)>);

impl Shape {
    /// Reads a file with several conditions. Keeps nothing of it if it is invalid without its
    /// conditions.
    pub(super) fn of(text: &str) -> Shape {
        let read = || {
            let mut document: DocumentMut = text.parse().ok()?;
            OF_FILES.iter().for_each(|key| drop(document.remove(key)));
            let source = parse("shrinking", &document.to_string()).ok()?;
            Some((document, to_table(&source.variants.first()?.scenario).ok()?))
        };
        Shape(read())
    }

    /// Writes the differences to the tables of another scenario.
    pub(super) fn follow(&mut self, after: &Table) {
        if let Some((document, before)) = &mut self.0 {
            tables(document.as_table_mut(), before, after, true);
            before.clone_from(after);
        }
    }

    /// Returns the file if it has exactly this scenario.
    pub(super) fn text(&self, scenario: &Scenario) -> Option<String> {
        let (document, _) = self.0.as_ref()?;
        let text = document.to_string();
        let source = parse("shrinking", &text).ok()?;
        matches!(&source.variants[..], [variant] if variant.scenario == *scenario).then_some(text)
    }
}

fn tables(written: &mut dyn TableLike, before: &Table, after: &Table, is_root: bool) {
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        written.remove(key);
    }
    for (key, after) in after {
        let was = before.get(key);
        if was == Some(after) {
            continue;
        }
        match (written.get_mut(key), was, after) {
            (Some(item), Some(Value::Table(was)), Value::Table(after))
                if is_root && key == LOCK && is_only_lock(item, was) =>
            {
                let one = |of: &Table| of.get(LOCK).and_then(Value::as_table).cloned().unwrap_or_default();
                if let Some(item) = item.as_table_like_mut() {
                    tables(item, &one(was), &one(after), false);
                }
            }
            (Some(item), Some(was), after) => change(item, was, after),
            (_, _, Value::Table(after)) if is_root => {
                let mut table = toml_edit::Table::new();
                tables(&mut table, &Table::new(), after, false);
                drop(written.insert(key, Item::Table(table)));
            }
            (_, _, after) => drop(value(after).map(|value| written.insert(key, value.into()))),
        }
    }
}

/// Returns true if a file gives its one lock no name.
fn is_only_lock(item: &Item, before: &Table) -> bool {
    before.len() == 1 && before.contains_key(LOCK) && item.get(LOCK).is_none()
}

fn change(item: &mut Item, before: &Value, after: &Value) {
    if let (Value::Table(before), Value::Table(after), true) = (before, after, item.is_table_like()) {
        let table = item.as_table_like_mut().expect("it is like a table");
        return tables(table, before, after, false);
    }
    if let (Value::Array(before), Value::Array(after), Some(array)) = (before, after, item.as_array_mut()) {
        return items(array, before, after);
    }
    if let Some(mut value) = value(after) {
        if let Some(old) = item.as_value() {
            *value.decor_mut() = old.decor().clone();
        }
        *item = Item::Value(value);
    }
}

/// Updates a list: removes the items that are gone, and changes the remaining ones in place.
fn items(written: &mut Array, before: &[Value], after: &[Value]) {
    let mut kept = Vec::new();
    for at in (0..before.len()).rev() {
        let left = after.len() - kept.len();
        if left > 0 && (before[at] == after[left - 1] || left == at + 1) {
            kept.push(before[at].clone());
        } else {
            remove(written, at);
        }
    }
    kept.reverse();
    for (at, (before, after)) in kept.iter().zip(after).enumerate().filter(|(_, (was, is))| was != is) {
        let Some(old) = written.get(at) else { continue };
        let mut item = Item::Value(old.clone());
        change(&mut item, before, after);
        if let Ok(value) = item.into_value() {
            written.replace_formatted(at, value);
        }
    }
    for more in after.iter().skip(kept.len()) {
        written.extend(value(more));
    }
}

/// Removes an item and the comment behind it, which the document stores at the beginning of the
/// next item's prefix.
fn remove(written: &mut Array, at: usize) {
    let before = |item: &toml_edit::Value| {
        item.decor().prefix().and_then(toml_edit::RawString::as_str).unwrap_or_default().to_owned()
    };
    let end_of_line = |text: &str| text.find('\n').unwrap_or(0);
    let Some(gone) = written.get(at).map(before) else { return };
    written.remove(at);
    let behind_previous = &gone[..end_of_line(&gone)];
    let joined = |next: &str| format!("{behind_previous}{}", &next[end_of_line(next)..]);
    if let Some(next) = written.get_mut(at) {
        let prefix = joined(&before(next));
        next.decor_mut().set_prefix(prefix);
    } else {
        let trailing = joined(written.trailing().as_str().unwrap_or_default());
        written.set_trailing(trailing);
    }
}

/// Formats a value for a single line.
fn value(value: &Value) -> Option<toml_edit::Value> {
    value.to_string().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = r#"# What it is about.
about = "A file with comments."

[node.redis] # the only one
[node.spare] # is not needed
replica_of = "redis"
[lock]
lease = "1000ms"    # a second, as its author writes it
[client.c1]
steps = [
    { at = "1s", try_acquire = {} },  # first
    { sleep = "2.137s" },             # then
    { release = {} },                 # last
]
[fault.noise]
pause = "c1"
at = "3s"
for = "1s"
# Why it ends there.
[run]
storm = "40s"
[expect]
l1 = "holds"

[variant.other]
lock.lease = "3s"
"#;

    #[test]
    fn what_stays_keeps_its_comments_and_its_form() {
        let scenario = |text: &str| {
            let source = parse("file.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            source.variants.into_iter().next().expect("a scenario").scenario
        };
        let mut shape = Shape::of(WRITTEN);
        let other = scenario(WRITTEN);
        shape.follow(&to_table(&other).expect("tables"));
        let text = shape.text(&other).expect("the variant is laid over the rest");
        assert!(text.contains("\nlease = \"3s\"    # a second, as its author writes it\n"), "{text}");
        let mut left = other;
        left.node.shift_remove("spare");
        left.fault.clear();
        shape.follow(&to_table(&left).expect("tables"));
        left.client["c1"].steps.remove(2);
        shape.follow(&to_table(&left).expect("tables"));
        left.client["c1"].steps[1] = scenario(&WRITTEN.replace("2.137s", "2s")).client["c1"].steps[1].clone();
        shape.follow(&to_table(&left).expect("tables"));
        let text = shape.text(&left).expect("it says the same");
        assert_eq!(
            text,
            r#"# What it is about.
about = "A file with comments."

[node.redis] # the only one
[lock]
lease = "3s"    # a second, as its author writes it
[client.c1]
steps = [
    { at = "1s", try_acquire = {} },  # first
    { sleep = "2s" },             # then
]
# Why it ends there.
[run]
storm = "40s"
[expect]
l1 = "holds"
"#
        );
    }
}
