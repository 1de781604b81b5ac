//! The instants of a run: those at which something happens on a host or on a link, and
//! those among them that lie in the causal chain of a good outcome.

use std::collections::{BTreeMap, BTreeSet};

use lockstorm_world::{Event, HostName, Record, time::True};
use sha2::{Digest, Sha256};

use super::place::{Mark, Placement, What};
use crate::{
    judge::history::{self, EventKind, History, Life},
    run::{DIRECTOR, Outcome},
};

/// The number of messages of a chain that are followed back from a good outcome.
const HOPS: u8 = 6;

/// The flags of a packet with data.
const DATA: &str = "DATA";

/// The ranks of instants, the best first.
pub(super) const CHAIN: u8 = 0;
pub(super) const RECORDED: u8 = 1;
pub(super) const TIMER: u8 = 2;

/// A message of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) sent: True,
    pub(super) arrival: Arrival,
}

/// The arrival of a message, unless a fault interferes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) due: True,
    /// The arrival without the packets that were sent before on its link, which it does not
    /// overtake.
    pub(super) drawn: True,
}

/// The instants of a run that matter for faults.
#[derive(Debug, Default)]
pub(super) struct Moments {
    /// All instants of each host, with their meanings.
    hosts: BTreeMap<String, BTreeMap<True, Mark>>,
    /// The instants of all hosts except timers without a record.
    recorded: BTreeSet<True>,
    /// The instants at which each host's software ran.
    ran: BTreeMap<String, BTreeSet<True>>,
    /// The instants at which packets were sent and arrived on each link.
    sent: BTreeMap<(String, String), BTreeSet<True>>,
    arrived: BTreeMap<(String, String), BTreeSet<True>>,
    /// The arrivals of messages: packets with data, by link and the instant at which they are sent.
    messages: BTreeMap<(String, String), BTreeMap<True, Arrival>>,
    /// The arrivals of messages by receiver, with their senders.
    heard: BTreeMap<String, BTreeMap<True, BTreeSet<String>>>,
    /// The arrivals of all packets, by receiver.
    packets: BTreeMap<String, BTreeSet<True>>,
    /// The instants at which each host goes down or starts, or a fault of the host ends. Messages
    /// that are under way then may be lost, or leave again, if their link is cut.
    edges: BTreeMap<String, BTreeSet<True>>,
}

impl Moments {
    pub(super) fn of(outcome: &Outcome) -> Moments {
        let mut moments = Moments::default();
        for activity in outcome.activities.iter().filter(|one| *one.host != *DIRECTOR) {
            let host = activity.host.to_string();
            let rank = match &activity.from {
                None => {
                    moments.ran.entry(host.clone()).or_default().insert(activity.at);
                    TIMER
                }
                Some(from) => {
                    let link = (from.to_string(), host.clone());
                    moments.packets.entry(host.clone()).or_default().insert(activity.at);
                    moments.arrived.entry(link).or_default().insert(activity.at);
                    RECORDED
                }
            };
            moments.note(host, activity.at, rank);
        }
        // The packets of each link that were sent last at one instant: a fault delays all of them.
        let mut bursts: BTreeMap<(String, String), (True, True)> = BTreeMap::new();
        for record in &outcome.records {
            let Some((host, _)) = record.host.as_ref().filter(|(host, _)| **host != *DIRECTOR) else {
                continue;
            };
            moments.note(host.to_string(), record.at, RECORDED);
            if let Event::Packet { to, flags, due, drawn, .. } = &record.event {
                let link = (host.to_string(), to.to_string());
                let (sent, latest) = bursts.entry(link.clone()).or_insert((record.at, *drawn));
                *latest = if *sent == record.at { (*latest).max(*drawn) } else { *drawn };
                *sent = record.at;
                if *flags == DATA {
                    let arrival = Arrival { due: *due, drawn: *latest };
                    let heard = moments.heard.entry(to.to_string()).or_default().entry(*due).or_default();
                    heard.insert(host.to_string());
                    moments.messages.entry(link.clone()).or_default().entry(record.at).or_insert(arrival);
                }
                moments.sent.entry(link).or_default().insert(record.at);
            }
        }
        for event in &outcome.history.events {
            let host = outcome.history.host_name(event.host).to_owned();
            if let EventKind::Life { life: Life::Crashed | Life::Started } = event.kind {
                moments.edges.entry(host.clone()).or_default().insert(event.at);
            }
            moments.note(host, event.at, RECORDED);
        }
        for fault in &outcome.history.faults {
            for host in &fault.targets {
                let host = outcome.history.host_name(*host).to_owned();
                moments.edges.entry(host).or_default().extend(fault.until);
            }
        }
        for (host, at, mark) in chains(&outcome.history, &outcome.records) {
            moments.mark(host, at, mark);
        }
        moments
    }

