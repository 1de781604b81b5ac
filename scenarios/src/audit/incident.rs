//! From a finding to a scenario: the smallest one that shows the finding in the simulated world.
//!
//! The scenario has one client for each owner of the finding, with its requests at the measured
//! times, and the cause as a fault: the holder stands still, or a third party gives a command. Its
//! head names the commands of the capture, and everything that the scenario assumes because MONITOR
//! does not show it.

mod failed_over;
mod shared;

use std::{fmt, rc::Rc};

use super::{
    command::{Call, Command, Verb},
    draft::{BEGIN_US, Draft, LATENCY, STEP_US, command, comment, pause, poll, span},
    engine::Audit,
    findings::{Failover, Finding, Former, Kind},
    locks::{Leased, Lock},
    names::date,
    objects::Object,
};
use crate::{
    file::scenario::parse,
    judge::{checker::Checker, verdict::Verdict},
    run::{Engine, runner},
};

/// The seed of the run.
const SEED: u64 = 0;

/// The time from an event to the request of a client that the scenario adds.
const SOON_US: i64 = 2_000;

/// A lease may end this much earlier than the capture's next grant shows.
const NEAR_US: i64 = 20_000;

/// The lease for a hold whose lease the capture does not show, unless it must be longer.
const LEASE_MS: i64 = 30_000;

/// The longest storm of a scenario.
const LONGEST_US: i64 = 86_400_000_000;

/// The model of a lock whose key has a token.
const TOKENS: &str = "token-lock";

/// The model of a lock whose key is a hash with its owner.
const COUNTS: &str = "counted-lock";

/// The longest key of a capture that a scenario uses as it is.
const KEY_MAX: usize = 100;

/// A scenario for a finding, and its outcome in the simulated world.
#[derive(Debug, Clone)]
pub struct Incident {
    /// The kind of the finding.
    pub kind: Kind,
    /// The checker whose verdict the finding violates; `None` for a kind without a scenario.
    pub checker: Option<&'static Checker>,
    /// The scenario file. Without a scenario it has comments only.
    pub text: String,
    /// The assumption for lack of which the world does not show the finding; `None` if it does.
    pub missing: Option<Missing>,
}

/// An assumption that the simulated world needs and a finding does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// A scenario has no step or fault for this kind of finding.
    Kind,
    /// No checker judges what the holder of a permit does after its lease.
    Checker,
    /// The audit did not see a replica take the master's place.
    Failover,
    /// The capture does not show the lease.
    Lease,
    /// The times of the commands contradict their order: a clock was set back.
    Order,
    /// The incident lasts for more than a day.
    Length,
    /// A scenario file refuses a value: the error.
    Limits(String),
    /// The checker finds something else: its words.
    World(String),
}

impl Missing {
    /// Returns the name of the assumption.
    pub fn name(&self) -> &'static str {
        match self {
            Missing::Kind => "kind",
            Missing::Checker => "checker",
            Missing::Failover => "failover",
            Missing::Lease => "lease",
            Missing::Order => "order",
            Missing::Length => "length",
            Missing::Limits(_) => "limits",
            Missing::World(_) => "world",
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Kind => f.write_str("no step or fault of a scenario does what this finding shows"),
            Missing::Checker => {
                f.write_str("no checker judges what the holder of a permit does after its lease")
            }
            Missing::Failover => f.write_str("the audit did not see a replica take the master's place"),
            Missing::Lease => f.write_str("the capture does not show the lease of the lost hold"),
            Missing::Order => {
                f.write_str("the times of the commands contradict their order: the server's clock was set")
            }
            Missing::Length => f.write_str("the incident lasts for more than a day"),
            Missing::Limits(error) => write!(f, "a scenario file refuses a value: {error}"),
            Missing::World(found) => write!(f, "the simulated world shows something else: {found}"),
        }
    }
}

