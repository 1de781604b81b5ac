//! Makes a violated scenario smaller while it stays violated, so that only the parts remain that
//! the violation needs.
//!
//! The search is greedy, from the outside in: faults, clients, logins and addresses, hosts, errors
//! of clocks, links, the resource, options of the lock and the network, steps, repetitions, the
//! length of everything, and finally single values (`values.rs`). Each proposal is run with the
//! same seed, and kept if the same checker is still violated. Every host, script and fault draws
//! from a stream of its own, so that the removal of one does not change the others.
//!
//! The result is written into the author's file (`shape.rs`), so that the remaining keys keep their
//! comments.

mod shape;
mod values;
mod written;

use toml::{Table, Value};

use self::shape::Shape;
use lockstorm::{
    file::scenario::{Clock, Run, Scenario, Source, Step, parse},
    judge::{checker::Checker, verdict::Expectation},
    run::Engine,
    run::runner::verdict,
    units::{Draw, Span, millis},
};

pub(crate) use values::{leaves, put};
pub(crate) use written::{to_table, to_toml};

/// The shortest storm.
const STORM_MIN: Span = Span::millis(10);

/// The number of occurrences of a repeated fault that are tried alone.
const OCCURRENCES_MAX: u32 = 32;

/// The fixed conditions while a scenario shrinks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shrink {
    /// The seed.
    pub(crate) seed: u64,
    /// The engine that advances the time.
    pub(crate) engine: Engine,
    /// The checker whose verdict must stay violated.
    pub(crate) checker: &'static Checker,
}

/// The result.
#[derive(Debug, Clone)]
pub(crate) struct Shrunk {
    /// The smaller scenario, which expects the violation, as a file in the form of the original
    /// file.
    pub(crate) text: String,
    /// The changes in words and in order, such as `without fault noise`.
    pub(crate) changes: Vec<String>,
    /// The number of runs that it took.
    pub(crate) runs: usize,
}

/// A smaller scenario, and a description of the change.
type Proposal = (String, Scenario);

/// Proposes smaller scenarios.
type Propose<'a> = &'a dyn Fn(&Scenario) -> Vec<Proposal>;

impl Shrink {
    /// Returns true if the checker is violated in a run of the scenario.
    pub(crate) fn is_violated(&self, scenario: &Scenario) -> bool {
        verdict(scenario, self.seed, self.engine, self.checker).witness().is_some()
    }

    /// Removes everything that the violation does not need, and calls `told` for each change.
    /// `text` is the file that has the scenario as a condition, or empty. Returns `None` if there
    /// is no violation.
    ///
    /// # Errors
    /// Fails if the result cannot be written as TOML.
    pub(crate) fn of(
        &self,
        scenario: &Scenario,
        text: &str,
        told: &mut dyn FnMut(&str),
    ) -> Result<Option<Shrunk>, toml::ser::Error> {
        let values = |scenario: &Scenario| values::simpler(scenario, self.seed);
        let all: [Propose<'_>; 11] = [
            &faults,
            &clients,
            &access,
            &hosts,
            &clocks,
            &links,
            &options,
            &steps,
            &occurrences,
            &lengths,
            &values,
        ];
        self.by(&all, scenario, text, told)
    }

