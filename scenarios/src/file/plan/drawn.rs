//! The values that the seed drew, by the path of the key that has a range in the file.

use std::any::Any;

use indexmap::IndexMap;
use lockstorm_world::time::True;
use serde::Serialize;
use serde_json::Value;

use super::{Occurrence, Plan, PlannedClient, PlannedHost, Target, When};
use crate::{
    file::{
        fault::Fault,
        scenario::{Clock, StepEntry, Ticks, group},
        selector::Selector,
    },
    judge::history,
    units::{Draw, Span},
};

/// A value that the seed drew.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// The path of the key, such as `fault.jump.clock_step.by`. Members of a group appear under the
    /// names of their hosts, and steps are counted from 0.
    pub path: String,
    /// The value as a file would write it, or the names of hosts.
    pub text: String,
    /// The value as a number, if it is one: a time in seconds, a rate in percent.
    pub number: Option<f64>,
}

impl From<Drawn> for history::Drawn {
    fn from(drawn: Drawn) -> history::Drawn {
        let Drawn { path, text, number } = drawn;
        let number = number.and_then(serde_json::Number::from_f64);
        history::Drawn { key: path.into(), value: text.into(), number }
    }
}

impl Plan {
    /// Returns all drawn values, at the same paths for every seed. For a fault that happens several
    /// times, they are those of the first occurrence.
    pub fn drawn(&self) -> Vec<Drawn> {
        let mut all = Vec::new();
        for (name, node) in &self.scenario.node {
            self.members(name, node.count).for_each(|host| clock("node", host, &node.clock, &mut all));
        }
        for (name, sentinel) in &self.scenario.sentinel {
            let members = self.members(name, sentinel.count);
            members.for_each(|host| clock("sentinel", host, &sentinel.clock, &mut all));
        }
        for (name, client) in &self.scenario.client {
            for host in self.members(name, client.count) {
                clock("client", host, &client.clock, &mut all);
                steps(host, &mut all);
            }
        }
        for (name, written) in &self.scenario.fault {
            let is_first = |one: &&Occurrence| one.name == *name || one.name == format!("{name}#1");
            self.faults.iter().filter(is_first).for_each(|first| fault(name, written, first, &mut all));
        }
        all
    }

    /// Returns the values of [`Plan::drawn`], and for each repeated fault also the number of its
    /// occurrences, and the sum and the maximum of each number that they draw.
    pub fn drawn_by_all_occurrences(&self) -> Vec<Drawn> {
        let mut all = self.drawn();
        for (name, written) in self.scenario.fault.iter().filter(|(_, fault)| fault.every.is_some()) {
            let mut numbers: IndexMap<String, Vec<f64>> = IndexMap::new();
            let mut occurrences = 0;
            for occurrence in self.faults.iter().filter(|one| one.of() == name) {
                let mut drawn = Vec::new();
                fault(name, written, occurrence, &mut drawn);
                occurrences += 1;
                for Drawn { path, number, .. } in drawn {
                    numbers.entry(path).or_default().extend(number);
                }
            }
            let mut add = |path: String, number: f64| {
                all.push(Drawn { path, text: format!("{number}"), number: Some(number) });
            };
            add(format!("fault.{name} (occurrences)"), f64::from(occurrences));
            // The sum of the starts would mean nothing.
            numbers.shift_remove(&format!("fault.{name}.at"));
            for (path, numbers) in numbers.into_iter().filter(|(_, numbers)| !numbers.is_empty()) {
                add(format!("{path} (sum)"), numbers.iter().sum());
                add(format!("{path} (greatest)"), numbers.iter().copied().fold(f64::MIN, f64::max));
            }
        }
        all
    }

    fn members(&self, name: &str, count: Option<u32>) -> impl Iterator<Item = &PlannedHost> {
        let names = group(name, count);
        self.hosts.iter().filter(move |host| names.contains(&host.name))
    }
}

