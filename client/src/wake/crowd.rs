//! Turns: an order among the clients that one message wakes, if only one of them can get the lock.
//!
//! Without turns, each client would ask for the lock immediately, and the client to which the
//! server publishes first would always win. The server publishes in a fixed order, so of five
//! contenders three might get nothing for as long as the other two want the lock.
//!
//! A release returns the number of clients that its message has reached (the reply of PUBLISH). A
//! client that waits after its own release lets that many messages pass and asks immediately on the
//! next one. Until then it asks after a delay, in case the clients before it are gone; the delay
//! grows with their number. The client whose turn it is does not wait, so a hand-off takes no
//! longer. Most other clients receive the next message before their delay is over, and send no
//! useless request.
//!
//! With more than [`NEAR`] clients before it, a client waits until two messages should have come:
//! so of a thousand waiters a few ask at a message, not all. The server also counts clients that
//! are dead or cut off, until it notices. So this holds only for a client that has seen others
//! take their turns: more than [`NEAR`] messages came before its last grant. And at one message in
//! [`PROBE`] it asks like a near one, so that it learns when the others are gone.
//!
//! A client that has not released the lock yet does not know of others, and asks immediately. A
//! client whose release reached no other does the same.
//!
//! A client that wants the lock again before the others can have had it waits for its turn instead
//! of asking first. Otherwise it would overtake the client whose turn it is, which then competes
//! with the next one, and the server's order decides again. The others need as long as the messages
//! took to come while this client waited, for each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::env::{Env, Monotonic, draw};

/// The maximum number of channels that are remembered.
const MOST: usize = 1024;

/// The longest time that others are assumed to need before a client that wants a lock again.
const HELD_BACK_MAX: Duration = Duration::from_millis(250);

/// The most clients before one that asks within a few round trips. It is unlikely that so many are
/// gone at once.
const NEAR: u32 = 16;

/// The limit of the time of two messages, for a client with more than [`NEAR`] others before it. Up
/// to the same again is drawn.
const FAR_MAX: Duration = Duration::from_millis(250);

/// The number of messages of which a client with many others before it asks at one.
const PROBE: u64 = 8;

/// The longest time that others are assumed to be there.
const KNOWN_MAX: Duration = Duration::from_secs(3600);

/// The other clients that wait at each channel, known from the last release by this client.
#[derive(Default)]
pub(super) struct Crowds {
    /// A channel whose last release has reached no other client has no entry.
    others: BTreeMap<String, Crowd>,
    /// The channels without waiters that the server has not unsubscribed this client from yet.
    leaving: BTreeSet<String>,
}

struct Crowd {
    /// The number of other clients.
    number: u32,
    pace: Option<Pace>,
    /// The number of messages before the last grant to this client: turns of others.
    turns: u32,
    /// The time until which the others come first.
    first_until: Monotonic,
    /// Twice the time that the others need. After it, they may be gone.
    known_until: Monotonic,
}

impl Crowd {
    fn new(number: u32, now: Monotonic) -> Self {
        Self { number, pace: None, turns: 0, first_until: now, known_until: now }
    }
}

/// The durations that a waiter of this client has measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The time from one message of a channel to the next.
    pub(super) period: Duration,
    /// The time of a request.
    pub(super) round_trip: Duration,
}

/// The place of this client among those that wait at a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of clients before this one.
    pub(super) ahead: u32,
    /// The time from one message of the channel to the next. 0 if the others may be gone: few have
    /// taken their turn before the last grant to this client, or all have had time enough since its
    /// last release.
    pub(super) period: Duration,
}

/// A wait for the first turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldBack {
    /// The time of a request.
    pub(crate) round_trip: Duration,
    /// The time at which the wait ends at the latest.
    pub(crate) until: Monotonic,
}

/// The state of this client's subscription to a channel when it releases the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listening {
    No,
    /// The client has waiters of its own, which receive the message.
    Yes,
    /// The client is about to unsubscribe. The server may count it although it no longer receives
    /// messages.
    Leaving,
}

impl Crowds {
    /// Records that the last waiter of a channel is gone.
    pub(super) fn leave(&mut self, channel: &str) {
        if self.leaving.len() < MOST {
            self.leaving.insert(channel.to_owned());
        }
    }