    /// Like [`Shrink::of`], for a scenario whose times were measured: removes hosts, faults and
    /// steps that the violation does not need, and changes no value.
    ///
    /// # Errors
    /// Fails if the result cannot be written as TOML.
    pub(crate) fn parts_of(
        &self,
        scenario: &Scenario,
        text: &str,
    ) -> Result<Option<Shrunk>, toml::ser::Error> {
        let all: [Propose<'_>; 5] = [&faults, &clients, &hosts, &links, &steps];
        self.by(&all, scenario, text, &mut |_| {})
    }

    /// Like [`Shrink::of`], for a scenario whose faults were searched: removes faults that the
    /// violation does not need, and simplifies the values of the others. Hosts and work stay.
    ///
    /// # Errors
    /// Fails if the result cannot be written as TOML.
    pub(crate) fn faults_of(
        &self,
        scenario: &Scenario,
        text: &str,
    ) -> Result<Option<Shrunk>, toml::ser::Error> {
        let values = |scenario: &Scenario| {
            let mut all = values::simpler(scenario, self.seed);
            all.retain(|(words, _)| words.starts_with("with fault."));
            all
        };
        let all: [Propose<'_>; 2] = [&faults, &values];
        self.by(&all, scenario, text, &mut |_| {})
    }

    fn by(
        &self,
        all: &[Propose<'_>],
        scenario: &Scenario,
        text: &str,
        told: &mut dyn FnMut(&str),
    ) -> Result<Option<Shrunk>, toml::ser::Error> {
        if !self.is_violated(scenario) {
            return Ok(None);
        }
        let mut shape = Shape::of(text);
        let mut left = scenario.clone();
        (left.claim, left.finding, left.boundary, left.plot) = (None, None, None, None);
        left.hunt = None;
        left.measure.clear();
        left.real.clear();
        left.expect.clear();
        // The violation is known for the one tested seed, and may not occur with others.
        left.run.seeds = Run::default().seeds;
        left.expect.insert(self.checker.name.to_owned(), Expectation::violated());
        shape.follow(&to_table(&left)?);
        let (mut changes, mut runs) = (Vec::new(), 1);
        loop {
            let before = changes.len();
            for propose in all {
                // A success changes the scenario, so compute new proposals. Skip the first
                // `refused` ones.
                let mut refused = 0;
                while let Some((words, smaller)) =
                    propose(&left).into_iter().skip(refused).find(|(_, smaller)| {
                        let valid = Source::of("shrinking", smaller.clone()).is_ok();
                        runs += usize::from(valid);
                        let stays = valid && self.is_violated(smaller);
                        refused += usize::from(!stays);
                        stays
                    })
                {
                    told(&words);
                    changes.push(words);
                    left = smaller;
                    shape.follow(&to_table(&left)?);
                }
            }
            if changes.len() == before {
                let text = shape.text(&left).map_or_else(|| to_toml(&left), Ok)?;
                return Ok(Some(Shrunk { text, changes, runs }));
            }
        }
    }
}

/// Returns the scenario with one change.
fn but(scenario: &Scenario, without: String, change: impl FnOnce(&mut Scenario)) -> Proposal {
    let mut smaller = scenario.clone();
    change(&mut smaller);
    (format!("without {without}"), smaller)
}

fn faults(scenario: &Scenario) -> Vec<Proposal> {
    let without = |name: &String| {
        but(scenario, format!("fault {name}"), |smaller| drop(smaller.fault.shift_remove(name)))
    };
    scenario.fault.keys().rev().map(without).collect()
}

fn clients(scenario: &Scenario) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (name, client) in scenario.client.iter().rev() {
        proposals.push(but(scenario, format!("client {name}"), |smaller| {
            smaller.client.shift_remove(name);
        }));
        if let Some(count @ 2..) = client.count {
            proposals.push(but(scenario, format!("one of {count} clients {name}"), |smaller| {
                smaller.client[name].count = Some(count - 1);
            }));
        }
    }
    proposals
}

/// Proposes to remove clients' logins and retries, users and addresses. One to which something
/// refers stays.
fn access(scenario: &Scenario) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (name, client) in &scenario.client {
        if client.user.is_some() {
            proposals.push(but(scenario, format!("the login of {name}"), |smaller| {
                smaller.client[name].user = None;
            }));
        }
        if client.retries.is_some() {
            proposals.push(but(scenario, format!("the retries of {name}"), |smaller| {
                smaller.client[name].retries = None;
            }));
        }
    }
    for name in scenario.user.keys() {
        proposals.push(but(scenario, format!("user {name}"), |smaller| {
            smaller.user.shift_remove(name);
        }));
    }
    for name in scenario.address.keys() {
        proposals.push(but(scenario, format!("address {name}"), |smaller| {
            smaller.address.shift_remove(name);
        }));
    }
    proposals
}

/// Proposes to remove nodes and Sentinels. If something refers to one, its removal is invalid and
/// it stays.
fn hosts(scenario: &Scenario) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (name, sentinel) in scenario.sentinel.iter().rev() {
        proposals.push(but(scenario, format!("Sentinel {name}"), |smaller| {
            smaller.sentinel.shift_remove(name);
        }));
        if let Some(count @ 2..) = sentinel.count {
            proposals.push(but(scenario, format!("one of {count} Sentinels {name}"), |smaller| {
                smaller.sentinel[name].count = Some(count - 1);
            }));
        }
    }
    for (name, node) in scenario.node.iter().rev() {
        let what = if node.replica_of.is_some() { "replica" } else { "node" };
        proposals.push(but(scenario, format!("{what} {name}"), |smaller| {
            smaller.node.shift_remove(name);
        }));
        if let Some(count @ 2..) = node.count {
            proposals.push(but(scenario, format!("one of {count} nodes {name}"), |smaller| {
                smaller.node[name].count = Some(count - 1);
            }));
        }
    }
    proposals
}

