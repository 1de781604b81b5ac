//! Explains a violation by counterfactuals: finds the smallest sets of faults, clock errors and
//! delays without which the same seed's run is not violated.
//!
//! The definition of a cause follows Lewis, *Causation* (1973): the violation would not have
//! happened without it. Every host, script and fault draws from a stream of its own, so that the
//! removal of one does not change the others.

mod weaken;

use serde::Serialize;

use lockstorm::{
    file::{
        plan::Plan,
        scenario::{Clock, Measures, Scenario, Source},
    },
    judge::{checker::Checker, history::Fault, verdict::Counterfactual},
    run::Engine,
    run::runner,
    units::{Draw, Span},
};

/// The replacement of a network's latency: too short to affect any lease.
const NEARLY_NONE: Span = Span::millis(0);

/// The most pairs that are tried. If there are more, only the first are tried, and the answer says
/// so.
const PAIRS_MAX: usize = 300;

/// The number of pairs, from the first, whose members are weakened.
const PAIRS_WEAKENED_MAX: usize = 8;

/// The number of occurrences of repeated faults, from the first, that are removed one at a time.
const OCCURRENCES_MAX: usize = 32;

/// The number of bisection steps in the search for the smallest violating share of a cause.
const HALVINGS: u32 = 6;

/// A fault, a clock error or a delay in a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", content = "name", rename_all = "kebab-case")]
pub(crate) enum Suspect {
    /// A fault, with all of its occurrences.
    Fault(String),
    /// One occurrence of a repeated fault: `name#2`.
    Occurrence(String),
    /// The clock error of a node or a group of nodes.
    NodeClock(String),
    /// The clock error of a client or a group of clients.
    ClientClock(String),
    /// The clock error of a Sentinel or a group of Sentinels.
    SentinelClock(String),
    /// The extra latency of a link.
    Link(String),
    /// The latency of the network.
    Latency,
}

/// The verdict after the removal of some suspects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Without {
    /// The removed suspects.
    pub(crate) suspects: Vec<Suspect>,
    /// The verdict without them: *holds*, *violated* or *undecided*.
    pub(crate) verdict: &'static str,
}

/// The size of a cause that suffices for the violation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Weakened {
    /// The cause.
    pub(crate) suspect: Suspect,
    /// The other member of a pair, which was removed as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) without: Option<Suspect>,
    /// The largest tried share of its size with which the verdict holds; 0 if no tried share does.
    pub(crate) harmless: f64,
    /// The smallest tried share of its size that violates.
    pub(crate) violated: f64,
}

/// The answer: the dependence of a violation on the suspects.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Why {
    /// The verdicts without each single suspect.
    pub(crate) alone: Vec<Without>,
    /// The verdicts without each single occurrence of the repeated faults among the causes.
    pub(crate) occurrences: Vec<Without>,
    /// The causes that have a size, reduced. Of a pair, one is reduced and the other removed.
    pub(crate) weakened: Vec<Weakened>,
    /// The pairs without which the verdict holds. Only tried if no single suspect suffices.
    pub(crate) pairs: Vec<Without>,
    /// The verdict without all suspects. If it is still *violated*, the lock is unsafe without any
    /// fault.
    pub(crate) without_all: &'static str,
    /// The number of pairs that were not tried, because there are too many.
    pub(crate) untried: usize,
    /// The number of occurrences that were not tried, because there are too many.
    pub(crate) untried_occurrences: usize,
    /// The number of runs that the answer took.
    pub(crate) runs: usize,
}

/// The causes of one checker's violation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Causes {
    /// The name of the checker.
    pub(crate) checker: &'static str,
    /// The answer.
    #[serde(flatten)]
    pub(crate) why: Why,
}

/// A violated run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inquiry {
    /// Its seed.
    pub(crate) seed: u64,
    /// The engine that advances the time.
    pub(crate) engine: Engine,
    /// The checker whose verdict is explained.
    pub(crate) checker: &'static Checker,
}