fn clock(kind: &str, host: &PlannedHost, written: &Clock, all: &mut Vec<Drawn>) {
    let drawn = Clock {
        offset: written.offset.map(|_| Draw::Fixed(host.offset)),
        rate: written.rate.map(|_| Draw::Fixed(host.rate)),
    };
    compare(&format!("{kind}.{}.clock", host.name), written, &drawn, all);
}

fn steps(host: &PlannedHost, all: &mut Vec<Drawn>) {
    let software: &dyn Any = &*host.software;
    let Some(planned) = software.downcast_ref::<PlannedClient>() else { return };
    let client = &planned.client;
    let lines =
        client.line.iter().flat_map(|(name, of)| group(name, of.count).into_iter().map(|_| &of.steps));
    let written = if client.line.is_empty() { vec![&client.steps] } else { lines.collect() };
    for (line, written) in planned.lines.iter().zip(written) {
        let of = if line.name.is_empty() { String::new() } else { format!(".line.{}", line.name) };
        for (at, (planned, written)) in line.script.iter().zip(written.iter()).enumerate() {
            let drawn = planned.step.clone().map(StepEntry::from).unwrap_or_default();
            let drawn = StepEntry { at: planned.at.map(Draw::Fixed), of: written.of.clone(), ..drawn };
            compare(&format!("client.{}{of}.steps.{at}", host.name), written, &drawn, all);
        }
    }
}

fn fault(name: &str, written: &Fault, first: &Occurrence, all: &mut Vec<Drawn>) {
    let mut drawn = Fault::from(first.fault.clone());
    match &first.when {
        When::At(at) => drawn.at = written.at.map(|_| Draw::Fixed(Span(at.since(True::ZERO)))),
        When::After(trigger, delay) => {
            let mut trigger = trigger.clone();
            trigger.delay = Draw::Fixed(Span(*delay));
            drawn.on = Some(trigger);
        }
    }
    drawn.length = first.length.map(|length| Draw::Fixed(Span(length)));
    (drawn.every, drawn.until, drawn.off) = (written.every, written.until, written.off);
    compare(&format!("fault.{name}"), written, &drawn, all);
    let is_drawn = |name: &str| {
        let selector = name.parse();
        matches!(
            selector,
            Ok(Selector::AnyNode
                | Selector::AnyClient
                | Selector::AnySentinel
                | Selector::Minority
                | Selector::SentinelMinority)
        )
    };
    let hosts = first.fault.hosts();
    if hosts.iter().any(|hosts| hosts.names().iter().any(|name| is_drawn(name.as_str()))) {
        let names = first.targets.iter().flatten().map(|target| match target {
            Target::Host(name) => name.clone(),
            Target::Role(selector) => selector.to_string(),
        });
        let text = names.collect::<Vec<_>>().join(" ");
        all.push(Drawn { path: format!("fault.{name}.targets"), text, number: None });
    }
}

/// Collects the differences between a table as written and as drawn: a range is written in another
/// way than any value of it.
fn compare<T: Serialize>(path: &str, written: &T, drawn: &T, all: &mut Vec<Drawn>) {
    let value = |of: &T| serde_json::to_value(of).expect("tables of a file are serialized with text keys");
    differences(path, &value(written), &value(drawn), all);
}