impl Audit {
    /// Returns a scenario for a finding, which is one of [`Summary::findings`] by its index, and
    /// runs it; `None` if there is no such finding.
    ///
    /// [`Summary::findings`]: super::Summary::findings
    pub fn incident(&self, index: usize) -> Option<Incident> {
        let mut all: Vec<&Finding> =
            self.findings.list.iter().filter(|finding| finding.kind.is_finding()).collect();
        all.sort_by_key(|finding| finding.at_us);
        let finding = *all.get(index)?;
        let node = self.nodes.iter().find(|node| node.name == finding.node);
        let lock = node.and_then(|node| node.locks.get(&finding.db)?.get(&finding.key));
        let object = node.and_then(|node| node.objects.get(finding.db, &finding.key));
        let object_kind = object.map_or("", Object::kind);
        let failover = self.failover_before(&finding.node, finding.at_us);
        let kind = finding.kind;
        let mut incident = match (Facts { finding, lock, object_kind, failover }).draft() {
            Ok(draft) => Incident {
                kind,
                checker: Checker::named(draft.checker),
                text: format!("{}\n{}", head(finding, &draft.assumed), draft.body()),
                missing: None,
            },
            Err(missing) => {
                Incident { kind, checker: None, text: head(finding, &[]), missing: Some(missing) }
            }
        };
        if incident.missing.is_none() {
            incident.missing = incident.verify().err();
        }
        if let Some(missing) = &incident.missing {
            let note = comment(&format!("Missing assumption: {}: {missing}", missing.name()));
            incident.text.insert_str(0, &format!("{note}\n"));
        }
        Some(incident)
    }
}

impl Incident {
    /// Returns the seed with which the scenario was run.
    pub fn seed(&self) -> u64 {
        SEED
    }

    /// Runs the scenario, and asks the checker.
    fn verify(&self) -> Result<(), Missing> {
        let source =
            parse("incident.toml", &self.text).map_err(|error| Missing::Limits(error.to_string()))?;
        let (Some(variant), Some(checker)) = (source.variants.first(), self.checker) else {
            return Err(Missing::Kind);
        };
        match runner::verdict(&variant.scenario, SEED, Engine::Event, checker) {
            Verdict::Violated { .. } => Ok(()),
            Verdict::Holds { because } => Err(Missing::World(format!("{} holds: {because}", checker.name))),
            Verdict::Undecided { because } => {
                Err(Missing::World(format!("{} is undecided: {because}", checker.name)))
            }
        }
    }
}

/// A finding, and its lock if the audit still remembers it.
struct Facts<'a> {
    finding: &'a Finding,
    lock: Option<&'a Lock>,
    /// The kind of a lock that several clients may hold; empty for another one.
    object_kind: &'static str,
    /// The last failover to the finding's node before it.
    failover: Option<&'a Failover>,
}