impl Inquiry {
    /// Removes each suspect in turn, and pairs if no single one suffices. Returns `None` if the run
    /// is not violated.
    pub(crate) fn of(&self, scenario: &Scenario) -> Option<Causes> {
        let plan = Plan::draw(scenario, self.seed);
        if self.verdict(&plan) != "violated" {
            return None;
        }
        // Remove boundary and measures: their formulas may refer to a removed suspect, and they do
        // not affect the run.
        let scenario = &Scenario { boundary: None, measure: Measures::new(), ..scenario.clone() };
        let suspects = suspects(scenario);
        let mut runs = 1;
        let mut without = |of: &[&Suspect]| {
            runs += 1;
            let suspects: Vec<Suspect> = of.iter().map(|suspect| (*suspect).clone()).collect();
            let left = suspects.iter().fold(scenario.clone(), |left, suspect| suspect.taken(left));
            let mut plan = Plan::draw(&left, self.seed);
            plan.retain_occurrences(|name| !suspects.contains(&Suspect::Occurrence(name.to_owned())));
            Without { suspects, verdict: self.verdict(&plan) }
        };
        let all: Vec<&Suspect> = suspects.iter().collect();
        let without_all = without(&all).verdict;
        let alone: Vec<Without> = suspects.iter().map(|suspect| without(&[suspect])).collect();
        let (mut pairs, mut untried) = (Vec::new(), 0);
        if without_all != "violated" && !alone.iter().any(Without::prevents) {
            let all: Vec<[&Suspect; 2]> = suspects
                .iter()
                .enumerate()
                .flat_map(|(at, one)| suspects[at + 1..].iter().map(move |other| [one, other]))
                .collect();
            untried = all.len().saturating_sub(PAIRS_MAX);
            pairs = all.iter().take(PAIRS_MAX).map(|pair| without(pair)).filter(Without::prevents).collect();
        }
        let causes = || alone.iter().filter(|one| one.prevents()).flat_map(|one| &one.suspects);
        let repeated: Vec<Suspect> = causes().flat_map(|cause| cause.occurrences(&plan)).collect();
        let untried_occurrences = repeated.len().saturating_sub(OCCURRENCES_MAX);
        let occurrences: Vec<Without> =
            repeated.iter().take(OCCURRENCES_MAX).map(|one| without(&[one])).collect();
        let alone_or_of_pair = causes().map(|cause| (cause, None)).chain(members(&pairs));
        let weakened: Vec<Weakened> = alone_or_of_pair
            .filter_map(|(cause, without)| self.weakened(scenario, cause, without, &mut runs))
            .collect();
        let why =
            Why { alone, occurrences, weakened, pairs, without_all, untried, untried_occurrences, runs };
        Some(Causes { checker: self.checker.name, why })
    }

    /// Bisects the size of a cause, optionally without another suspect. The run is violated with
    /// the whole cause, and not without it. Returns `None` if the cause has no size.
    fn weakened(
        &self,
        scenario: &Scenario,
        cause: &Suspect,
        without: Option<&Suspect>,
        runs: &mut usize,
    ) -> Option<Weakened> {
        let left = without.map_or_else(|| scenario.clone(), |other| other.taken(scenario.clone()));
        let (mut harmless, mut violated) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let share = f64::midpoint(harmless, violated);
            let less = weaken::weakened(&left, cause, share)?;
            *runs += 1;
            match self.verdict(&Plan::draw(&less, self.seed)) {
                "violated" => violated = share,
                "holds" => harmless = share,
                // Between the two bounds lies an undecided run, so stop.
                _ => break,
            }
        }
        Some(Weakened { suspect: cause.clone(), without: without.cloned(), harmless, violated })
    }

    fn verdict(&self, plan: &Plan) -> &'static str {
        runner::verdict_of_plan(plan, self.engine, self.checker).word()
    }
}

/// Returns both members of the first pairs, each with the other one.
fn members(pairs: &[Without]) -> impl Iterator<Item = (&Suspect, Option<&Suspect>)> {
    pairs.iter().take(PAIRS_WEAKENED_MAX).flat_map(|pair| match &pair.suspects[..] {
        [one, other] => vec![(one, Some(other)), (other, Some(one))],
        _ => Vec::new(),
    })
}

/// Returns all suspects whose removal leaves a valid scenario.
fn suspects(scenario: &Scenario) -> Vec<Suspect> {
    let faults = scenario.fault.keys().cloned().map(Suspect::Fault);
    let clocks = scenario.clocks().cloned().map(|name| match &name {
        name if scenario.node.contains_key(name) => Suspect::NodeClock(name.clone()),
        name if scenario.sentinel.contains_key(name) => Suspect::SentinelClock(name.clone()),
        _ => Suspect::ClientClock(name),
    });
    let links = scenario.link.keys().cloned().map(Suspect::Link);
    let all = faults.chain(clocks).chain(links).chain([Suspect::Latency]);
    // A suspect to which other parts refer cannot be removed alone.
    all.filter(|suspect| Source::of("why", suspect.taken(scenario.clone())).is_ok()).collect()
}

