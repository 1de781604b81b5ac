//! Scenarios as files, without the values that equal their defaults.

use serde::Serialize;
use toml::{Table, Value};

use lockstorm::file::scenario::{Client, Lock, Network, Node, Run, Scenario, Sentinel};

/// Converts a scenario to a file, without the values that equal their defaults.
///
/// # Errors
/// Fails if it cannot be written as TOML.
pub(crate) fn to_toml(scenario: &Scenario) -> Result<String, toml::ser::Error> {
    toml::to_string(&to_table(scenario)?)
}

/// Returns the tables of that file.
pub(crate) fn to_table(scenario: &Scenario) -> Result<Table, toml::ser::Error> {
    let mut written = Table::try_from(scenario)?;
    drop_defaults(&mut written, &Table::try_from(Scenario::default())?);
    for (part, defaults) in [("network", table(&Network::default())?), ("run", table(&Run::default())?)] {
        if let Some(Value::Table(part)) = written.get_mut(part) {
            drop_defaults(part, &defaults);
        }
    }
    for (group, defaults) in [
        ("node", table(&Node::default())?),
        ("sentinel", table(&Sentinel::default())?),
        ("client", table(&Client::default())?),
        ("lock", table(&Lock::default())?),
    ] {
        if let Some(Value::Table(group)) = written.get_mut(group) {
            for (_, one) in group.iter_mut() {
                one.as_table_mut().into_iter().for_each(|one| drop_defaults(one, &defaults));
            }
        }
    }
    written.iter_mut().for_each(|(_, value)| drop_false(value));
    Ok(written)
}

fn table(defaults: &impl Serialize) -> Result<Table, toml::ser::Error> {
    Table::try_from(defaults)
}

fn drop_defaults(written: &mut Table, defaults: &Table) {
    written.retain(|key, value| defaults.get(key) != Some(value));
}

/// Every switch of the format is off by default.
fn drop_false(value: &mut Value) {
    match value {
        Value::Table(table) => {
            table.retain(|_, value| *value != Value::Boolean(false));
            table.iter_mut().for_each(|(_, value)| drop_false(value));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_false),
        _ => {}
    }
}
