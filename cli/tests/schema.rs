//! The JSON Schema for editors: it accepts every stock scenario, and refuses the files that the
//! reader refuses.

use std::process::Command;

use lockstorm::file::library;
use serde_json::Value;

fn schema() -> jsonschema::Validator {
    let output = Command::new(env!("CARGO_BIN_EXE_lockstorm")).arg("schema").output().expect("it runs");
    let schema: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    jsonschema::validator_for(&schema).expect("it is a schema")
}

fn scenario(text: &str) -> Value {
    let table: toml::Table = text.parse().expect("it is TOML");
    serde_json::to_value(table).expect("TOML without dates is JSON")
}

#[test]
fn it_takes_every_stock_scenario() {
    let schema = schema();
    for stock in library::ALL {
        let wrong: Vec<String> = schema
            .iter_errors(&scenario(stock.text))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", stock.path);
    }
}

/// Every name in a step's description is a key of the step or of its value.
#[test]
fn it_names_no_key_that_a_step_has_not() {
    let output = Command::new(env!("CARGO_BIN_EXE_lockstorm")).arg("schema").output().expect("it runs");
    let schema: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let steps = schema["$defs"]["StepEntry"]["properties"].as_object().expect("steps have keys");
    let mut named = 0;
    for (step, property) in steps {
        let of = property["anyOf"][0]["$ref"].as_str().and_then(|to| to.strip_prefix("#/$defs/"));
        let keys = of.and_then(|of| schema["$defs"][of]["properties"].as_object());
        let description = property["description"].as_str().unwrap_or_default();
        for word in description.split('`').skip(1).step_by(2) {
            named += 1;
            assert!(
                keys.is_some_and(|keys| keys.contains_key(word)),
                "{step} has no `{word}`: {description}"
            );
        }
    }
    assert!(named > 0, "some step names a key of its own");
}

#[test]
fn it_refuses_what_is_no_scenario() {
    const GOOD: &str = r#"
[node.redis]
[client.c1]
steps = [{ acquire = {} }, { release = {} }]
[fault.crash]
crash = "redis"
at = "3s..4s"
[expect]
l1 = "holds"
"#;
    let schema = schema();
    assert!(schema.is_valid(&scenario(GOOD)));
    let rows = [
        ("[fault.crash]", "[faults.crash]"),
        ("crash = \"redis\"", "crahs = \"redis\""),
        ("acquire = {}", "aquire = {}"),
        ("acquire = {}", "acquire = { lease = 3 }"),
        ("[{ acquire = {} }, { release = {} }]", "3"),
        ("\"3s..4s\"", "\"3 parsecs\""),
        ("\"3s..4s\"", "3"),
        ("[node.redis]", "[node.redis]\ncount = \"three\""),
        ("[node.redis]", "[node.redis]\ndurability = \"aof-allways\""),
        ("\"holds\"", "\"hold\""),
        ("[expect]", "[lock]\nsubject = \"cliend\"\n[expect]"),
    ];
    for (part, mistaken) in rows {
        assert_eq!(GOOD.matches(part).count(), 1, "{part:?} is once in the good scenario");
        let text = GOOD.replace(part, mistaken);
        assert!(!schema.is_valid(&scenario(&text)), "{text}");
    }
}