fn differences(path: &str, written: &Value, drawn: &Value, all: &mut Vec<Drawn>) {
    match (written, drawn) {
        (Value::Object(written), Value::Object(drawn)) => {
            for (key, drawn) in drawn {
                let written = written.get(key).unwrap_or(&Value::Null);
                differences(&format!("{path}.{key}"), written, drawn, all);
            }
        }
        (Value::Array(written), Value::Array(drawn)) => {
            for (at, (written, drawn)) in written.iter().zip(drawn).enumerate() {
                differences(&format!("{path}.{at}"), written, drawn, all);
            }
        }
        (Value::String(written), Value::String(drawn)) if written != drawn => {
            let number = drawn.parse().ok().map(Ticks::number);
            all.push(Drawn { path: path.to_owned(), text: drawn.clone(), number });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::scenario::{Scenario, parse};

    fn scenario(text: &str) -> Scenario {
        let source = parse("drawn.toml", text).unwrap_or_else(|error| panic!("{error}"));
        source.variants[0].scenario.clone()
    }

    /// The jumps begin at 1 s and 4 s and 7 s, and so on until 20 s.
    #[test]
    fn of_a_repeated_fault_the_occurrences_are_counted_and_summed_up() {
        let text = r#"
[node.m]
[client.c]
[fault.jump]
clock_step = { host = "m", by = "+1s..+9s" }
at = "1s"
every = "3s"
[fault.once]
pause = "c"
at = "1s..2s"
for = "1s"
[run]
storm = "20s"
"#;
        let plan = Plan::draw(&scenario(text), 1);
        let all = plan.drawn_by_all_occurrences();
        let number = |path: &str| {
            let one = all.iter().find(|one| one.path == path).unwrap_or_else(|| panic!("{path} in {all:?}"));
            one.number.expect("a number")
        };
        let paths: Vec<&str> = all.iter().map(|one| &*one.path).collect();
        assert_eq!(
            paths,
            [
                "fault.jump.clock_step.by",
                "fault.once.at",
                "fault.jump (occurrences)",
                "fault.jump.clock_step.by (sum)",
                "fault.jump.clock_step.by (greatest)",
            ]
        );
        assert_eq!(number("fault.jump (occurrences)"), 7.0);
        let (sum, greatest) =
            (number("fault.jump.clock_step.by (sum)"), number("fault.jump.clock_step.by (greatest)"));
        let first = number("fault.jump.clock_step.by");
        assert!(first <= greatest && greatest <= 9.0 && 7.0 < sum && sum <= 7.0 * greatest, "{all:?}");
    }

    #[test]
    fn what_has_a_range_in_the_file_is_drawn_and_nothing_else() {
        let text = r#"
[node.m]
count = 3
clock = { offset = "-1s..+1s", rate = "0%" }
[lock]
nodes = ["m1"]
[client.c1]
steps = [{ at = "1s..2s", try_acquire = { lease = "5s" } }, { work = { for = "10ms..20ms" } }, { release = {} }]
[client.c2.line.a]
steps = [{ at = "1s", poll = { every = "5ms" } }]
[client.c2.line.b]
steps = [{ at = "1s..4s", try_acquire = {} }]
[fault.jump]
clock_step = { host = "@any-node", by = "+1s..+9s" }
at = "1s..2s"
every = "3s..4s"
[fault.pause]
pause = "c1"
on = { client = "c1", event = "acquired", delay = "1ms..9ms" }
for = "2s..3s"
[fault.fixed]
pause = "c1"
at = "5s"
for = "1s"
"#;
        let scenario = scenario(text);
        let drawn = |seed| Plan::draw(&scenario, seed).drawn();
        let paths = |seed| drawn(seed).into_iter().map(|one| one.path).collect::<Vec<_>>();
        assert_eq!(
            paths(1),
            [
                "node.m1.clock.offset",
                "node.m2.clock.offset",
                "node.m3.clock.offset",
                "client.c1.steps.0.at",
                "client.c1.steps.1.work.for",
                "client.c2.line.b.steps.0.at",
                "fault.jump.at",
                "fault.jump.clock_step.by",
                "fault.jump.targets",
                "fault.pause.for",
                "fault.pause.on.delay",
            ]
        );
        assert_eq!(paths(2), paths(1), "the same for every seed");
        assert_ne!(drawn(2), drawn(1));
        for one in drawn(1) {
            match (&*one.path, one.number) {
                ("fault.jump.targets", None) => assert!(["m1", "m2", "m3"].contains(&&*one.text), "{one:?}"),
                ("fault.jump.clock_step.by", Some(by)) => assert!((1.0..=9.0).contains(&by), "{one:?}"),
                (path, Some(seconds)) => assert!((-1.0..=4.0).contains(&seconds), "{path}: {one:?}"),
                (_, None) => panic!("{one:?} is a number"),
            }
        }
    }
}