    fn note(&mut self, host: String, at: True, rank: u8) {
        self.mark(host, at, Mark { rank, ..Mark::default() });
    }

    fn mark(&mut self, host: String, at: True, mark: Mark) {
        if mark.rank < TIMER {
            self.recorded.insert(at);
        }
        let known = self.hosts.entry(host).or_default().entry(at).or_insert(mark);
        *known = mark.min(*known);
    }

    /// Returns the instants of a host with their meanings, in order.
    pub(super) fn of_host(&self, host: &str) -> impl Iterator<Item = (True, Mark)> + '_ {
        self.hosts.get(host).into_iter().flatten().map(|(at, mark)| (*at, *mark))
    }

    /// Returns the instants at which packets were sent or arrived between two hosts, with the
    /// better meaning that they have for either host.
    pub(super) fn of_pair(&self, one: &str, other: &str) -> Vec<(True, Mark)> {
        let there = (one.to_owned(), other.to_owned());
        let back = (other.to_owned(), one.to_owned());
        let packets = [&self.sent, &self.arrived].map(|of| [of.get(&there), of.get(&back)]);
        let all: BTreeSet<True> = packets.into_iter().flatten().flatten().flatten().copied().collect();
        let mark = |at: &True| {
            let marks = [one, other].into_iter().filter_map(|host| self.hosts.get(host)?.get(at));
            marks.min().copied().unwrap_or(Mark { rank: RECORDED, ..Mark::default() })
        };
        all.iter().map(|at| (*at, mark(at))).collect()
    }

    /// Returns the pairs of hosts that exchange packets, each once.
    pub(super) fn pairs(&self) -> BTreeSet<(&str, &str)> {
        let links = self.arrived.keys().chain(self.sent.keys());
        links.map(|(from, to)| if from < to { (&**from, &**to) } else { (&**to, &**from) }).collect()
    }

    /// Returns true if a host does anything from the first instant to the second.
    fn happens_on(&self, host: &str, from: True, until: True) -> bool {
        self.hosts.get(host).is_some_and(|all| all.range(from..=until).next().is_some())
    }

    /// Returns true if neither the host does anything from the first instant to the second, nor any
    /// other host does anything that a checker could compare with this host's clock.
    pub(super) fn is_quiet(&self, host: &str, from: True, until: True) -> bool {
        !self.happens_on(host, from, until) && self.recorded.range(from..=until).next().is_none()
    }

    /// Returns true if a fault changes anything: something that it prevents would happen while it
    /// lasts.
    pub(super) fn is_seen(&self, placement: &Placement) -> bool {
        let window = placement.at..=placement.ends;
        let arrives = |from: &str, to: &str| {
            let link = (from.to_owned(), to.to_owned());
            self.arrived.get(&link).is_some_and(|all| all.range(window.clone()).next().is_some())
        };
        let has_edge =
            |host: &str| self.edges.get(host).is_some_and(|all| all.range(window.clone()).next().is_some());
        match &placement.what {
            What::Pause { host } => {
                self.ran.get(host).is_some_and(|all| all.range(window.clone()).next().is_some())
            }
            What::Cut { from, to, one_way } => {
                arrives(from, to) || (!one_way && arrives(to, from)) || has_edge(from) || has_edge(to)
            }
            // A clock decides when a belief or a lease ends, even if its host is idle by then.
            What::Suspend { .. }
            | What::Reorder { .. }
            | What::ClockStep { .. }
            | What::Crash { .. }
            | What::Restart { .. }
            | What::Promote { .. } => true,
        }
    }

    /// Returns all messages.
    pub(super) fn messages(&self) -> impl Iterator<Item = Message<'_>> + '_ {
        self.messages.iter().flat_map(|((from, to), all)| {
            all.iter().map(|(sent, arrival)| Message { from, to, sent: *sent, arrival: *arrival })
        })
    }

    /// Returns the instants, from the arrival of a message until another one, at which its receiver
    /// gets a message of another host, or at which one of the receiver's timers ends.
    pub(super) fn inputs(&self, message: &Message<'_>, until: True, skips_timers: bool) -> BTreeSet<True> {
        let Message { from, to, arrival: Arrival { due, .. }, .. } = *message;
        if until <= due {
            return BTreeSet::new();
        }
        let heard = self.heard.get(to).into_iter().flat_map(|all| all.range(due..until));
        let of_others = heard.filter(|(_, senders)| senders.iter().any(|sender| sender != from));
        let mut inputs: BTreeSet<True> = of_others.map(|(at, _)| *at).collect();
        if !skips_timers {
            // The software runs at each arrival, too.
            let arrivals = self.packets.get(to);
            let is_timer = |at: &&True| !arrivals.is_some_and(|arrivals| arrivals.contains(at));
            let ran = self.ran.get(to).into_iter().flat_map(|all| all.range(due..until));
            inputs.extend(ran.filter(is_timer));
        }
        inputs
    }

    /// Returns the better meaning of the sending and the arrival of a message.
    pub(super) fn mark_of(&self, message: &Message<'_>) -> Mark {
        let of = |host: &str, at: True| self.hosts.get(host)?.get(&at).copied();
        let marks = [of(message.from, message.sent), of(message.to, message.arrival.due)];
        marks.into_iter().flatten().min().unwrap_or(Mark { rank: RECORDED, ..Mark::default() })
    }

    /// Returns the number of instants, and the number of those in chains.
    pub(super) fn count(&self) -> (usize, usize) {
        let all = || self.hosts.values().flat_map(BTreeMap::values);
        (all().count(), all().filter(|mark| mark.rank == CHAIN).count())
    }
}

