//! The form of the parts of a scenario file, read from the schema, for messages about mistakes and
//! for lists.

use serde_json::{Map, Value};

use super::Scenario;

/// The JSON Schema of scenario files, for editors that complete and check TOML.
pub fn json_schema() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(Scenario)).expect("a schema is JSON")
}

/// The keys of a table: the required ones and the optional ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) must: Vec<String>,
    pub(super) may: Vec<String>,
}

/// Returns the keys of a type, by its name in the schema; none if it is not a table.
pub(super) fn keys(name: &str) -> Keys {
    let schema = schemars::schema_for!(Scenario).to_value();
    keys_of(&schema, &schema["$defs"][name])
}

/// Returns the form of a fault, such as `cut = { from, to, one_way? }`. Optional keys have a
/// question mark.
pub fn fault(name: &str) -> String {
    let schema = schemars::schema_for!(Scenario).to_value();
    let Keys { must, may } = keys_of(&schema, &schema["$defs"]["Fault"]["properties"][name]);
    if must.is_empty() && may.is_empty() {
        return format!("{name} = \"host\"");
    }
    let may = may.into_iter().map(|key| format!("{key}?"));
    format!("{name} = {{ {} }}", must.into_iter().chain(may).collect::<Vec<_>>().join(", "))
}

/// Returns the values of a trait, as files write them.
pub fn trait_values(name: &str) -> Vec<String> {
    let schema = schemars::schema_for!(Scenario).to_value();
    let of = resolved(&schema, &schema["$defs"]["OtherTraits"]["properties"][name]);
    let words = of["oneOf"].as_array().into_iter().flatten().filter_map(|one| one["const"].as_str());
    let words: Vec<String> = words.map(str::to_owned).collect();
    if words.is_empty() { vec!["true".to_owned(), "false".to_owned()] } else { words }
}

fn keys_of(schema: &Value, of: &Value) -> Keys {
    let of = resolved(schema, of);
    let required = of["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let must: Vec<String> = required.map(str::to_owned).collect();
    let all = of["properties"].as_object().into_iter().flat_map(Map::keys);
    let may = all.filter(|key| !must.contains(key)).cloned().collect();
    Keys { must, may }
}

/// Follows a reference. Of an optional value it returns the form that applies if the value is
/// given.
fn resolved<'a>(schema: &'a Value, of: &'a Value) -> &'a Value {
    let of = of["anyOf"].get(0).unwrap_or(of);
    match of["$ref"].as_str().and_then(|to| to.strip_prefix("#/$defs/")) {
        Some(name) => resolved(schema, &schema["$defs"][name]),
        None => of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_written_as_the_schema_has_them() {
        for (name, form) in [
            ("cut", "cut = { from, to, one_way? }"),
            ("clock_step", "clock_step = { host, by }"),
            ("pause", "pause = \"host\""),
        ] {
            assert_eq!(fault(name), form);
        }
        // It takes the parameters from another type.
        assert!(fault("lose_reply").starts_with("lose_reply = { "), "{}", fault("lose_reply"));
    }

    #[test]
    fn a_type_that_is_no_table_has_no_keys() {
        assert_eq!(keys("Pause"), Keys::default());
        assert_eq!(keys("no such type"), Keys::default());
    }
}