/// Proposes to correct the clocks that differ from true time.
fn clocks(scenario: &Scenario) -> Vec<Proposal> {
    let without = |name: &String| {
        but(scenario, format!("the clock error of {name}"), |smaller| {
            smaller.clock_mut(name).into_iter().for_each(|clock| *clock = Clock::default());
        })
    };
    scenario.clocks().map(without).collect()
}

fn links(scenario: &Scenario) -> Vec<Proposal> {
    let without = |name: &String| {
        but(scenario, format!("link {name}"), |smaller| drop(smaller.link.shift_remove(name)))
    };
    let mut proposals: Vec<Proposal> = scenario.link.keys().rev().map(without).collect();
    if scenario.resource.is_some() {
        proposals.push(but(scenario, "the resource".to_owned(), |smaller| smaller.resource = None));
    }
    proposals
}

/// Proposes to reset options of the network and of each lock to their defaults, except those that
/// identify the lock.
fn options(scenario: &Scenario) -> Vec<Proposal> {
    // Another name, kind or subject would make another experiment. Without a lease, the lock has a
    // watchdog.
    const WHICH: [&str; 8] = ["name", "kind", "subject", "lease", "permits", "count", "window", "per_client"];
    let Ok(whole) = to_table(scenario) else { return Vec::new() };
    let mut proposals = Vec::new();
    let network = whole.get("network").map(|_| vec!["network"]);
    let locks = whole.get("lock").and_then(Value::as_table);
    let locks = locks.into_iter().flat_map(Table::keys).map(|name| vec!["lock", name.as_str()]);
    for path in network.into_iter().chain(locks) {
        let part = path.iter().try_fold(&whole, |at, key| at.get(*key).and_then(Value::as_table));
        let options = part.into_iter().flatten();
        let options = options.filter(|(key, value)| !WHICH.contains(&&***key) && !value.is_table());
        for (key, _) in options {
            let mut smaller = whole.clone();
            let at = path.iter().try_fold(&mut smaller, |at, key| at.get_mut(*key)?.as_table_mut());
            at.map(|part| part.remove(key));
            let written = toml::to_string(&smaller).unwrap_or_default();
            let words = format!("without {}.{key}", path.join("."));
            let read = parse("shrinking", &written).into_iter().flat_map(|source| source.variants);
            proposals.extend(read.map(|variant| (words.clone(), variant.scenario)));
        }
    }
    proposals
}

