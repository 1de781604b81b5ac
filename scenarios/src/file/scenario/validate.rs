//! The rules for a scenario beyond its form: every name refers to something, and every entry does
//! exactly one thing.

use std::{collections::BTreeSet, ops::Range};

use indexmap::IndexSet;
use lockstorm_sim::{
    config::{Config, options},
    generation::Generation,
};

use super::{
    Client, Lock, Node, PHASE_MAX, SEEDS_MAX, Scenario, Sentinel, Step, StepEntry, Steps, WorkloadEntry,
    address, cluster, driver,
    error::Mistake,
    hunt,
    limits::{self, Wrong},
    measure, one_name,
    places::Places,
    replicas, sentinel, targets, trait_commands, user, word,
};
use crate::{
    file::{
        fault::{self, Fault},
        name::Name,
        selector::{Hosts, Selector},
    },
    judge::{checker, verdict::Expectation},
    units::{Draw, Span},
};

/// The most hosts of one scenario: more are a mistake and not an experiment.
const HOSTS_MAX: u32 = 1000;

/// The most lines of work of one client.
const LINES_MAX: usize = 1000;

/// The most occurrences of one fault: more are a mistake in the unit of its period.
const OCCURRENCES_MAX: u128 = 100_000;

pub(super) fn validate(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    if scenario.node.is_empty() {
        return Err(Mistake::at(0..0, "the scenario has no Redis node: add one, such as [node.m]"));
    }
    if scenario.client.is_empty() {
        return Err(Mistake::at(0..0, "the scenario has no client: add one, such as [client.c1]"));
    }
    if !(1..=SEEDS_MAX).contains(&scenario.run.seeds) {
        let message = format!("{} seeds cannot be tried: from one to {SEEDS_MAX} can", scenario.run.seeds);
        return Err(Mistake::at(places.of_value(&["run", "seeds"]), message));
    }
    check_phases(scenario, places)?;
    check_boundary(scenario, places)?;
    check_generations(scenario, places)?;
    check_checker(scenario.plot.as_deref(), &["plot"], places)?;
    let names = Names { scenario, places };
    for (name, lock) in &*scenario.lock {
        check_lock(&names, name, lock)?;
    }
    one_name::check(scenario, places)?;
    names.check_counts()?;
    names.check_no_host_is_named_twice()?;
    for (name, node) in &scenario.node {
        check_node(&names, name, node)?;
    }
    replicas::check(scenario)?;
    replicas::check_masters(scenario, places)?;
    cluster::check(scenario, places)?;
    address::check(scenario, places)?;
    user::check(scenario, places)?;
    for named in scenario.user.values().flat_map(|user| user.nodes.iter().flatten()) {
        names.node(named)?;
    }
    scenario.sentinel.iter().try_for_each(|(name, one)| check_sentinel(&names, name, one))?;
    scenario.client.iter().try_for_each(|(name, client)| check_client(&names, name, client))?;
    for link in scenario.link.values() {
        names.hosts(&link.from)?;
        names.hosts(&link.to)?;
    }
    for (name, entry) in &scenario.fault {
        check_fault(&names, name, entry)?;
    }
    for (name, expected) in &scenario.expect {
        check_expected(name, expected, &["expect", name], places)?;
    }
    measure::check(scenario, places)?;
    scenario.hunt.iter().flat_map(|hunt| &hunt.of).try_for_each(|of| names.hosts(of))?;
    hunt::check(scenario, places)?;
    for (name, otherwise) in &scenario.real {
        let comes = otherwise.comes.as_ref().or(scenario.expect.get(name));
        if let Some(comes) = comes {
            check_expected(name, comes, &["real", name, "comes"], places)?;
        }
        if !scenario.expect.contains_key(name) {
            let message = format!("nothing is expected of `{name}`, so that nothing comes out otherwise");
            return Err(Mistake::at(places.of_key(&["real", name]), message));
        }
        if otherwise.because.trim().is_empty() {
            let message = "expected the reason why real servers come out otherwise";
            return Err(Mistake::at(places.of_value(&["real", name, "because"]), message));
        }
    }
    Ok(())
}

/// Checks that the generations exist on which a claim comes out as stated.
fn check_generations(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    let stated = scenario.claim.iter().flat_map(|claim| &claim.generations);
    stated.filter(|name| Generation::named(name).is_none()).try_for_each(|name| {
        let known = Generation::ALL.map(Generation::name).into_iter();
        Err(Mistake::unknown(places.of_value(&["claim", "generations"]), "generation", name, known))
    })
}