/// Returns a digest of all inputs of all hosts: two runs with the same digest leave every host in
/// the same state at every instant. Faults are no inputs, except those that a host may notice
/// without a record: steps of clocks and promotions.
pub(super) fn state(outcome: &Outcome, faults: &[Placement]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut bytes = Vec::new();
    for activity in outcome.activities.iter().filter(|one| *one.host != *DIRECTOR) {
        hash.update(activity.at.as_nanos().to_le_bytes());
        for name in [Some(&activity.host), activity.from.as_ref()] {
            hash.update(name.map_or("", |name| name).as_bytes());
            hash.update([0]);
        }
    }
    for record in outcome.records.iter().filter(|record| !matches!(record.event, Event::Fault { .. })) {
        record.encode(&mut bytes);
        hash.update(&bytes);
        bytes.clear();
    }
    let has_no_record = |what: &What| matches!(what, What::ClockStep { .. } | What::Promote { .. });
    for fault in faults.iter().filter(|fault| has_no_record(&fault.what)) {
        hash.update(fault.to_string());
    }
    hash.finalize().into()
}

/// The sender of a message.
struct Sender<'a> {
    host: &'a HostName,
    sent: True,
}

/// Returns true for a good outcome that uses what an owner has: a release, a write, or a call that
/// returned. Returns false for one that gives it something, such as a grant, and `None` for an
/// event that is no good outcome.
fn is_use(kind: &EventKind) -> Option<bool> {
    match kind {
        EventKind::Granted { .. }
        | EventKind::Extended { .. }
        | EventKind::Believes { .. }
        | EventKind::Counted { .. }
        | EventKind::Passed { .. } => Some(false),
        EventKind::Released { .. } | EventKind::Write { .. } => Some(true),
        EventKind::Return { outcome: history::Outcome::Ok, .. } => Some(true),
        _ => None,
    }
}