    /// Returns the channels that this client leaves: the server has not unsubscribed it yet.
    pub(super) fn leaving(&self) -> BTreeSet<String> {
        self.leaving.clone()
    }

    /// Records that the server has unsubscribed this client from `channels`.
    pub(super) fn left(&mut self, channels: &BTreeSet<String>) {
        self.leaving.retain(|channel| !channels.contains(channel));
    }

    pub(super) fn listening(&self, channel: &str, has_waiters: bool) -> Listening {
        if has_waiters {
            Listening::Yes
        } else if self.leaving.contains(channel) {
            Listening::Leaving
        } else {
            Listening::No
        }
    }

    /// Records that this client has got the lock after `passed` messages, and the pace at which
    /// they came if there were any.
    pub(super) fn granted(&mut self, channel: &str, passed: u32, pace: Option<Pace>) {
        if pace.is_some() {
            self.entry(channel, || Crowd::new(0, Monotonic(Duration::ZERO))).pace = pace;
        }
        if let Some(crowd) = self.others.get_mut(channel) {
            crowd.turns = passed;
        }
    }

    /// Records that a release of this client reached `reached` clients, itself included if it is
    /// subscribed. If its next waiter comes too late for this message, the message serves one of
    /// the others, so one client fewer is ahead.
    pub(super) fn released(&mut self, channel: &str, reached: u32, listening: Listening, now: Monotonic) {
        let number = match listening {
            Listening::No | Listening::Yes => reached.saturating_sub(1),
            Listening::Leaving => reached.saturating_sub(2),
        };
        if number == 0 {
            self.others.remove(channel);
            return;
        }
        let crowd = self.entry(channel, || Crowd::new(number, now));
        let period = crowd.pace.map_or(Duration::ZERO, |pace| pace.period);
        let needed = period.saturating_mul(number);
        crowd.number = number;
        crowd.first_until = now + needed.min(HELD_BACK_MAX);
        crowd.known_until = now + needed.saturating_mul(2).min(KNOWN_MAX);
    }

    fn entry(&mut self, channel: &str, new: impl FnOnce() -> Crowd) -> &mut Crowd {
        if self.others.len() >= MOST && !self.others.contains_key(channel) {
            self.others.pop_first();
        }
        self.others.entry(channel.to_owned()).or_insert_with(new)
    }

    /// Returns the place of this client, which has received `passed` messages since it had the lock
    /// or subscribed. Clients that may be gone are counted: a turn that no client uses goes to a
    /// client that knows of no others.
    pub(super) fn place(&self, channel: &str, passed: u32, now: Monotonic) -> Place {
        let Some(crowd) = self.others.get(channel) else { return Place::default() };
        let ahead = crowd.number.saturating_sub(passed.saturating_sub(1));
        let pace = crowd.pace.filter(|_| crowd.turns > NEAR && now < crowd.known_until);
        Place { ahead, period: pace.map_or(Duration::ZERO, |pace| pace.period) }
    }

    /// Returns true if no channel has others, as in most clients.
    pub(super) fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Returns the limits of a wait for the first turn, if others come first.
    pub(super) fn held_back(&self, channel: &str, now: Monotonic) -> Option<HeldBack> {
        let crowd = self.others.get(channel).filter(|crowd| now < crowd.first_until)?;
        let Pace { period, round_trip } = crowd.pace?;
        // Twice the time that the others need: their holds differ.
        let until = crowd.first_until + period.saturating_mul(crowd.number).min(HELD_BACK_MAX);
        Some(HeldBack { round_trip, until })
    }
}

/// The durations of a waiter's requests.
#[derive(Default)]
pub(crate) struct RoundTrip {
    shortest: Option<Duration>,
    last: Duration,
}

impl RoundTrip {
    /// The maximum congestion: the time by which a request may exceed the shortest one because many
    /// clients ask together. Any further excess has other reasons.
    const CONGESTION: Duration = Duration::from_millis(10);

    pub(crate) fn took(&mut self, time: Duration) {
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
        self.last = time;
    }