/// Checks that the checker exists, and that it has the measures of the expectation. `path` is the
/// path of the expectation.
fn check_expected(
    name: &str,
    expected: &Expectation,
    path: &[&str],
    places: &Places<'_, '_>,
) -> Result<(), Mistake> {
    let Some(checker) = checker::LIST.iter().find(|checker| checker.name == name) else {
        let known = checker::LIST.iter().map(|checker| checker.name);
        return Err(Mistake::unknown(places.of_key(&path[..2]), "checker", name, known));
    };
    for measure in expected.measures.keys() {
        if !checker.measures.iter().any(|(known, _)| known == measure) {
            let place = places.of_key(&[path, &[expected.word(), measure]].concat());
            let known = checker.measures.iter().map(|(known, _)| *known);
            return Err(Mistake::unknown(place, &format!("measure of {name}"), measure, known));
        }
    }
    Ok(())
}

/// Checks that the checker exists that the value at this path names.
fn check_checker(name: Option<&str>, path: &[&str], places: &Places<'_, '_>) -> Result<(), Mistake> {
    let known = || checker::LIST.iter().map(|checker| checker.name);
    match name {
        Some(name) if known().all(|one| one != name) => {
            Err(Mistake::unknown(places.of_value(path), "checker", name, known()))
        }
        _ => Ok(()),
    }
}

fn check_boundary(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    let Some(boundary) = &scenario.boundary else { return Ok(()) };
    check_checker(boundary.checker.as_deref(), &["boundary", "checker"], places)?;
    boundary
        .wrong(scenario)
        .map_err(|Wrong { key, message }| Mistake::at(places.of_value(&["boundary", key]), message))
}

fn check_phases(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    for (name, phase) in [("storm", Some(scenario.run.storm)), ("calm", scenario.run.calm)] {
        if let Some(phase) = phase.filter(|phase| *phase > PHASE_MAX) {
            let message = format!("a {name} of {phase} is too long to run: give at most {PHASE_MAX}");
            return Err(Mistake::at(places.of_value(&["run", name]), message));
        }
    }
    Ok(())
}

fn check_node(names: &Names<'_, '_>, name: &str, node: &Node) -> Result<(), Mistake> {
    for (option, value) in &node.config {
        let path = ["node", name, "config", option];
        let Some(known) = options::find_at_start(node.generation(), option) else {
            let all = options::names().map(|(name, _)| name);
            return Err(Mistake::unknown(names.places.of_key(&path), "option", option, all));
        };
        if let Err(why) = known.check(&Config::default(), value) {
            let message = format!("node {name}: {option} = {value:?}: {why}");
            return Err(Mistake::at(names.places.of_value(&path), message));
        }
    }
    node.replica_of.as_ref().map_or(Ok(()), |master| names.node(master))
}

fn check_sentinel(names: &Names<'_, '_>, name: &str, written: &Sentinel) -> Result<(), Mistake> {
    let place = |key| names.places.of_value(&["sentinel", name, key]);
    for watched in written.watches.iter().flatten() {
        names.node(watched)?;
        if names.scenario.node_of(watched.as_str()).is_some_and(|node| node.replica_of.is_some()) {
            let why = format!("{} is a replica: Sentinels find replicas by their master", watched.as_str());
            return Err(Mistake::at(watched.span(), why));
        }
    }
    let count = written.count.unwrap_or(1);
    if let Some(quorum) = written.quorum.filter(|quorum| !(1..=count).contains(quorum)) {
        let message = format!("a quorum of {quorum} cannot be reached by {count}: from 1 to {count} can");
        return Err(Mistake::at(place("quorum"), message));
    }
    let (down, whole) = (written.down_after, written.failover_timeout);
    for (key, span) in [("down_after", down), ("failover_timeout", whole)] {
        if span.is_some_and(|span| span < Span::millis(1) || span > PHASE_MAX) {
            let message = format!("{} is not from 1ms to {PHASE_MAX}", span.unwrap_or_default());
            return Err(Mistake::at(place(key), message));
        }
    }
    sentinel::check_config(name, written, names.places)
}