/// Returns the instants of hosts in the causal chains of [good outcomes](is_use), with their
/// distances from them. From each outcome it follows the last message that reached the host before,
/// to its sender, and so on; and the first message that the host sent after it.
fn chains(history: &History, records: &[Record]) -> Vec<(String, True, Mark)> {
    let mut arriving: BTreeMap<&str, BTreeMap<True, Sender<'_>>> = BTreeMap::new();
    let mut leaving: BTreeMap<&str, BTreeMap<True, (&HostName, True)>> = BTreeMap::new();
    for record in records {
        if let (Some((from, _)), Event::Packet { to, flags: DATA, due, .. }) = (&record.host, &record.event) {
            arriving.entry(to).or_default().insert(*due, Sender { host: from, sent: record.at });
            leaving.entry(from).or_default().insert(record.at, (to, *due));
        }
    }
    let mut all = Vec::new();
    for (event, is_use) in history.events.iter().filter_map(|event| Some((event, is_use(&event.kind)?))) {
        let name = history.host_name(event.host);
        let mark = |hops| Mark { rank: CHAIN, hops, is_use };
        let (mut host, mut at) = (name, event.at);
        for hops in 0..HOPS {
            all.push((host.to_owned(), at, mark(hops)));
            let before = arriving.get(host).and_then(|all| all.range(..=at).next_back());
            let Some((due, Sender { host: from, sent })) = before else { break };
            all.push((host.to_owned(), *due, mark(hops)));
            (host, at) = (from, *sent);
        }
        let after = leaving.get(name).and_then(|all| all.range(event.at..).next());
        if let Some((sent, (to, due))) = after {
            all.push((name.to_owned(), *sent, mark(0)));
            all.push((to.to_string(), *due, mark(1)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use lockstorm_world::Reading;

    use super::{super::place::Cost, *};
    use crate::judge::history::{Call, Reason, story::Story};

    const ZERO: Reading = Reading {
        wall: lockstorm_world::time::Wall::ZERO,
        monotonic: lockstorm_world::time::Monotonic::ZERO,
        boottime: lockstorm_world::time::Boottime::ZERO,
    };

    const fn ms(at: i64) -> True {
        True::from_millis(at)
    }

    #[test]
    fn grants_give_and_writes_and_releases_use() {
        let story = Story::one_node().at(0).asks("c1").waiting("c1").granted("m", "c1", 1_000);
        let story = story.believes("c1", 1_000).returns("c1", history::Outcome::Ok);
        let story =
            story.extended("m", "c1", 1_000).wrote("c1", None, 0).counted("m", 1).passed("m", "c1", 1);
        let story = story.asks("c2").returns("c2", history::Outcome::Refused).calls("c1", Call::Release);
        let story = story.disbelieves("c1", Reason::Released).released("m", "c1").life("c1", Life::Crashed);
        let history = story.ends(5_000);
        let uses: Vec<_> = history.events.iter().map(|event| is_use(&event.kind)).collect();
        let (gives, uses_it, neither) = (Some(false), Some(true), None);
        let until_it_returns = [neither, neither, gives, gives, uses_it];
        let renewed_written_counted_and_passed = [gives, uses_it, gives, gives];
        let refused_released_and_crashed = [neither, neither, neither, neither, uses_it, neither];
        let all = [&until_it_returns[..], &renewed_written_counted_and_passed, &refused_released_and_crashed];
        assert_eq!(uses, all.concat());
    }

    /// A packet with data, or an acknowledgement, that arrives after a millisecond.
    fn packet(from: &str, to: &str, sent: i64, flags: &'static str) -> Record {
        let event = Event::Packet {
            to: to.into(),
            source_port: 1,
            destination_port: 6379,
            flags,
            payload: Default::default(),
            due: ms(sent + 1),
            drawn: ms(sent + 1),
        };
        Record { number: 0, at: ms(sent), host: Some((from.into(), ZERO)), event }
    }

    fn chained(history: &History, records: &[Record]) -> Vec<(String, i64, u8)> {
        let all = chains(history, records);
        assert!(all.iter().all(|(_, _, mark)| mark.rank == CHAIN));
        all.into_iter().map(|(host, at, mark)| (host, at.as_millis(), mark.hops)).collect()
    }

    /// The request arrives at 2 ms, and the reply, with which the client believes, at 3 ms.
    #[test]
    fn a_grant_is_followed_back_to_its_request_and_on_to_its_reply() {
        let history = Story::one_node().at(2).granted("m", "c1", 1_000).at(3).believes("c1", 1_000).ends(9);
        let records = [
            packet("c2", "m", 0, "DATA"),
            packet("c1", "m", 1, "DATA"),
            packet("c3", "m", 1, "ACK"),
            packet("m", "c1", 2, "DATA"),
            packet("m", "c2", 5, "DATA"),
        ];
        let of = |host: &str, at, hops| (host.to_owned(), at, hops);
        let grant = [of("m", 2, 0), of("m", 2, 0), of("c1", 1, 1), of("m", 2, 0), of("c1", 3, 1)];
        let belief = [of("c1", 3, 0), of("c1", 3, 0), of("m", 2, 1), of("m", 2, 1), of("c1", 1, 2)];
        assert_eq!(chained(&history, &records), [grant, belief].concat());
    }

    #[test]
    fn a_chain_is_followed_for_some_messages() {
        let records: Vec<_> = (0..20)
            .map(|at| {
                let (from, to) = if at % 2 == 0 { ("c1", "m") } else { ("m", "c1") };
                packet(from, to, at, "DATA")
            })
            .collect();
        let history = Story::one_node().at(19).granted("m", "c1", 1_000).ends(30);
        let all = chained(&history, &records);
        assert_eq!(all.iter().map(|(.., hops)| *hops).max(), Some(HOPS - 1));
        assert_eq!(all.iter().map(|(_, at, _)| *at).min(), Some(19 - i64::from(HOPS) + 1));
    }

    #[test]
    fn an_instant_has_its_best_meaning() {
        let mut moments = Moments::default();
        let mark = |rank, hops| Mark { rank, hops, is_use: false };
        for (rank, hops) in [(TIMER, 0), (CHAIN, 3), (RECORDED, 0), (CHAIN, 2), (CHAIN, 4)] {
            moments.mark("m".to_owned(), ms(5), mark(rank, hops));
        }
        moments.note("m".to_owned(), ms(6), RECORDED);
        moments.note("c".to_owned(), ms(5), TIMER);
        let of_host: Vec<_> = moments.of_host("m").collect();
        assert_eq!(of_host, [(ms(5), mark(CHAIN, 2)), (ms(6), mark(RECORDED, 0))]);
        assert_eq!(moments.count(), (3, 1));
    }

    /// The host does something at 5 ms. Another host has a timer then, and a record at 8 ms.
    #[test]
    fn timers_of_other_hosts_disturb_no_quiet() {
        let mut moments = Moments::default();
        moments.note("m".to_owned(), ms(5), TIMER);
        moments.note("c".to_owned(), ms(5), TIMER);
        moments.note("c".to_owned(), ms(8), RECORDED);
        for (host, from, until, is_quiet) in [
            ("m", 1, 4, true),
            ("m", 1, 5, false),
            ("m", 5, 6, false),
            ("m", 6, 7, true),
            ("m", 6, 8, false),
            ("m", 8, 9, false),
            ("m", 9, 10, true),
            ("other", 1, 7, true),
        ] {
            assert_eq!(moments.is_quiet(host, ms(from), ms(until)), is_quiet, "{host} {from} to {until}");
        }
    }

    #[test]
    fn the_instants_of_two_hosts_are_those_of_their_packets() {
        let mut moments = Moments::default();
        let link = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        moments.sent.entry(link("c", "m")).or_default().insert(ms(1));
        moments.arrived.entry(link("c", "m")).or_default().insert(ms(2));
        moments.sent.entry(link("m", "c")).or_default().insert(ms(2));
        moments.arrived.entry(link("m", "c")).or_default().insert(ms(3));
        moments.sent.entry(link("d", "m")).or_default().insert(ms(4));
        let chain = Mark { rank: CHAIN, hops: 1, is_use: true };
        moments.note("m".to_owned(), ms(2), RECORDED);
        moments.mark("c".to_owned(), ms(2), chain);
        let recorded = Mark { rank: RECORDED, ..Mark::default() };
        let of_both = [(ms(1), recorded), (ms(2), chain), (ms(3), recorded)];
        assert_eq!(moments.of_pair("c", "m"), of_both);
        assert_eq!(moments.of_pair("m", "c"), of_both);
        assert_eq!(moments.of_pair("c", "d"), []);
        assert_eq!(moments.pairs(), [("c", "m"), ("d", "m")].into());
    }

    /// The client's software runs at 5 ms, when a message to the node arrives. At 9 ms the node
    /// goes down.
    #[test]
    fn a_fault_is_seen_if_it_prevents_something_while_it_lasts() {
        let mut moments = Moments::default();
        moments.ran.entry("c".to_owned()).or_default().insert(ms(5));
        moments.arrived.entry(("c".to_owned(), "m".to_owned())).or_default().insert(ms(5));
        moments.edges.entry("m".to_owned()).or_default().insert(ms(9));
        let host = |host: &str| host.to_owned();
        let cut = |from, to, one_way| What::Cut { from: host(from), to: host(to), one_way };
        let lasting = |of: What, spans: [bool; 5]| (of, spans);
        for (what, spans) in [
            lasting(What::Pause { host: host("c") }, [false, true, true, false, false]),
            lasting(What::Pause { host: host("m") }, [false; 5]),
            lasting(cut("c", "m", true), [false, true, true, false, true]),
            lasting(cut("m", "c", true), [false, false, false, false, true]),
            lasting(cut("m", "c", false), [false, true, true, false, true]),
            lasting(cut("c", "d", false), [false; 5]),
            lasting(What::Suspend { host: host("c") }, [true; 5]),
            lasting(What::Crash { host: host("d") }, [true; 5]),
        ] {
            for ((from, until), is_seen) in [(1, 4), (1, 5), (5, 6), (6, 8), (9, 12)].into_iter().zip(spans) {
                let one =
                    Placement { at: ms(from), what: what.clone(), ends: ms(until), cost: Cost::default() };
                assert_eq!(moments.is_seen(&one), is_seen, "{one}");
            }
        }
        for what in [
            What::ClockStep { host: host("d"), by: 1 },
            What::Restart { host: host("d") },
            What::Promote { host: host("d") },
        ] {
            assert!(moments.is_seen(&Placement { at: ms(1), what, ends: ms(1), cost: Cost::default() }));
        }
    }
}