impl Suspect {
    /// Returns the occurrences of a fault that has several.
    fn occurrences(&self, plan: &Plan) -> Vec<Suspect> {
        let Suspect::Fault(fault) = self else { return Vec::new() };
        let own = plan.occurrences_of(fault);
        let all: Vec<Suspect> = own.map(|name| Suspect::Occurrence(name.to_owned())).collect();
        if all.len() > 1 { all } else { Vec::new() }
    }

    /// Returns the number, from 1, of this occurrence of the fault with this name. `None` if it
    /// belongs to another fault.
    fn occurrence_of(&self, fault: &str) -> Option<usize> {
        let Suspect::Occurrence(name) = self else { return None };
        name.strip_prefix(fault)?.strip_prefix('#')?.parse().ok()
    }

    /// Returns the scenario without the suspect. An occurrence is removed from the plan instead, so
    /// that the others are drawn as before.
    fn taken(&self, mut from: Scenario) -> Scenario {
        match self {
            Suspect::Fault(name) => drop(from.fault.shift_remove(name)),
            Suspect::NodeClock(name) | Suspect::ClientClock(name) | Suspect::SentinelClock(name) => {
                from.clock_mut(name).into_iter().for_each(|clock| *clock = Clock::default());
            }
            Suspect::Link(name) => drop(from.link.shift_remove(name)),
            Suspect::Latency => from.network.latency = Draw::Fixed(NEARLY_NONE),
            Suspect::Occurrence(_) => {}
        }
        from
    }
}

impl std::fmt::Display for Suspect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Suspect::Fault(name) => write!(f, "the fault {name}"),
            Suspect::Occurrence(name) => write!(f, "the occurrence {name}"),
            Suspect::NodeClock(name) | Suspect::ClientClock(name) | Suspect::SentinelClock(name) => {
                write!(f, "the clock error of {name}")
            }
            Suspect::Link(name) => write!(f, "the latency of the link {name}"),
            Suspect::Latency => f.write_str("the latency of the network"),
        }
    }
}

impl Without {
    /// Returns true if the verdict holds without the suspects. An undecided verdict does not count:
    /// the run may have nothing left that could be violated.
    fn prevents(&self) -> bool {
        self.verdict == "holds"
    }

    fn line(&self) -> Counterfactual {
        let names: Vec<String> = self.suspects.iter().map(Suspect::to_string).collect();
        let still = if self.verdict == "violated" { "still " } else { "" };
        Counterfactual::new(format!("without {}", names.join(" and ")), format!("{still}{}", self.verdict))
    }
}

impl Weakened {
    fn line(&self) -> Counterfactual {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let (cause, violated) = (&self.suspect, percent(self.violated));
        let besides = self.without.as_ref().map_or_else(String::new, |other| format!("without {other}, "));
        if self.harmless > 0.0 {
            let harmless = percent(self.harmless);
            Counterfactual::new(
                format!("{besides}with {harmless} of {cause}"),
                format!("holds, and with {violated} of it still violated"),
            )
        } else {
            Counterfactual::new(format!("{besides}with {violated} of {cause}"), "still violated")
        }
    }
}

impl Why {
    /// Returns the indices of the run's faults that are causes. Those are the faults whose name is
    /// a cause, alone or in a pair. If single occurrences of a name are causes, only those
    /// occurrences count.
    pub(crate) fn confirmed(&self, faults: &[Fault]) -> Vec<usize> {
        let prevents = |all: &[Without]| -> Vec<Suspect> {
            all.iter().filter(|one| one.prevents()).flat_map(|one| one.suspects.clone()).collect()
        };
        let (mut causes, occurrences) =
            ([prevents(&self.alone), prevents(&self.pairs)].concat(), prevents(&self.occurrences));
        let is_told_apart = |cause: &Suspect| match cause {
            Suspect::Fault(name) => occurrences.iter().any(|one| one.occurrence_of(name).is_some()),
            _ => false,
        };
        causes.retain(|cause| !is_told_apart(cause));
        let is_cause = |place: &usize| {
            let name = &*faults[*place].name;
            let number = faults[..=*place].iter().filter(|fault| *fault.name == *name).count();
            causes.iter().any(|cause| matches!(cause, Suspect::Fault(of) if of == name))
                || occurrences.iter().any(|one| one.occurrence_of(name) == Some(number))
        };
        (0..faults.len()).filter(is_cause).collect()
    }