fn check_lock(names: &Names<'_, '_>, name: &str, lock: &Lock) -> Result<(), Mistake> {
    let places = names.places;
    let of_key = |key| places.of_value(&["lock", name, key]);
    let check_traits = lock.subject.check(&lock.traits);
    check_traits
        .map_err(|(key, message)| Mistake::at(places.of_key(&["lock", name, "traits", key]), message))?;
    trait_commands::check(names.scenario, lock)
        .map_err(|(key, message)| Mistake::at(places.of_key(&["lock", name, "traits", key]), message))?;
    let kinds = lock.subject.kinds(&lock.traits);
    if !kinds.contains(&lock.kind) {
        let known: Vec<String> = kinds.iter().map(|kind| format!("\"{}\"", word(kind))).collect();
        let message = format!(
            "the subject \"{}\" is no lock of the kind \"{}\", but of {}",
            lock.subject,
            word(lock.kind),
            known.join(", ")
        );
        return Err(Mistake::at(of_key("kind"), message));
    }
    lock.nodes.iter().flatten().try_for_each(|node| names.node(node))?;
    if lock.nodes.as_ref().is_some_and(Vec::is_empty) {
        return Err(Mistake::at(of_key("nodes"), "the lock needs a node to live on"));
    }
    trait_commands::check_settings(names.scenario, lock).map_err(|wrong| wrong.at_place(of_key))?;
    lock.check().map_err(|wrong| wrong.at_place(of_key))
}

fn check_client(names: &Names<'_, '_>, name: &str, client: &Client) -> Result<(), Mistake> {
    let Names { scenario, places } = names;
    let is_host = |name: &&Name| !scenario.address.contains_key(name.as_str());
    client.nodes.iter().flatten().filter(is_host).try_for_each(|node| {
        names.node(node)?;
        address::check_lock_lives(scenario, node, &scenario.members(node.as_str()))
    })?;
    sentinel::check_client(scenario, name, client)?;
    user::check_client(scenario, client)?;
    driver::check(scenario, name, client, places)?;
    let own = Script { names, path: vec!["client", name], called: format!("client {name}") };
    own.check(&client.steps, client.workload.as_ref())?;
    if !client.line.is_empty() && (!client.steps.is_empty() || client.workload.is_some()) {
        let message =
            format!("client {name} has lines of work, and does something beside them: make that a line");
        return Err(Mistake::at(places.of_key(&["client", name, "line"]), message));
    }
    for (line, written) in &client.line {
        if written.count == Some(0) {
            let place = places.of_value(&["client", name, "line", line, "count"]);
            return Err(Mistake::at(place, format!("there is nothing in [client.{name}.line.{line}]")));
        }
        let called = format!("line {line} of client {name}");
        let of_line = Script { names, path: vec!["client", name, "line", line], called };
        of_line.check(&written.steps, written.workload.as_ref())?;
    }
    if client.lines() > LINES_MAX {
        let message =
            format!("client {name} has {} lines of work; at most {LINES_MAX} can be", client.lines());
        return Err(Mistake::at(places.of_key(&["client", name, "line"]), message));
    }
    let nameless = |(_, lock): &(&String, &Lock)| lock.kind.has_permits();
    match scenario.lock.iter().find(nameless) {
        Some((lock, _)) if client.lines() > 1 => {
            let message = format!(
                "the keys of {lock:?} do not say which line of work has a permit: give each line a client of its own"
            );
            Err(Mistake::at(places.of_key(&["client", name, "line"]), message))
        }
        _ => Ok(()),
    }
}

/// The work of one line, and its place in the file.
struct Script<'a, 'i> {
    names: &'a Names<'a, 'i>,
    path: Vec<&'a str>,
    called: String,
}

