//! `[hunt]`: the faults among which `lockstorm hunt` searches for a violation.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::{Scenario, Variant, error::Mistake, limits::Wrong, places::Places, word};
use crate::{
    file::{
        name::Name,
        selector::{Hosts, Selector},
    },
    units::{Span, UpTo},
};

/// The most faults of one run. The number of placements grows by its power.
const FAULTS_MAX: u32 = 2;

/// The faults among which `lockstorm hunt` searches: `[hunt]`. They replace the faults of the file,
/// except those in `keep`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hunt {
    /// The most faults of one run, one or two. Default: one.
    pub faults: u32,
    /// The kinds of faults. Default: `pause`, `crash`, `cut` and `clock_step`.
    pub kinds: Vec<HuntedKind>,
    /// The faults of the file that stay, by name: circumstances of every run. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<Name>,
    /// The hosts that faults may hit: names, groups, `@nodes`, `@clients` or `@sentinels`. A cut
    /// has one of them on a side. Default: all nodes, clients and Sentinels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<Hosts>,
    /// The longest pause or suspension, as `"..10s"`. Default: twice the longest lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<UpTo>,
    /// The longest time for which a crashed host stays down. Default: twice the longest lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash: Option<UpTo>,
    /// The longest cut. Default: twice the longest lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<UpTo>,
    /// The largest step of a clock, forward or back. Default: twice the longest lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_step: Option<UpTo>,
    /// The longest time by which a message comes later. Default: as late as the latency of its link
    /// allows; with a fixed latency, that latency again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<UpTo>,
    /// The time after which no fault begins. Default: the end of the storm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<Span>,
    /// Let faults of nodes and Sentinels also begin at their timers that leave no record, such as
    /// the ticks of a server. Default: only at messages and recorded events.
    pub timers: bool,
}

/// A kind of fault that `lockstorm hunt` places; see `lockstorm list faults`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HuntedKind {
    /// A process stops for a time.
    Pause,
    /// A machine sleeps for a time.
    Suspend,
    /// A host is down for a time: its memory is gone, and of its disk what was not synced.
    Crash,
    /// A host crashes and starts again at once.
    Restart,
    /// The network between two hosts is cut for a time, in one direction or both.
    Cut,
    /// The wall clock of a host jumps.
    ClockStep,
    /// A replica becomes a master. There is no such fault in a cluster.
    Promote,
    /// A message comes later, and another message or a timer of its receiver first.
    Reorder,
}

impl Default for Hunt {
    fn default() -> Hunt {
        let kinds = vec![HuntedKind::Pause, HuntedKind::Crash, HuntedKind::Cut, HuntedKind::ClockStep];
        Hunt {
            faults: 1,
            kinds,
            keep: Vec::new(),
            of: None,
            pause: None,
            crash: None,
            cut: None,
            clock_step: None,
            reorder: None,
            latest: None,
            timers: false,
        }
    }
}

/// Checks the `[hunt]` of a scenario, except the names of hosts.
pub(super) fn check(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    let Some(hunt) = &scenario.hunt else { return Ok(()) };
    if let Some(name) = hunt.keep.iter().find(|name| !scenario.fault.contains_key(name.as_str())) {
        let known = scenario.fault.keys().map(String::as_str);
        return Err(Mistake::unknown(name.span(), "fault", name.as_str(), known));
    }
    let wrong = |Wrong { key, message }| Mistake::at(places.of_value(&["hunt", key]), message);
    hunt.wrong(scenario).map_err(wrong)
}

/// Checks that `[claim.hunted]` lists each variant of the file once.
pub(super) fn check_claim(text: &str, variants: &[Variant]) -> Result<(), Mistake> {
    let claim = variants.iter().find_map(|variant| variant.scenario.claim.as_ref());
    let Some(hunted) = claim.and_then(|claim| claim.hunted.as_ref()) else { return Ok(()) };
    let known: BTreeSet<&str> = variants.iter().map(Variant::condition).collect();
    // Only a mistake needs its place, for which the text is read again.
    let place =
        |path: &[&str]| DeTable::parse(text).map_or(0..0, |root| Places::of(root.get_ref()).of_value(path));
    if hunted.runs == 0 {
        return Err(Mistake::at(place(&["claim", "hunted", "runs"]), "a hunt needs a run"));
    }
    let mut seen = BTreeSet::new();
    for (list, names) in hunted.lists() {
        for (at, name) in names.iter().enumerate() {
            let place = || place(&["claim", "hunted", list, &at.to_string()]);
            if !known.contains(name.as_str()) {
                return Err(Mistake::unknown(place(), "variant", name, known.into_iter()));
            }
            if !seen.insert(name.as_str()) {
                return Err(Mistake::at(place(), format!("the variant `{name}` is listed twice")));
            }
        }
    }
    let missing = known.into_iter().find(|name| !seen.contains(name));
    missing.map_or(Ok(()), |name| {
        Err(Mistake::at(
            place(&["claim", "hunted"]),
            format!("no list has the variant `{name}`: `undecided` if it was not hunted"),
        ))
    })
}

impl Hunt {
    /// Returns true if one of the hosts that faults may hit is a replica.
    fn can_promote(&self, scenario: &Scenario) -> bool {
        let replicas = scenario.replicas_to_promote();
        let has_one = |name: &Name| match name.as_str().parse() {
            Ok(Selector::Nodes) => !replicas.is_empty(),
            Ok(Selector::Named(host)) => scenario.members(&host).iter().any(|host| replicas.contains(host)),
            _ => false,
        };
        self.of.as_ref().map_or(!replicas.is_empty(), |of| of.names().iter().any(has_one))
    }