impl Facts<'_> {
    /// Returns the scenario.
    fn draft(&self) -> Result<Draft, Missing> {
        if self.finding.is_shared {
            return self.of_several();
        }
        match self.finding.kind {
            Kind::GrantedTwice | Kind::Late => self.holder_stands_still(),
            Kind::ReleasedByOther => match &self.finding.leases.former {
                Some(former) => self.releases_what_it_lost(former),
                None => self.third_party(),
            },
            Kind::Deleted | Kind::Flushed | Kind::ExtendedByOther | Kind::Overwritten => self.third_party(),
            Kind::NoExpiry => self.holder_dies(),
            Kind::FailedOver => self.fails_over(),
            Kind::SharedName
            | Kind::PermitsBeyond
            | Kind::Overtaken
            | Kind::Unexplained
            | Kind::NearMiss
            | Kind::Unchecked
            | Kind::NotHolder
            | Kind::LeaseEnded
            | Kind::NeverOpens => Err(Missing::Kind),
        }
    }

    /// The holder stands still beyond its lease, and writes when it goes on.
    fn holder_stands_still(&self) -> Result<Draft, Missing> {
        let lost = self.finding.leases.lost.as_ref().ok_or(Missing::Lease)?;
        let lease_us = lost.lease_ms.filter(|ms| *ms > 0).ok_or(Missing::Lease)?.saturating_mul(1_000);
        let back = self.call(if self.finding.kind == Kind::GrantedTwice { 2 } else { 1 })?;
        let back_us = back.at_us - lost.set_us;
        let mut assumed = vec![
            pause_assumed(lost),
            "The clients write to what the lock guards. MONITOR does not show these writes.".to_owned(),
        ];
        let next_us = match self.finding.kind {
            Kind::GrantedTwice => self.call(1)?.at_us - lost.set_us,
            _ => {
                assumed.push(
                    "Another client asks once the lease is over. The capture has no such client.".to_owned(),
                );
                lease_us.saturating_add(SOON_US)
            }
        };
        if next_us < lease_us - NEAR_US || back_us <= lease_us {
            return Err(Missing::Order);
        }
        let mut draft = self.base("l3", assumed, lost, lost.renewed > 0, back_us.max(next_us))?;
        draft.writes = true;
        let holder = ["{ at = \"1s\", try_acquire = {} }", "{ sleep = \"10ms\" }", "{ write = {} }"];
        draft.clients.push(("holder", self.holder(lost), holder.map(str::to_owned).to_vec()));
        let next = vec![poll(next_us, None), "{ write = {} }".to_owned()];
        draft.clients.push(("next", self.next(1), next));
        draft.faults.push(pause(back_us));
        Ok(draft)
    }

    /// A client loses its hold, and then releases that of the next owner without a check.
    fn releases_what_it_lost(&self, former: &Former) -> Result<Draft, Missing> {
        let (leased, act) = (&former.leased, self.call(2)?);
        let next_us = self.call(1)?.at_us - leased.set_us;
        let release_us = act.at_us - leased.set_us;
        let lease_ms = leased.lease_ms.filter(|ms| *ms > 0);
        let mut assumed = Vec::new();
        let mut leased = leased.clone();
        if lease_ms.is_none() {
            leased.lease_ms = Some(lease_beyond(release_us));
            assumed.push("The lease of the first hold: the capture does not show it.".to_owned());
        }
        if next_us <= 0 || release_us <= next_us {
            return Err(Missing::Order);
        }
        if former.has_expired {
            assumed.push(pause_assumed(&leased));
        }
        let is_renewed = leased.renewed > 0;
        let mut draft = self.base("owner-safety", assumed, &leased, is_renewed, release_us)?;
        let subject = if self.is_hash() { COUNTS } else { TOKENS };
        draft.lock = self.lock_lines(subject, &["release = \"delete\""], &leased, is_renewed);
        let about = format!("{} had the lock until {}.", act.client, date(former.ended_us));
        let slept = if former.has_expired { STEP_US } else { release_us };
        let steps = vec![
            "{ at = \"1s\", try_acquire = {} }".to_owned(),
            format!("{{ sleep = \"{}\" }}", span(slept)),
            "{ release = {} }".to_owned(),
        ];
        draft.clients.push(("holder", about, steps));
        let next_lease = self.finding.leases.lost.as_ref().and_then(|lost| lost.lease_ms);
        let differs = next_lease.filter(|ms| *ms > 0 && Some(*ms) != leased.lease_ms && !is_renewed);
        draft.clients.push(("next", self.next(1), vec![poll(next_us, differs)]));
        draft.faults.push(match former.has_expired {
            true => pause(release_us),
            false => (
                "lost",
                "A command ended the first hold. It stands here as FLUSHALL, because a DEL by hand would \
                 be a violation of its own."
                    .to_owned(),
                command((former.ended_us - leased.set_us).max(STEP_US).min(next_us), &["FLUSHALL"]),
            ),
        });
        Ok(draft)
    }

    /// A client that is no owner changes the key.
    fn third_party(&self) -> Result<Draft, Missing> {
        let lost = self.finding.leases.lost.as_ref().ok_or(Missing::Lease)?;
        let act = self.call(1)?;
        let at_us = act.at_us - lost.set_us;
        if at_us <= 0 {
            return Err(Missing::Order);
        }
        let (mut assumed, mut lost) = (Vec::new(), lost.clone());
        if lost.lease_ms.is_none_or(|ms| ms <= 0) {
            lost.lease_ms = Some(lease_beyond(at_us));
            assumed.push("The lease of the hold: the capture does not show it.".to_owned());
        }
        let lease_us = lost.lease_ms.unwrap_or(LEASE_MS).saturating_mul(1_000);
        let key = self.key();
        let set_ms = self.lease_of(act);
        let ms = set_ms.unwrap_or(LEASE_MS).to_string();
        let (checker, words): (_, Vec<&str>) = match self.finding.kind {
            Kind::Flushed => ("l1", vec!["FLUSHALL"]),
            Kind::ExtendedByOther => ("owner-safety", vec!["PEXPIRE", &key, &ms]),
            Kind::Overwritten if set_ms.is_none() => ("owner-safety", vec!["SET", &key, "other"]),
            Kind::Overwritten => ("owner-safety", vec!["SET", &key, "other", "PX", &ms]),
            _ => ("owner-safety", vec!["DEL", &key]),
        };
        if act.command.verb.calls_script() {
            assumed.push(format!("{} at the node's console has the effect of the script.", words[0]));
        }
        // Within its promise to the holder the node grants the lock once more.
        let granted_us = self.granted_after().map(|call| call.at_us - lost.set_us);
        let granted_us = granted_us.filter(|granted_us| (at_us..lease_us).contains(granted_us));
        let flushes = self.finding.kind == Kind::Flushed;
        if flushes && granted_us.is_none() {
            assumed.push(
                "Another client asks right after FLUSHALL. The capture has no such request.".to_owned(),
            );
        }
        let next_us = flushes.then(|| granted_us.unwrap_or(at_us + SOON_US));
        let mut draft =
            self.base(checker, assumed, &lost, lost.renewed > 0, next_us.unwrap_or(at_us).max(at_us))?;
        let steps = vec!["{ at = \"1s\", try_acquire = {} }".to_owned()];
        draft.clients.push(("holder", self.holder(&lost), steps));
        if let Some(next_us) = next_us {
            let about = match self.granted_after().filter(|_| granted_us.is_some()) {
                Some(call) => format!("{} was granted the lock at {}.", call.client, date(call.at_us)),
                None => "The client that is assumed.".to_owned(),
            };
            draft.clients.push(("next", about, vec![poll(next_us, None)]));
        }
        let about = format!("{} at {}.", act.client, date(act.at_us));
        draft.faults.push(("third-party", about, command(at_us, &words)));
        Ok(draft)
    }

    /// The holder of a lock without expiry dies, and no other client gets the lock any more.
    fn holder_dies(&self) -> Result<Draft, Missing> {
        let grant = self.call(0)?;
        let assumed = vec![
            "The holder dies before it sets an expiry. In the capture it did not die.".to_owned(),
            "Another client waits for the lock.".to_owned(),
            "The expiry that the scenario's lock sets in a second command: the capture shows none."
                .to_owned(),
        ];
        let leased = Leased { set_us: grant.at_us, lease_ms: Some(LEASE_MS), renewed: 0 };
        let mut draft = self.base("progress", assumed, &leased, false, 2_000_000)?;
        draft.lock = self.lock_lines(TOKENS, &["grant = \"two-steps\""], &leased, false);
        draft.latency = "1ms";
        let holder = "{ at = \"1s\", try_acquire = {} }".to_owned();
        draft.clients.push(("holder", self.holder(&leased), vec![holder]));
        let waits =
            ["{ at = \"2s\", poll = { every = \"100ms\" } }".to_owned(), "{ release = {} }".to_owned()];
        draft.clients.push(("next", "The client that is assumed.".to_owned(), waits.to_vec()));
        let death =
            ["crash = \"holder\"", "on = { client = \"holder\", event = \"asked\", delay = \"1.5ms\" }"];
        let about = "Between the two commands, each of which takes 2 ms.".to_owned();
        draft.faults.push(("death", about, death.map(str::to_owned).to_vec()));
        // The lease would be over by then.
        draft.run = ["storm = \"3s\"", "calm = \"60s\"", "progress = \"40s\""].map(str::to_owned).to_vec();
        Ok(draft)
    }

    /// Returns a scenario without clients and faults, that lasts until after `last_us`.
    fn base(
        &self,
        checker: &'static str,
        assumed: Vec<String>,
        leased: &Leased,
        is_renewed: bool,
        last_us: i64,
    ) -> Result<Draft, Missing> {
        let storm_us = BEGIN_US.saturating_add(last_us).saturating_add(BEGIN_US / 2);
        if last_us < 0 {
            return Err(Missing::Order);
        }
        if storm_us > LONGEST_US {
            return Err(Missing::Length);
        }
        let mut traits = Vec::new();
        if self.is_unchecked() {
            traits.push("release = \"delete\"");
        } else if self.has_command("DELIFEQ") {
            traits.push("release = \"del-if-eq\"");
        }
        let renews_blindly = |call: &Rc<Call>| call.command.verb == Verb::Expire;
        if self.finding.kind != Kind::ExtendedByOther && self.finding.calls.iter().any(renews_blindly) {
            traits.push("renewal = \"anybody\"");
        }
        let needs_valkey = traits.iter().any(|one| one.contains("del-if-eq"));
        let lock = match self.is_hash() {
            true => self.lock_lines("client", &[], leased, is_renewed),
            false => self.lock_lines(TOKENS, &traits, leased, is_renewed),
        };
        Ok(Draft {
            checker,
            assumed,
            server: needs_valkey.then_some("valkey-9.1"),
            latency: LATENCY,
            lock,
            run: vec![format!("storm = \"{}\"", span(storm_us - storm_us % 100_000))],
            ..Draft::default()
        })
    }

    /// Returns the lines of the lock.
    fn lock_lines(&self, subject: &str, traits: &[&str], leased: &Leased, is_renewed: bool) -> Vec<String> {
        let mut lines = vec![format!("name = \"{}\"", self.key()), format!("subject = \"{subject}\"")];
        if !traits.is_empty() {
            lines.push(format!("traits = {{ {} }}", traits.join(", ")));
        }
        let lease = span(leased.lease_ms.unwrap_or(LEASE_MS).saturating_mul(1_000));
        // The watchdog renews its own lease, and stands still with its process.
        let key = if is_renewed { "watchdog" } else { "lease" };
        lines.push(format!("{key} = \"{lease}\""));
        lines
    }

    /// Returns a sentence about the holder.
    fn holder(&self, leased: &Leased) -> String {
        let Some(grant) = self.finding.calls.first() else { return String::new() };
        let renewed = match leased.renewed {
            0 => String::new(),
            times => format!(" It renewed the lease, or tried to, {times} times."),
        };
        let set = match leased.set_us == grant.at_us {
            true => String::new(),
            false => format!(" The scenario begins with its last lease, at {}.", date(leased.set_us)),
        };
        let owner = &self.finding.owner;
        format!("{} as {owner}, granted at {}.{renewed}{set}", grant.client, date(grant.at_us))
    }

    /// Returns a sentence about the next owner, whose grant is the call with this number.
    fn next(&self, at: usize) -> String {
        match self.finding.calls.get(at).filter(|_| self.finding.kind != Kind::Late) {
            Some(call) => format!("{} was granted the lock at {}.", call.client, date(call.at_us)),
            None => "The client that is assumed.".to_owned(),
        }
    }

    /// Returns a call of the finding's proof: the grant is the first.
    fn call(&self, at: usize) -> Result<&Rc<Call>, Missing> {
        self.finding.calls.get(at).ok_or(Missing::Kind)
    }

    /// Returns the grant that followed the lost hold, if the audit remembers it.
    fn granted_after(&self) -> Option<&Rc<Call>> {
        let grant = self.finding.calls.first()?;
        let past = self.lock?.past.iter().find(|past| Rc::ptr_eq(&past.grant, grant))?;
        past.next.as_ref().map(|(_, call)| call)
    }

    /// Returns true if the lock is a hash of owners.
    fn is_hash(&self) -> bool {
        let calls = &self.finding.calls;
        calls.iter().any(|call| call.acts().iter().any(Command::is_of_hash))
    }

    /// Returns true if owners release the lock by DEL.
    fn is_unchecked(&self) -> bool {
        self.lock.is_some_and(|lock| lock.figures.unchecked > 0)
    }

    fn has_command(&self, name: &str) -> bool {
        let mut commands = self.finding.calls.iter().flat_map(|call| call.acts());
        commands.any(|command| command.word(0).eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Returns the lease that a call sets, in milliseconds.
    fn lease_of(&self, call: &Call) -> Option<i64> {
        let mut acts = call.acts().iter().filter(|command| *command.word(1) == *self.finding.key);
        acts.find_map(expiry_ms).filter(|ms| *ms > 0)
    }

    /// Returns the lock's key, or a plain name if a scenario would read the key in another way.
    fn key(&self) -> String {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b":_.-/{}".contains(byte);
        let key = &self.finding.key;
        match !key.is_empty() && key.len() <= KEY_MAX && key.iter().all(is_plain) {
            true => String::from_utf8_lossy(key).into_owned(),
            false => "lock".to_owned(),
        }
    }
}

/// Returns the expiry that a command sets, in milliseconds from its execution.
fn expiry_ms(command: &Command) -> Option<i64> {
    let number = |at: usize| std::str::from_utf8(command.word(at)).ok()?.parse::<i64>().ok();
    let after = |option: &str| {
        let options = command.words.iter().skip(3);
        let at = options.clone().position(|word| word.eq_ignore_ascii_case(option.as_bytes()))?;
        number(at + 4)
    };
    let is = |name: &str| command.word(0).eq_ignore_ascii_case(name.as_bytes());
    match command.verb {
        Verb::Set => after("PX").or_else(|| after("EX").map(|secs| secs.saturating_mul(1_000))),
        Verb::Expire if is("pexpire") => number(2),
        Verb::Expire if is("expire") => number(2).map(|secs| secs.saturating_mul(1_000)),
        _ => None,
    }
}

/// Returns a lease in milliseconds that lasts beyond a time.
fn lease_beyond(us: i64) -> i64 {
    LEASE_MS.max((us / 1_000).saturating_mul(2))
}

fn pause_assumed(leased: &Leased) -> String {
    let at = date(leased.set_us);
    format!(
        "The holder stands still from its last lease, at {at}, until it comes back. MONITOR shows its silence."
    )
}

/// Returns the comments and the subject of the file.
fn head(finding: &Finding, assumed: &[String]) -> String {
    let Finding { kind, lock, node, owner, says, .. } = finding;
    let mut lines = vec![
        comment(&format!("From a capture of {node}: {}: {lock}, owner {owner}", kind.title())),
        comment(says),
        "#".to_owned(),
    ];
    for part in &finding.evidence {
        let words = format!("{} line {} {} {}: {}", part.at, part.line, part.client, part.role, part.command);
        lines.push(comment(&words));
    }
    if !assumed.is_empty() {
        lines.push("#".to_owned());
        lines.push(comment("Assumed:"));
        lines.extend(assumed.iter().map(|one| comment(&format!("* {one}"))));
    }
    lines.push("#".to_owned());
    lines.push(comment(&format!("{} Then expect \"holds\".", kind.help())));
    lines.push(String::new());
    lines.push(format!("about = \"A lock of a server in production: {}.\"\n", kind.title()));
    lines.join("\n")
}