impl Script<'_, '_> {
    fn path<'p>(&'p self, path: &[&'p str]) -> Vec<&'p str> {
        [&self.path, path].concat()
    }

    fn check(&self, steps: &Steps, workload: Option<&WorkloadEntry>) -> Result<(), Mistake> {
        let Names { scenario, places } = self.names;
        for (at, entry) in steps.iter().enumerate() {
            let at_text = at.to_string();
            let place = |path: &[&str]| places.of_value(&self.path(&[&["steps", &*at_text], path].concat()));
            let step = one_action(entry, at).map_err(|message| Mistake::at(place(&[]), message))?;
            let lock = match &entry.of {
                None => None,
                Some(name) => Some(self.names.lock(name)?),
            };
            if let (Some(of), false) = (&entry.of, step.as_ref().is_some_and(|step| step.has_lock())) {
                let message = format!("step {} is about no lock, so `of` means nothing", at + 1);
                return Err(Mistake::at(of.span(), message));
            }
            let Some(step) = step else { continue };
            if lock.is_none() && step.must_say_lock() && scenario.lock.len() > 1 {
                let known: Vec<&str> = scenario.lock.keys().map(String::as_str).collect();
                let message = format!("step {} does not say which lock it is about: add `of = ..`", at + 1);
                let help = Some(format!("the locks are: {}", known.join(", ")));
                return Err(Mistake { span: place(&[]), message, help });
            }
            // If the step names no lock, it must suit every lock.
            let about = lock.into_iter().chain(scenario.lock.values().filter(|_| lock.is_none()));
            for lock in about {
                step.check(lock).map_err(|wrong| wrong.at_place(|key| place(&[step.name(), key])))?;
            }
        }
        let Some(workload) = workload else { return Ok(()) };
        let place = places.of_key(&self.path(&["workload"]));
        let kinds = workload.given();
        let [kind] = &kinds[..] else {
            let message = match kinds.len() {
                0 => "a workload needs a kind, such as workload.contend = { .. }",
                _ => "a workload has one kind: give each to a client of its own",
            };
            return Err(Mistake::at(place, message));
        };
        let of_key = |key| places.of_value(&self.path(&["workload", kind.name(), key]));
        kind.check().map_err(|wrong| wrong.at_place(of_key))?;
        for name in kind.locks() {
            self.names.lock(name)?;
        }
        let is_about =
            |name: &str| kind.locks().is_empty() || kind.locks().iter().any(|of| of.as_str() == name);
        for (_, lock) in scenario.lock.iter().filter(|(name, _)| is_about(name)) {
            kind.check_lock(lock).map_err(|wrong| wrong.at_place(of_key))?;
        }
        if let Some(key) = kind.shares() {
            check_shared(scenario, kind.locks()).map_err(|message| Mistake::at(of_key(key), message))?;
        }
        if kind.takes_together() {
            check_together(scenario, kind.locks())
                .map_err(|message| Mistake::at(of_key("together"), message))?;
        }
        if !steps.is_empty() {
            let message = format!("{} has both steps and a workload: give one", self.called);
            return Err(Mistake::at(place, message));
        }
        Ok(())
    }
}

/// Checks that the locks that a workload shares are read-write locks.
fn check_shared(scenario: &Scenario, named: &[Name]) -> Result<(), String> {
    let of = |name: &String| named.is_empty() || named.iter().any(|one| one.as_str() == name);
    match scenario.lock.iter().find(|(name, lock)| of(name) && !lock.kind.can_be_shared()) {
        None => Ok(()),
        Some((name, _)) if name.is_empty() => Err(SHARED.to_owned()),
        Some((name, _)) => Err(format!("{SHARED} (`{name}` is none)")),
    }
}

/// The message for a lock that cannot be shared.
const SHARED: &str = "only a read-write lock can be shared: lock.kind = \"read-write\"";

/// Checks that locks that are acquired together are several, and have one subject.
fn check_together(scenario: &Scenario, named: &[Name]) -> Result<(), String> {
    let of = |name: &String| named.is_empty() || named.iter().any(|one| one.as_str() == name);
    let subjects: Vec<&str> =
        scenario.lock.iter().filter(|(name, _)| of(name)).map(|(_, lock)| lock.subject.name).collect();
    if scenario.lock.iter().any(|(name, lock)| of(name) && lock.kind.has_permits()) {
        return Err("what has permits is not taken together with other locks".to_owned());
    }
    match subjects[..] {
        [first, _, ..] if subjects.iter().all(|subject| *subject == first) => Ok(()),
        [_, _, ..] => Err("locks that are taken together need one subject for all".to_owned()),
        _ => Err("it takes two locks to take them together".to_owned()),
    }
}

/// Returns the only action of a step, or `None` for a step that only waits for its time.
fn one_action(entry: &StepEntry, at: usize) -> Result<Option<Step>, String> {
    let mut steps = entry.given();
    match steps.len() {
        1 => Ok(steps.pop()),
        // An `at` alone is a pause until that time.
        0 if entry.at.is_some() => Ok(None),
        0 => Err(format!("step {} does nothing: give it an action, such as acquire = {{}}", at + 1)),
        _ => {
            let names: Vec<&str> = steps.iter().map(Step::name).collect();
            Err(format!("step {} does several things ({}): one step each", at + 1, names.join(", ")))
        }
    }
}

impl Wrong {
    /// Makes the mistake at the place of its key.
    fn at_place(self, place: impl FnOnce(&'static str) -> Range<usize>) -> Mistake {
        Mistake::at(place(self.key), self.message)
    }
}

fn check_fault(names: &Names<'_, '_>, name: &str, entry: &Fault) -> Result<(), Mistake> {
    if entry.off {
        return Ok(());
    }
    let place = |key: &str| names.places.of_key(&["fault", name, key]);
    let kinds = entry.given();
    let [kind] = &kinds[..] else {
        let known: Vec<&str> = fault::LIST.iter().map(|(name, _)| *name).collect();
        let message = format!(
            "fault `{name}` must do exactly one thing, such as crash = \"m\"; it does {}",
            kinds.len()
        );
        let span = names.places.of_key(&["fault", name]);
        return Err(Mistake { span, message, help: Some(format!("the faults are: {}", known.join(", "))) });
    };
    for hosts in kind.hosts() {
        names.hosts(hosts)?;
        address::check_fault(names.scenario, kind)?;
        if kind.is_of_nodes() {
            targets::are_nodes(names.scenario, kind.name(), hosts)?;
        }
    }
    sentinel::check_fault(names.scenario, names.places, name, kind)?;
    match (entry.at, &entry.on) {
        (None, None) => {
            let message = format!("fault `{name}` needs a time: `at = \"3s\"` or `on = {{ .. }}`");
            return Err(Mistake::at(names.places.of_key(&["fault", name]), message));
        }
        (Some(_), Some(_)) => {
            return Err(Mistake::at(place("on"), format!("fault `{name}` has both `at` and `on`: give one")));
        }
        _ => {}
    }
    if entry.length.is_some() && !kind.can_end() {
        let message = format!("fault `{name}`: {} is done at once, so `for` means nothing", kind.name());
        return Err(Mistake::at(place("for"), message));
    }
    check_repetition(names, name, entry)?;
    let Some(trigger) = &entry.on else { return Ok(()) };
    if let Some(client) = &trigger.client {
        names.hosts(client)?;
    }
    if let Some(lock) = &trigger.of {
        names.lock(lock)?;
    }
    if let Some((key, message)) = trigger.wrong() {
        let place = names.places.of_value(&["fault", name, "on", key]);
        return Err(Mistake::at(place, format!("fault `{name}`: {message}")));
    }
    if entry.every.is_some() {
        let message = format!("fault `{name}` begins when something happens: say `always` in `on` instead");
        return Err(Mistake::at(place("every"), message));
    }
    Ok(())
}

/// Checks the repetition of a fault: `every` and `until`.
fn check_repetition(names: &Names<'_, '_>, name: &str, entry: &Fault) -> Result<(), Mistake> {
    let place = |key: &str| names.places.of_value(&["fault", name, key]);
    let Some(every) = entry.every else {
        return match entry.until {
            None => Ok(()),
            Some(_) => {
                let message = format!(
                    "fault `{name}` occurs once, so `until` means nothing: say how often with `every`"
                );
                Err(Mistake::at(names.places.of_key(&["fault", name, "until"]), message))
            }
        };
    };
    let (Draw::Fixed(shortest) | Draw::Range(shortest, _)) = every;
    limits::period("every", Some(shortest)).map_err(|wrong| wrong.at_place(place))?;
    let last = entry.until.unwrap_or(names.scenario.run.storm);
    let occurrences = last.0.as_nanos() / shortest.0.as_nanos();
    if occurrences > OCCURRENCES_MAX {
        let message = format!(
            "fault `{name}` would occur {occurrences} times within {last}; at most {OCCURRENCES_MAX} times can be"
        );
        return Err(Mistake::at(place("every"), message));
    }
    Ok(())
}

/// The names that a scenario defines, and their places in the file.
struct Names<'a, 'i> {
    scenario: &'a Scenario,
    places: &'a Places<'a, 'i>,
}

impl Names<'_, '_> {
    fn nodes(&self) -> impl Iterator<Item = String> {
        self.scenario.node.iter().flat_map(|(name, node)| super::group(name, node.count))
    }