/// Proposes to remove lines of work and steps, except acquisitions: a client that does not request
/// the lock proves nothing about it.
fn steps(scenario: &Scenario) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (name, client) in &scenario.client {
        for line in client.line.keys().rev().filter(|_| client.line.len() > 1) {
            proposals.push(but(scenario, format!("line {line} of {name}"), |smaller| {
                smaller.client[name].line.shift_remove(line);
            }));
        }
        let own = std::iter::once((None, &client.steps));
        for (line, steps) in own.chain(client.line.iter().map(|(line, of)| (Some(line), &of.steps))) {
            for (at, entry) in steps.iter().enumerate().rev() {
                let given = entry.given();
                if given.iter().any(|step| step.is_acquisition()) {
                    continue;
                }
                let names: Vec<&str> = given.iter().map(Step::name).collect();
                let words = format!("step {} of {name} ({})", at + 1, names.join(", "));
                proposals.push(but(scenario, words, |smaller| {
                    let client = &mut smaller.client[name];
                    let steps = match line {
                        Some(line) => &mut client.line[line].steps,
                        None => &mut client.steps,
                    };
                    steps.remove(at);
                }));
            }
        }
    }
    proposals
}

/// Proposes for a repeated fault to keep a single occurrence, the first ones first, or else to drop
/// the latest.
fn occurrences(scenario: &Scenario) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (name, fault) in &scenario.fault {
        let Some(every) = fault.every else { continue };
        proposals.push(but(scenario, format!("all but the first {name}"), |smaller| {
            (smaller.fault[name].every, smaller.fault[name].until) = (None, None);
        }));
        let (Draw::Fixed(Span(every)), Some(Draw::Fixed(Span(first)))) = (every, fault.at) else { continue };
        let end = fault.until.map_or(scenario.run.storm.0, |Span(until)| until);
        let begins = (1..=OCCURRENCES_MAX).map(|number| first.saturating_add(every.saturating_mul(number)));
        let begins: Vec<_> = begins.take_while(|at| !every.is_zero() && *at <= end).collect();
        for at in &begins {
            let words = format!("all of {name} but the one at {}", Span(*at));
            proposals.push(but(scenario, words, |smaller| {
                let fault = &mut smaller.fault[name];
                (fault.at, fault.every, fault.until) = (Some(Draw::Fixed(Span(*at))), None, None);
            }));
        }
        if let [.., before, latest] = begins[..] {
            let words = format!("the {name} at {}", Span(latest));
            proposals.push(but(scenario, words, |smaller| smaller.fault[name].until = Some(Span(before))));
        }
    }
    proposals
}

/// Proposes shorter runs: without the calm, or with about half or at least three quarters of the
/// storm.
fn lengths(scenario: &Scenario) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    let Run { storm, calm, .. } = scenario.run;
    if let Some(calm) = calm.filter(|calm| *calm > Span::default()) {
        proposals.push(but(scenario, format!("the calm of {calm}"), |smaller| {
            // Without a length, the calm lasts as long as `progress` needs.
            let is_needed = smaller.expect.contains_key("progress");
            smaller.run.calm = is_needed.then(Span::default);
        }));
    }
    for (times, of) in [(1, 2), (3, 4)] {
        let ms = millis(storm.0) / of * times;
        // Two digits suffice.
        let unit = 10_u64.pow(ms.max(1).ilog10().saturating_sub(1));
        let shorter = Span::millis(ms.div_ceil(unit) * unit);
        if shorter >= STORM_MIN && shorter < storm {
            let words = format!("all of the storm after {shorter}");
            proposals.push(but(scenario, words, |smaller| smaller.run.storm = shorter));
        }
    }
    proposals
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The violation needs only the pause; everything else is noise.
    const NOISY: &str = r#"