    /// The answer in words.
    pub(crate) fn lines(&self) -> Vec<Counterfactual> {
        let mut lines: Vec<Counterfactual> =
            self.alone.iter().chain(&self.pairs).map(Without::line).collect();
        lines.extend(self.occurrences.iter().filter(|one| one.prevents()).map(Without::line));
        if !self.occurrences.is_empty() && !self.occurrences.iter().any(Without::prevents) {
            let tried = format!("without any single one of {} occurrences", self.occurrences.len());
            lines.push(Counterfactual::new(tried, "still violated"));
        }
        if self.untried_occurrences > 0 {
            lines.push(Counterfactual::new(
                format!("{} later occurrences", self.untried_occurrences),
                "not tried",
            ));
        }
        lines.extend(self.weakened.iter().map(Weakened::line));
        if self.pairs.len() > PAIRS_WEAKENED_MAX {
            let more = self.pairs.len() - PAIRS_WEAKENED_MAX;
            lines.push(Counterfactual::new(format!("with less of {more} more pairs"), "not tried"));
        }
        if self.untried > 0 {
            lines.push(Counterfactual::new(format!("{} more pairs", self.untried), "not tried"));
        }
        let is_prevented = self.alone.iter().chain(&self.pairs).any(Without::prevents);
        lines.push(match (self.without_all, is_prevented) {
            ("violated", _) => Counterfactual::new(
                "without any of them",
                "still violated, so that the lock itself is the cause",
            ),
            ("holds", false) => Counterfactual::new(
                "without all of them",
                "holds, so that it takes more than two to prevent it",
            ),
            (verdict, _) => Counterfactual::new("without all of them", verdict),
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstorm::file::scenario::parse;

    fn of(text: &str, checker: &str) -> Why {
        let source = parse("why.toml", text).unwrap_or_else(|error| panic!("{error}"));
        let checker = Checker::named(checker).expect("a checker");
        let inquiry = Inquiry { seed: 0, engine: Engine::Event, checker };
        inquiry.of(&source.variants[0].scenario).expect("it is violated").why
    }

    fn words(why: &Why) -> Vec<String> {
        why.lines().iter().map(Counterfactual::to_string).collect()
    }

    /// A lock with a lease of 10 s, which another client requests 1.1 s after the grant, and these
    /// faults.
    fn why(faults: &str) -> Why {
        let text = format!(
            r#"
[node.m]
[lock]
lease = "10s"
[client.c1]
steps = [{{ at = "10s", try_acquire = {{}} }}, {{ work = {{ until = "20s", until_lost = true }} }}]
[client.c2]
steps = [{{ at = "11.1s", try_acquire = {{}} }}]
[run]
storm = "30s"
{faults}"#
        );
        of(&text, "l1")
    }

    fn jump(name: &str, by: &str, at: &str) -> String {
        format!("[fault.{name}]\nclock_step = {{ host = \"m\", by = \"{by}\" }}\nat = \"{at}\"\n")
    }

    #[test]
    fn the_one_fault_that_frees_the_lock_is_the_cause() {
        let noise = "[fault.noise]\npause = \"c1\"\nat = \"12s\"\nfor = \"1s\"\n";
        let why = why(&(jump("jump", "+10s", "11s") + noise));
        assert_eq!(
            words(&why),
            [
                "without the fault jump: holds",
                "without the fault noise: still violated",
                "without the latency of the network: still violated",
                // The lease would have lasted for another 8.9 s.
                "with 88 % of the fault jump: holds, and with 89 % of it still violated",
                "without all of them: holds",
            ]
        );
    }

    /// Regression: the fault was left out, and the lock itself was reported as the cause.
    #[test]
    fn a_fault_that_the_formula_of_a_boundary_names_can_be_the_cause() {
        let boundary = r#"
[boundary]
key = "fault.jump.clock_step.by"
from = "0s"
to = "12s"
formula = "fault.jump.at - 1s"
"#;
        let why = why(&(jump("jump", "+10s", "11s") + boundary));
        assert!(words(&why).contains(&"without the fault jump: holds".to_owned()), "{why:?}");
        assert_eq!(why.without_all, "holds");
    }

    #[test]
    fn of_two_jumps_that_each_suffice_both_have_to_go() {
        let why = why(&(jump("one", "+10s", "10.5s") + &jump("other", "+10s", "11s")));
        assert!(why.alone.iter().all(|one| one.verdict == "violated"), "{why:?}");
        assert_eq!(why.pairs.len(), 1, "{why:?}");
        assert!(
            words(&why).contains(&"without the fault one and the fault other: holds".to_owned()),
            "{why:?}"
        );
        // As with a jump that is the only cause: 8.9 s of the lease of 10 s remain.
        for line in [
            "without the fault other, with 88 % of the fault one: holds, and with 89 % of it still violated",
            "without the fault one, with 88 % of the fault other: holds, and with 89 % of it still violated",
        ] {
            assert!(words(&why).contains(&line.to_owned()), "{why:?}");
        }
    }

    /// Regression: undecided counted as prevented. So the cut, without which nothing is written,
    /// was a cause, and no pair was tried.
    #[test]
    fn what_leaves_nothing_to_decide_was_taken_for_a_cause() {
        let why = of(NOTHING_TO_DECIDE, "l3");
        let lines = words(&why);
        for line in [
            "without the fault cut: undecided",
            "without the fault one: still violated",
            "without the fault other: still violated",
            "without the fault one and the fault other: holds",
            "without all of them: undecided",
        ] {
            assert!(lines.iter().any(|one| one == line), "{line} in {lines:#?}");
        }
        assert_eq!(why.pairs.len(), 1, "{why:?}");
    }

    /// Two pauses, each of which delays the first owner's write. Without the cut, a third client
    /// holds the lock all the time.
    const NOTHING_TO_DECIDE: &str = r#"
[node.m]
[resource]
[lock]
lease = "1s"
[client.c3]
steps = [{ at = "900ms", try_acquire = { lease = "60s" } }, { work = { for = "50s" } }]
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { work = { for = "100ms" } }, { write = {} }]
[client.c2]
steps = [{ at = "1.5s", poll = { every = "100ms", until = "10s" } }, { write = {} }]
[fault.cut]
cut = { from = "c3", to = "m" }
at = "8ms"
[fault.one]
pause = "c1"
at = "1.02s"
for = "3s"
[fault.other]
pause = "c1"
at = "1.03s"
for = "3s"
[run]
storm = "30s"
"#;

    #[test]
    fn of_two_jumps_that_are_needed_together_either_is_a_cause() {
        let why = why(&(jump("one", "+5s", "10.5s") + &jump("other", "+5s", "11s")));
        let holds = why.alone.iter().filter(|one| one.verdict == "holds").count();
        assert_eq!((holds, why.pairs.len()), (2, 0), "{why:?}");
    }

    /// Sentinels with clocks that run ten times as fast consider a master down that pauses for less
    /// than their timeout. Formerly only the clocks of nodes and clients were suspects.
    #[test]
    fn fast_clocks_of_sentinels_were_no_cause() {
        let why = of(
            r#"
[node.m]
[node.r]
replica_of = "m"
[sentinel.s]
count = 3
down_after = "5s"
clock = { rate = "+900%" }
[lock]
lease = "60s"
[client.c1]
nodes = ["m"]
steps = [{ at = "20s", try_acquire = {} }]
[client.c2]
nodes = ["r"]
steps = [{ at = "40s", poll = { every = "1s", until = "60s" } }]
[fault.pause]
pause = "m"
at = "20.1s"
for = "1900ms"
[fault.cut]
cut = { from = "m", to = "r" }
at = "19s"
[run]
storm = "70s"
"#,
            "l1",
        );
        let lines = words(&why);
        assert!(lines.contains(&"without the clock error of s: holds".to_owned()), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.starts_with("with ") && line.contains("of the clock error of s")),
            "{lines:#?}"
        );
    }

    /// The clock of the node steps by 3 s every 300 ms. The second client asks 1.1 s after the
    /// grant, when the clock has made three steps. A lease of 10 s ends only with all three, and no
    /// later step matters.
    #[test]
    fn of_a_repeated_fault_the_occurrences_are_told_apart() {
        let steps =
            "[fault.step]\nclock_step = { host = \"m\", by = \"+3s\" }\nat = \"10.25s\"\nevery = \"300ms\"\n";
        let why = why(steps);
        let needed: Vec<String> = why
            .occurrences
            .iter()
            .filter(|one| one.verdict == "holds")
            .map(|one| one.suspects[0].to_string())
            .collect();
        assert_eq!(
            needed,
            ["the occurrence step#1", "the occurrence step#2", "the occurrence step#3"],
            "{:?}",
            words(&why)
        );
        assert!(why.untried_occurrences > 0, "{why:?}");
    }

    #[test]
    fn a_lock_that_is_broken_by_itself_needs_no_fault() {
        let why = of(
            r#"
[node.m]
[lock]
subject = "del-without-token"
lease = "10s"
[client.late]
steps = [{ at = "10s", try_acquire = { lease = "1s" } }, { at = "12s", release = {} }]
[client.c2]
steps = [{ at = "11.5s", try_acquire = {} }]
[client.c3]
steps = [{ at = "12.1s", try_acquire = {} }]
[run]
storm = "30s"
"#,
            "l1",
        );
        assert_eq!(why.without_all, "violated");
        let last = words(&why).pop().expect("a last line");
        assert!(last.contains("the lock itself is the cause"), "{last}");
    }
}