    /// Returns every group of hosts: its table, its name and its count.
    fn groups(&self) -> impl Iterator<Item = (&'static str, &String, Option<u32>)> {
        let nodes = self.scenario.node.iter().map(|(name, node)| ("node", name, node.count));
        let sentinels = self.scenario.sentinel.iter().map(|(name, one)| ("sentinel", name, one.count));
        let clients = self.scenario.client.iter().map(|(name, client)| ("client", name, client.count));
        nodes.chain(sentinels).chain(clients)
    }

    fn check_counts(&self) -> Result<(), Mistake> {
        let mut hosts = 0;
        for (table, name, count) in self.groups() {
            hosts += u64::from(count.unwrap_or(1));
            let place = || self.places.of_value(&[table, name, "count"]);
            if count == Some(0) {
                return Err(Mistake::at(place(), format!("there are no hosts in [{table}.{name}]")));
            }
            if hosts > u64::from(HOSTS_MAX) {
                let message =
                    format!("the scenario has {hosts} hosts up to here; at most {HOSTS_MAX} can be");
                return Err(Mistake::at(place(), message));
            }
        }
        Ok(())
    }

    fn check_no_host_is_named_twice(&self) -> Result<(), Mistake> {
        let mut seen: BTreeSet<String> = super::RESERVED.iter().map(|name| (*name).to_owned()).collect();
        for (table, name, count) in self.groups() {
            for host in super::group(name, count) {
                if super::RESERVED.contains(&host.as_str()) {
                    let message = format!("`{host}` is the guarded resource: choose another name");
                    return Err(Mistake::at(self.places.of_key(&[table, name]), message));
                }
                if !seen.insert(host.clone()) {
                    let message = format!("two hosts are called `{host}`");
                    return Err(Mistake::at(self.places.of_key(&[table, name]), message));
                }
            }
        }
        Ok(())
    }