about = "A pause beyond the lease, among much else."
[node.redis]
clock = { offset = "+3s" }
[node.spare]
replica_of = "redis"
[lock]
lease = "1s"
response_timeout = "4s"
[network]
latency = "2ms"
[resource]
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { write = {} }, { work = { for = "100ms" } }, { write = {} }, { release = {} }]
[client.c2]
steps = [{ at = "1.5s", poll = { every = "100ms" } }, { write = {} }]
[client.idle]
count = 3
steps = [{ sleep = "1s" }]
[link.slow]
from = "idle1"
to = "redis"
latency = "5ms"
[fault.pause]
pause = "c1"
on = { client = "c1", event = "acquired", delay = "10ms" }
for = "2s..2.5s" # longer than the lease
[fault.noise]
clock_step = { host = "idle2", by = "+1s" }
at = "2s"
[run]
storm = "40s"
calm = "5s"
[expect]
l3 = "violated"
"#;

    /// The scenario of a file without variants.
    fn read(text: &str) -> Scenario {
        let source = parse("shrunk.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        source.variants[0].scenario.clone()
    }

    #[test]
    fn what_a_violation_does_not_need_is_taken_away() {
        let source = parse("noisy.toml", NOISY).expect("a scenario");
        let checker = Checker::named("l3").expect("a checker");
        let shrink = Shrink { seed: 3, engine: Engine::Event, checker };
        let shrunk = shrink.of(&source.variants[0].scenario, NOISY, &mut |_| {});
        let shrunk = shrunk.expect("it can be written").expect("it is violated");
        let left = read(&shrunk.text);
        assert_eq!(left.fault.keys().collect::<Vec<_>>(), ["pause"], "{:?}", shrunk.changes);
        assert_eq!(left.client.keys().collect::<Vec<_>>(), ["c1", "c2"], "{:?}", shrunk.changes);
        assert_eq!(left.node.keys().collect::<Vec<_>>(), ["redis"], "{:?}", shrunk.changes);
        assert!(left.link.is_empty() && left.resource.is_some(), "{:?}", shrunk.changes);
        assert_eq!(left.clocks().count(), 0, "{:?}", shrunk.changes);
        assert!(
            !shrunk.text.contains("response_timeout") && !shrunk.text.contains("[network]"),
            "{}",
            shrunk.text
        );
        assert!(shrink.is_violated(&left), "{}", shrunk.text);
        // A scenario that is written without the layout of its file is still the same scenario.
        assert_eq!(read(&to_toml(&left).expect("it can be written")), left, "{}", shrunk.text);
        assert!(shrunk.text.contains("# longer than the lease\n"), "{}", shrunk.text);
        insta::assert_snapshot!("shrunk", shrunk.text);
    }

    /// `NOISY` with another fault: a pause for 2 s, first at 1.05 s and then every 3 s until 14 s.
    fn repeated() -> String {
        let at = "on = { client = \"c1\", event = \"acquired\", delay = \"10ms\" }\nfor = \"2s..2.5s\" # longer than the lease";
        let every = "at = \"1.05s\"\nevery = \"3s\"\nuntil = \"14s\"\nfor = \"2s\"";
        assert!(NOISY.contains(at));
        NOISY
            .replace(at, every)
            .replace("at = \"1s\", try_acquire", "at = \"7s\", try_acquire")
            .replace("at = \"1.5s\", poll", "at = \"7.5s\", poll")
    }

    /// The pauses are at 1.05 s, 4.05 s, 7.05 s, 10.05 s and 13.05 s. The lock is granted at 7 s,
    /// so the violation needs only the third.
    #[test]
    fn of_a_repeated_fault_the_occurrence_that_matters_is_left() {
        let text = repeated();
        let source = parse("repeated.toml", &text).expect("a scenario");
        let shrink =
            Shrink { seed: 3, engine: Engine::Event, checker: Checker::named("l3").expect("a checker") };
        let shrunk = shrink.of(&source.variants[0].scenario, &text, &mut |_| {});
        let shrunk = shrunk.expect("it can be written").expect("it is violated");
        let words = "without all of pause but the one at 7.05s";
        assert!(shrunk.changes.iter().any(|change| change == words), "{:?}", shrunk.changes);
        let pause = &read(&shrunk.text).fault["pause"];
        assert_eq!((pause.every, pause.until), (None, None), "{}", shrunk.text);
    }

    #[test]
    fn each_occurrence_is_tried_alone_and_the_latest_left_out() {
        let source = parse("repeated.toml", &repeated()).expect("a scenario");
        let tried = occurrences(&source.variants[0].scenario);
        let words: Vec<&str> = tried.iter().map(|(words, _)| &**words).collect();
        let alone = ["4.05s", "7.05s", "10.05s", "13.05s"]
            .map(|at| format!("without all of pause but the one at {at}"));
        let expected =
            ["without all but the first pause"].into_iter().chain(alone.iter().map(|words| &**words));
        assert_eq!(words, expected.chain(["without the pause at 13.05s"]).collect::<Vec<_>>());
        let latest = tried.last().map(|(_, smaller)| smaller.fault["pause"].until);
        assert_eq!(
            latest,
            Some(Some("10.05s".parse().expect("a time"))),
            "the one before is the last that is left"
        );
    }

    /// Regression: groups of three and wrong clocks were left unchanged.
    #[test]
    fn groups_of_sentinels_and_their_clocks_were_left_as_they_are() {
        let text = NOISY.replace(
            "[resource]",
            "[sentinel.s]\ncount = 3\nclock = { rate = \"+1%\" }\n[client.idle.clock]\noffset = \"-1s\"\n[resource]",
        );
        let scenario = &parse("sentinels.toml", &text).expect("a scenario").variants[0].scenario;
        let words =
            |proposals: Vec<Proposal>| proposals.into_iter().map(|(words, _)| words).collect::<Vec<_>>();
        assert_eq!(words(hosts(scenario))[..2], ["without Sentinel s", "without one of 3 Sentinels s"]);
        assert_eq!(
            words(clocks(scenario)),
            ["redis", "s", "idle"].map(|name| format!("without the clock error of {name}"))
        );
        let left = clocks(scenario).iter().map(|(_, smaller)| smaller.clocks().count()).collect::<Vec<_>>();
        assert_eq!(left, [2, 2, 2], "each proposal is about one of them");
    }

    /// Regression: a lock named `clock` ended with a lease of a few milliseconds.
    #[test]
    fn only_clocks_of_hosts_are_made_less_wrong() {
        let text = NOISY
            .replace("[lock]", "[lock.clock]")
            .replace("+3s", "+30s")
            .replace("[resource]", "[sentinel.s]\nclock = { rate = \"+10%\" }\n[resource]");
        let scenario = &parse("clocks.toml", &text).expect("a scenario").variants[0].scenario;
        let changed = |key: &str| {
            let words = values::simpler(scenario, 0).into_iter().map(|(words, _)| words);
            words.filter(|words| words.starts_with(&format!("with {key} = "))).count()
        };
        let keys = ["node.redis.clock.offset", "sentinel.s.clock.rate", "lock.clock.lease"].map(changed);
        assert!(keys[0] > 0 && keys[1] > 0 && keys[2] == 0, "{keys:?}");
    }

    /// Regression: the result contained `clock = {}`.
    #[test]
    fn a_sentinel_is_written_without_its_defaults() {
        let text = NOISY.replace("[resource]", "[sentinel.s]\ncount = 3\n[resource]");
        let scenario = &parse("sentinels.toml", &text).expect("a scenario").variants[0].scenario;
        let written = to_toml(scenario).expect("it can be written");
        assert!(written.contains("[sentinel.s]\ncount = 3\n\n"), "{written}");
    }

    #[test]
    fn nothing_is_taken_from_a_scenario_that_is_not_violated() {
        let source = parse("noisy.toml", NOISY).expect("a scenario");
        let checker = Checker::named("l1").expect("a checker");
        let shrink = Shrink { seed: 3, engine: Engine::Event, checker };
        let shrunk = shrink.of(&source.variants[0].scenario, NOISY, &mut |_| {});
        assert!(shrunk.expect("it can be written").is_none());
    }
}