    /// Returns the time of the last request, limited to the shortest one plus
    /// [`RoundTrip::CONGESTION`]. If many clients ask together, they must wait longer until the
    /// message of another's success reaches them.
    pub(crate) fn time(&self) -> Duration {
        self.last.min(self.shortest.unwrap_or_default().saturating_add(Self::CONGESTION))
    }
}

/// Returns the delay of a client at a place, `None` if it is its turn: a quarter of a round trip
/// for each client before it, four round trips at most, plus up to a quarter drawn at random,
/// because another client may count the same number. With more than [`NEAR`] others before it, the
/// delay is the time of two messages, [`FAR_MAX`] at most, plus up to the same drawn at random, but
/// at one message in [`PROBE`].
pub(super) fn delay(env: &dyn Env, Place { ahead, period }: Place, round_trip: Duration) -> Option<Duration> {
    if ahead == 0 {
        return None;
    }
    let step = round_trip / 4;
    let near = step.saturating_mul(ahead.min(NEAR));
    let far = period.saturating_mul(2).min(FAR_MAX);
    let is_far = ahead > NEAR && far > near && draw(env, PROBE) > 0;
    let (least, range) = if is_far { (far, far) } else { (near, step) };
    Some(least + Duration::from_nanos(draw(env, u64::try_from(range.as_nanos()).unwrap_or(u64::MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TokioEnv;

    const NOW: Monotonic = Monotonic(Duration::from_secs(9));

    /// The number of messages until a client's turn, given the number of clients that its release
    /// has reached.
    #[test]
    fn as_many_messages_pass_as_clients_come_first() {
        for (reached, listening, messages) in [
            // No client waits, or this message serves the only one. The next message is for this
            // client.
            (0, Listening::No, 1),
            (1, Listening::No, 1),
            (2, Listening::No, 2),
            (4, Listening::No, 4),
            // The client's own waiters receive this message as well.
            (1, Listening::Yes, 1),
            (2, Listening::Yes, 2),
            // The server counts the client, which no longer receives messages.
            (1, Listening::Leaving, 1),
            (5, Listening::Leaving, 4),
            (64, Listening::No, 64),
            (u32::MAX, Listening::No, u32::MAX),
        ] {
            let mut crowds = Crowds::default();
            crowds.released("c", reached, listening, NOW);
            assert!(
                messages < 2 || crowds.place("c", messages - 1, NOW).ahead > 0,
                "{reached} {listening:?}"
            );
            assert_eq!(crowds.place("c", messages, NOW), Place::default(), "{reached} {listening:?}");
            assert_eq!(crowds.place("other", 1, NOW), Place::default());
        }
    }

    /// A release that has reached three others, while messages came every 10 ms.
    #[test]
    fn others_come_first_for_as_long_as_each_of_them_needs() {
        let ms = Duration::from_millis;
        let pace = Pace { period: ms(10), round_trip: ms(1) };
        let mut crowds = Crowds::default();
        crowds.released("c", 4, Listening::No, NOW);
        assert_eq!(crowds.held_back("c", NOW), None, "it has never waited, and knows no pace");
        crowds.granted("c", 1, Some(pace));
        assert_eq!(crowds.held_back("c", NOW), None, "the pace is for the next release");
        crowds.released("c", 4, Listening::No, NOW);
        let held_back = Some(HeldBack { round_trip: ms(1), until: NOW + ms(60) });
        for (later, held_back) in [(0, held_back), (29, held_back), (30, None)] {
            assert_eq!(crowds.held_back("c", NOW + ms(later)), held_back, "{later}");
        }
        assert_eq!(crowds.held_back("other", NOW), None);
        crowds.released("c", 1000, Listening::No, NOW);
        let longest = HeldBack { round_trip: ms(1), until: NOW + 2 * HELD_BACK_MAX };
        assert_eq!(crowds.held_back("c", NOW), Some(longest));
        assert_eq!(crowds.held_back("c", NOW + HELD_BACK_MAX), None);
        crowds.released("c", 1, Listening::No, NOW);
        assert_eq!(crowds.held_back("c", NOW), None, "its message serves the only other");
        crowds.granted("new", 1, Some(pace));
        assert_eq!(crowds.held_back("new", NOW), None, "it has released nothing yet");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut crowds = Crowds::default();
        for number in 0..2 * MOST {
            crowds.released(&number.to_string(), 5, Listening::No, NOW);
            crowds.leave(&number.to_string());
        }
        assert_eq!((crowds.others.len(), crowds.leaving.len()), (MOST, MOST));
        crowds.left(&crowds.leaving());
        assert_eq!(crowds.listening("0", false), Listening::No);
        // A release that reaches no client removes the entry.
        crowds.released(&(2 * MOST - 1).to_string(), 0, Listening::No, NOW);
        assert_eq!(crowds.others.len(), MOST - 1);
    }

    /// A release that has reached twenty others, after a grant before which messages came every 10
    /// ms.
    #[test]
    fn a_place_has_a_pace_while_others_take_their_turns() {
        let ms = Duration::from_millis;
        let mut crowds = Crowds::default();
        let pace = |period| Some(Pace { period, round_trip: ms(1) });
        crowds.granted("c", 17, pace(ms(10)));
        crowds.released("c", 21, Listening::No, NOW);
        for (later, passed, ahead, period) in
            [(0, 0, 20, 10), (100, 5, 16, 10), (399, 1, 20, 10), (400, 1, 20, 0), (3_600_000, 0, 20, 0)]
        {
            let place = Place { ahead, period: ms(period) };
            assert_eq!(crowds.place("c", passed, NOW + ms(later)), place, "{later}");
        }
        // The server still counts twenty others, but few or none have taken their turn.
        for (passed, pace) in [(16, pace(ms(10))), (0, None)] {
            crowds.granted("c", passed, pace);
            crowds.released("c", 21, Listening::No, NOW);
            assert_eq!(crowds.place("c", 0, NOW), Place { ahead: 20, period: Duration::ZERO }, "{passed}");
        }
        crowds.granted("c", 17, pace(Duration::from_secs(86_400)));
        crowds.released("c", u32::MAX, Listening::No, NOW);
        assert_eq!(crowds.place("c", 0, NOW + KNOWN_MAX).period, Duration::ZERO);
        crowds.granted("new", 0, None);
        assert!(!crowds.others.contains_key("new"), "it knows of no others");
    }

    #[tokio::test]
    async fn a_delay_grows_with_those_who_come_first() {
        let env = TokioEnv::current().unwrap();
        let ms = Duration::from_millis;
        // The clients before it, milliseconds of a request and between two messages, the least
        // delay and the range of what is drawn.
        for (ahead, round_trip, period, least, range) in [
            (1, 80, 0, 20, 20),
            (3, 80, 200, 60, 20),
            (16, 80, 200, 320, 20),
            // Four round trips, if messages come quickly or their pace is unknown.
            (17, 80, 0, 320, 20),
            (100, 80, 160, 320, 20),
            // The time of two messages, a quarter of a second at most.
            (16, 10, 100, 40, 3),
            (17, 10, 100, 200, 200),
            (1000, 10, 100, 200, 200),
            (17, 10, 10_000, 250, 250),
        ] {
            let place = Place { ahead, period: ms(period) };
            let near = ms(round_trip * 17 / 4 + 1);
            let mut probes = 0;
            for _ in 0..400 {
                let delay = delay(&env, place, ms(round_trip)).expect("others come first");
                let is_probe = least > 4 * round_trip && delay <= near;
                probes += usize::from(is_probe);
                let is_within = (ms(least)..=ms(least + range)).contains(&delay);
                assert!(is_within || is_probe, "{place:?}: {delay:?}");
            }
            let is_far = least > 4 * round_trip;
            assert_eq!((10..200).contains(&probes), is_far, "{place:?}: {probes} of 400");
        }
        assert_eq!(delay(&env, Place { ahead: 0, period: ms(100) }, ms(80)), None);
    }

    #[test]
    fn a_round_trip_is_the_last_one_unless_that_has_other_reasons() {
        let mut round_trip = RoundTrip::default();
        for (took, time) in [(2, 2), (1, 1), (7, 7), (11, 11), (3_000, 11), (50, 11), (1, 1)] {
            round_trip.took(Duration::from_millis(took));
            assert_eq!(round_trip.time(), Duration::from_millis(time), "{took}");
        }
    }
}