    fn lock(&self, name: &Name) -> Result<&Lock, Mistake> {
        let known = || self.scenario.lock.keys().map(String::as_str);
        let lock = self.scenario.lock.get(name.as_str());
        lock.ok_or_else(|| Mistake::unknown(name.span(), "lock", name.as_str(), known()))
    }

    fn node(&self, name: &Name) -> Result<(), Mistake> {
        if self.scenario.node.contains_key(name.as_str()) || self.nodes().any(|node| node == name.as_str()) {
            return Ok(());
        }
        let known: Vec<String> = self.nodes().collect();
        Err(Mistake::unknown(name.span(), "node", name.as_str(), known.iter().map(String::as_str)))
    }

    /// Checks that the lock, or every lock if the selector names none, lives on one and the same
    /// master.
    fn one_master(&self, selector: &Name, lock: Option<&str>) -> Result<(), Mistake> {
        let meant = self.scenario.lock.iter().filter(|(name, _)| lock.is_none_or(|lock| lock == *name));
        let nodes: Vec<Vec<String>> = meant.map(|(_, lock)| self.scenario.lock_nodes(lock)).collect();
        let masters: IndexSet<&String> = nodes.iter().flatten().collect();
        // In a cluster each lock has one master, the master of its slot.
        if masters.len() <= 1 || (self.scenario.is_cluster() && nodes.len() == 1) {
            return Ok(());
        }
        let what = if nodes.len() == 1 { "this lock lives" } else { "these locks live" };
        let message = format!(
            "`@master` is the one master that the lock lives on, and {what} on {} ({}): name one of them, or say \
             `@any-node` or `@minority`",
            masters.len(),
            masters.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
        );
        let mut alone = self.scenario.lock.keys().zip(&nodes).filter(|(_, nodes)| nodes.len() == 1);
        let help = alone.next().filter(|_| nodes.len() > 1);
        let help = help.map(|(name, _)| format!("say which lock is meant, such as \"@master of {name}\""));
        Err(Mistake { span: selector.span(), message, help })
    }

    fn hosts(&self, hosts: &Hosts) -> Result<(), Mistake> {
        for name in hosts.names() {
            let selector =
                name.as_str().parse::<Selector>().map_err(|message| Mistake::at(name.span(), message))?;
            if let Some(lock) = selector.lock() {
                self.lock(&Name::at(name.span(), lock))?;
            }
            if let Selector::Master(lock) = &selector {
                self.one_master(name, lock.as_deref())?;
            }
            let Selector::Named(host) = selector else { continue };
            let groups = self
                .groups()
                .flat_map(|(_, name, count)| [name.clone()].into_iter().chain(super::group(name, count)));
            let own = super::RESERVED.iter().map(|name| (*name).to_owned());
            let known: Vec<String> = groups.chain(own).collect();
            if !known.contains(&host) {
                return Err(Mistake::unknown(name.span(), "host", &host, known.iter().map(String::as_str)));
            }
        }
        Ok(())
    }
}