    /// Checks the values against a scenario that has these hosts, except the names of hosts.
    ///
    /// # Errors
    /// The first wrong value: its key and what was expected.
    pub fn check(&self, scenario: &Scenario) -> Result<(), String> {
        self.wrong(scenario).map_err(|Wrong { key, message }| format!("`{key}`: {message}"))
    }

    /// Checks the values that a type does not check.
    fn wrong(&self, scenario: &Scenario) -> Result<(), Wrong> {
        if !(1..=FAULTS_MAX).contains(&self.faults) {
            let message = format!("a hunt places from 1 to {FAULTS_MAX} faults, not {}", self.faults);
            return Err(Wrong::at("faults", message));
        }
        if self.kinds.is_empty() {
            return Err(Wrong::at("kinds", "a hunt needs a kind of fault, such as \"pause\""));
        }
        let twice = self.kinds.iter().enumerate().find(|(at, kind)| self.kinds[..*at].contains(kind));
        if let Some((_, kind)) = twice {
            return Err(Wrong::at("kinds", format!("`{}` is listed twice", word(kind))));
        }
        if self.of.as_ref().is_some_and(|of| of.names().is_empty()) {
            return Err(Wrong::at("of", "a hunt needs a host, such as \"@clients\""));
        }
        if self.latest.is_some_and(|latest| latest > scenario.run.storm) {
            let message = format!("the storm, in which faults last, ends at {}", scenario.run.storm);
            return Err(Wrong::at("latest", message));
        }
        let is_fixed = |name: &str| {
            let selector = name.parse::<Selector>();
            matches!(
                selector,
                Ok(Selector::Named(_) | Selector::Nodes | Selector::Clients | Selector::Sentinels)
            )
        };
        let names = self.of.iter().flat_map(|of| of.names());
        if let Some(role) = names.map(|name| name.as_str()).find(|name| !is_fixed(name)) {
            let message = format!(
                "a hunt tries each host by itself, so `{role}` selects nothing: name hosts, or say \
                 `@nodes`, `@clients` or `@sentinels`"
            );
            return Err(Wrong::at("of", message));
        }
        if self.kinds.contains(&HuntedKind::Promote) && !self.can_promote(scenario) {
            let message = "the hosts of the hunt have no replica to promote: a node with `replica_of`, outside a cluster";
            return Err(Wrong::at("kinds", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::file::scenario::parse;

    #[test]
    fn a_wrong_value_is_refused_at_its_place() {
        for (line, place, said) in [
            ("faults = 3", ":8:10", "from 1 to 2 faults, not 3"),
            ("faults = 0", ":8:10", "from 1 to 2 faults, not 0"),
            ("kinds = []", ":8:9", "needs a kind of fault"),
            ("kinds = [\"pouse\"]", ":8:10", "unknown variant `pouse`"),
            ("kinds = [\"pause\", \"pause\"]", ":8:9", "`pause` is listed twice"),
            ("kinds = [\"promote\"]", ":8:9", "no replica to promote"),
            ("kinds = [\"promote\"]\nof = \"@clients\"", ":8:9", "no replica to promote"),
            ("of = []", ":8:6", "needs a host"),
            ("of = [\"c2\"]", ":8:7", "there is no host `c2`"),
            ("of = \"@holder\"", ":8:6", "`@holder` selects nothing"),
            ("pause = \"10s\"", ":8:9", "such as \"..10s\""),
            ("clock_step = \"..0s\"", ":8:14", "leaves no size"),
            ("keep = [\"pause\"]", ":8:9", "there is no fault `pause`"),
            ("latest = \"11s\"", ":8:10", "ends at 10s"),
            ("pauses = \"..1s\"", ":8:1", "unknown field `pauses`"),
        ] {
            let text = format!("[node.m]\n\n[client.c1]\n\n[run]\nstorm = \"10s\"\n[hunt]\n{line}\n");
            let error = parse("hunt.toml", &text).expect_err(line).to_string();
            assert!(error.starts_with(&format!("hunt.toml{place}: ")), "{line}: {error}");
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn a_claim_lists_each_hunted_variant_once() {
        let claim = "[claim]\nid = \"X1\"\nsays = \"s\"\nby = \"b\"\nwhere = \"w\"\n";
        let with = |hunted: &str| {
            let hosts = "[node.m]\n[client.c1]\n[variant.plain]\n[variant.late]\n";
            parse("claim.toml", &format!("{claim}[claim.hunted]\nruns = 10\n{hunted}\n{hosts}"))
        };
        let source = with("violated = [\"late\"]\nholds = [\"plain\"]").expect("a claim");
        let hunted = source.claim().and_then(|claim| claim.hunted.clone()).expect("it is written");
        assert_eq!(hunted.verdict("late"), Some("violated"));
        assert_eq!(hunted.verdict("plain"), Some("holds"));
        assert_eq!(hunted.verdict("early"), None);
        for (lists, said) in [
            ("violated = [\"late\", \"plane\"]", "8:21: there is no variant `plane`"),
            ("violated = [\"late\"]", "no list has the variant `plain`"),
            (
                "violated = [\"late\"]\nundecided = [\"plain\", \"late\"]",
                "9:23: the variant `late` is listed twice",
            ),
            ("holdz = [\"late\"]", "unknown field `holdz`"),
        ] {
            let error = with(lists).expect_err(lists).to_string();
            assert!(error.contains(said), "{lists}: {error}");
        }
    }

    #[test]
    fn a_file_without_keys_hunts_with_one_fault() {
        let source = parse("hunt.toml", "[node.m]\n[client.c1]\n[hunt]\n").expect("a scenario");
        let hunt = source.variants[0].scenario.hunt.clone().expect("it is written");
        assert_eq!(hunt, super::Hunt::default());
        assert_eq!(hunt.faults, 1);
    }
}
