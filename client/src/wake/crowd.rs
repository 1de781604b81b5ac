//! Turns among the clients that one message wakes, of which one can get the lock.
//!
//! If all of them ask at once, those that the server tells first come first, every time: it
//! publishes in one order, and of five contenders three may get nothing for as long as the other
//! two want the lock. So they take turns. A release tells how many clients it has reached (PUBLISH
//! counts them). A client that waits after its release lets so many messages pass, and asks at once
//! on the next one; until then it asks after a delay that is longer the more clients come before
//! it, in case that they are gone. The one whose turn it is waits for nothing, so that a hand-off
//! takes no longer, and those that would ask in vain mostly hear the next message before they ask.
//!
//! A client that has released nothing yet does not know of others, and asks at once; so does one
//! whose release reached no one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::env::{Env, draw};

/// How many channels are remembered at most.
const MOST: usize = 1024;

/// How many clients wait at each channel besides this one, as its last release of the lock has
/// shown.
#[derive(Default)]
pub(super) struct Crowds {
    /// Of channels with none there is no entry.
    others: BTreeMap<String, u32>,
    /// The channels that no waiter listens to any more and that the server has not taken this
    /// client from.
    leaving: BTreeSet<String>,
}

/// How this client listens to a channel when it releases the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listening {
    No,
    /// It has waiters of its own, which hear the message.
    Yes,
    /// It is about to leave, and may be counted although it hears nothing.
    Leaving,
}

impl Crowds {
    /// The last waiter at a channel has gone.
    pub(super) fn leave(&mut self, channel: &str) {
        if self.leaving.len() < MOST {
            self.leaving.insert(channel.to_owned());
        }
    }

    /// The channels that are being left.
    pub(super) fn leaving(&self) -> BTreeSet<String> {
        self.leaving.clone()
    }

    /// The server has taken this client from channels.
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

    /// A release of this client's reached so many clients, itself among them if it listens. Those
    /// ahead of its next waiter are one less when that comes too late for this very message, which
    /// serves one of them.
    pub(super) fn released(&mut self, channel: &str, reached: u32, listening: Listening) {
        let others = match listening {
            Listening::No | Listening::Yes => reached.saturating_sub(1),
            Listening::Leaving => reached.saturating_sub(2),
        };
        if others == 0 {
            self.others.remove(channel);
            return;
        }
        if self.others.len() >= MOST && !self.others.contains_key(channel) {
            self.others.pop_first();
        }
        self.others.insert(channel.to_owned(), others);
    }

    /// How many clients come before this one, if `passed` messages have been heard since it had the
    /// lock or came. None is taken for gone: a turn that no client uses goes to one that knows of
    /// no others.
    pub(super) fn ahead(&self, channel: &str, passed: u32) -> u32 {
        let others = self.others.get(channel).copied().unwrap_or(0);
        others.saturating_sub(passed.saturating_sub(1))
    }
}

/// What a request of one waiter takes.
#[derive(Default)]
pub(crate) struct RoundTrip {
    shortest: Option<Duration>,
    last: Duration,
}

impl RoundTrip {
    /// How much longer than the shortest one a request may take because many ask at once. What
    /// takes longer has other reasons.
    const CONGESTION: Duration = Duration::from_millis(10);

    /// A request took so long.
    pub(crate) fn took(&mut self, time: Duration) {
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
        self.last = time;
    }

    /// What the last one took: where many ask at once, they have to wait for longer until they hear
    /// of another's success.
    pub(crate) fn time(&self) -> Duration {
        self.last.min(self.shortest.unwrap_or_default().saturating_add(Self::CONGESTION))
    }
}

/// How long to wait when so many come before: a quarter of a round trip for each and no more than
/// four, and a little that is drawn, as another client may count as many. `None` when it is this
/// client's turn.
pub(super) fn delay(env: &dyn Env, ahead: u32, round_trip: Duration) -> Option<Duration> {
    if ahead == 0 {
        return None;
    }
    let step = round_trip / 4;
    let longest = round_trip.saturating_mul(4);
    let drawn = Duration::from_nanos(draw(env, u64::try_from(step.as_nanos()).unwrap_or(u64::MAX)));
    Some(step.saturating_mul(ahead).min(longest) + drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TokioEnv;

    /// Messages until a client's turn, if its release has reached so many.
    #[test]
    fn as_many_messages_pass_as_clients_come_first() {
        for (reached, listening, messages) in [
            // No client waits, or one, which this message serves: it is the next one's turn.
            (0, Listening::No, 1),
            (1, Listening::No, 1),
            (2, Listening::No, 2),
            (4, Listening::No, 4),
            // Its own waiters hear this message as well.
            (1, Listening::Yes, 1),
            (2, Listening::Yes, 2),
            // It is counted, and hears nothing.
            (1, Listening::Leaving, 1),
            (5, Listening::Leaving, 4),
            (64, Listening::No, 64),
            (u32::MAX, Listening::No, u32::MAX),
        ] {
            let mut crowds = Crowds::default();
            crowds.released("c", reached, listening);
            assert!(messages < 2 || crowds.ahead("c", messages - 1) > 0, "{reached} {listening:?}");
            assert_eq!(crowds.ahead("c", messages), 0, "{reached} {listening:?}");
            assert_eq!(crowds.ahead("other", 1), 0);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut crowds = Crowds::default();
        for number in 0..2 * MOST {
            crowds.released(&number.to_string(), 5, Listening::No);
            crowds.leave(&number.to_string());
        }
        assert_eq!((crowds.others.len(), crowds.leaving.len()), (MOST, MOST));
        crowds.left(&crowds.leaving());
        assert_eq!(crowds.listening("0", false), Listening::No);
        // A release that reaches no client is forgotten.
        crowds.released(&(2 * MOST - 1).to_string(), 0, Listening::No);
        assert_eq!(crowds.others.len(), MOST - 1);
    }

    #[tokio::test]
    async fn a_delay_grows_with_those_who_come_first_up_to_four_round_trips() {
        let env = TokioEnv::current().unwrap();
        let ms = Duration::from_millis;
        assert_eq!(delay(&env, 0, ms(80)), None);
        for (ahead, least) in [(1, 20), (3, 60), (16, 320), (100, 320)] {
            let delay = delay(&env, ahead, ms(80)).expect("others come first");
            assert!((ms(least)..=ms(least + 20)).contains(&delay), "{ahead}: {delay:?}");
        }
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
