//! A link: one direction between two hosts. It is always first in, first out, because the kernels
//! of hosts drop packets that arrive out of order, and never send one again. So a loss is a delay
//! here, and packets wait during a cut, as with retransmission.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    time::Duration,
};

use crate::{cause::Cause, entropy::Stream, payload::Payload, time::True, trace::Arrival};

/// The distribution of the latency of packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Latency {
    /// Always the same.
    Fixed(Duration),
    /// Any duration from `min` to `max`, all equally likely.
    Uniform {
        /// The shortest latency.
        min: Duration,
        /// The longest latency.
        max: Duration,
    },
    /// `min` plus an exponential delay with this mean.
    Exponential {
        /// The latency without the additional delay.
        min: Duration,
        /// The mean of the additional delay.
        mean: Duration,
        /// The maximum of the additional delay; longer draws are cut to it.
        cap: Duration,
    },
    /// Log-normal: half of the packets are faster than `median`; `sigma` determines the length of
    /// the tail (0.5 is a calm network).
    LogNormal {
        /// The median: half of the packets are faster.
        median: Duration,
        /// The standard deviation of the latency's natural logarithm.
        sigma: f64,
        /// The longest latency; longer draws are cut to it.
        cap: Duration,
    },
}

impl Latency {
    /// Draws a latency. Floating-point results are rounded to microseconds, so that the last bit of
    /// a platform's logarithm does not matter.
    pub fn draw(&self, stream: &mut Stream) -> Duration {
        let micros = |seconds: f64, cap: Duration| {
            Duration::from_micros((seconds * 1e6).clamp(0.0, cap.as_secs_f64() * 1e6) as u64)
        };
        match *self {
            Self::Fixed(latency) => latency,
            Self::Uniform { min, max } => stream.between(min, max),
            Self::Exponential { min, mean, cap } => {
                min + micros(-(1.0 - stream.unit()).ln() * mean.as_secs_f64(), cap)
            }
            Self::LogNormal { median, sigma, cap } => {
                // Box and Muller's transform of two uniform numbers into a normal one.
                let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
                let normal = radius * (std::f64::consts::TAU * stream.unit()).cos();
                micros(median.as_secs_f64() * (sigma * normal).exp(), cap)
            }
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(latency) => write!(f, "{latency:?}"),
            Self::Uniform { min, max } => write!(f, "{min:?}..{max:?}"),
            Self::Exponential { min, mean, cap } => write!(f, "{min:?} + exp({mean:?}) up to {cap:?}"),
            Self::LogNormal { median, sigma, cap } => {
                write!(f, "lognormal({median:?}, {sigma}) up to {cap:?}")
            }
        }
    }
}

/// A packet in flight, or waiting on a cut link.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) due: True,
    pub(crate) number: u64,
    pub(crate) payload: Payload,
}

/// One direction between two hosts.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) latency: Latency,
    cuts: BTreeSet<Cause>,
    delays: BTreeMap<Cause, Duration>,
    losses: BTreeMap<Cause, u32>,
    /// The sum of all delays, added to the latency.
    delay: Duration,
    /// The number of packets of a million that all causes together lose, and so delay by one
    /// retransmission timeout.
    loss_per_million: u32,
    queue: VecDeque<InFlight>,
    last_due: True,
}

/// The base of rates per million.
const MILLION: u32 = 1_000_000;

/// The minimum time until the first retransmission in Linux (`TCP_RTO_MIN`).
const RETRANSMISSION: Duration = Duration::from_millis(200);

impl Link {
    pub(crate) fn new(latency: Latency) -> Self {
        Self {
            latency,
            cuts: BTreeSet::new(),
            delays: BTreeMap::new(),
            losses: BTreeMap::new(),
            delay: Duration::ZERO,
            loss_per_million: 0,
            queue: VecDeque::new(),
            last_due: True::ZERO,
        }
    }

    /// Cuts the link for a cause.
    pub(crate) fn cut(&mut self, cause: Cause) {
        self.cuts.insert(cause);
    }

    pub(crate) fn heal(&mut self, cause: &Cause) {
        self.cuts.remove(cause);
    }

    pub(crate) fn is_cut(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// Sets the delay of a cause; zero ends it.
    pub(crate) fn slow(&mut self, cause: Cause, by: Duration) {
        let before = if by.is_zero() { self.delays.remove(&cause) } else { self.delays.insert(cause, by) };
        // The previous delay is subtracted, so the sum need not be recomputed.
        self.delay = self.delay.saturating_sub(before.unwrap_or_default()).saturating_add(by);
    }

    /// Sets the number of packets of a million that a cause loses; zero ends it.
    pub(crate) fn lose(&mut self, cause: Cause, per_million: u32) {
        if per_million == 0 {
            self.losses.remove(&cause);
        } else {
            self.losses.insert(cause, per_million.min(MILLION));
        }
        // Losses are independent: the shares that get through multiply.
        let through = self.losses.values().fold(MILLION, |through, loss| {
            (u64::from(through) * u64::from(MILLION - loss) / u64::from(MILLION)) as u32
        });
        self.loss_per_million = MILLION - through;
    }

    /// Ends every cut, delay and loss.
    pub(crate) fn calm(&mut self) {
        self.cuts.clear();
        self.delays.clear();
        self.losses.clear();
        (self.delay, self.loss_per_million) = (Duration::ZERO, 0);
    }

    /// Draws the arrival of the next packet unless a fault interferes, for [`Link::send`].
    pub(crate) fn arrival(&mut self, now: True, stream: &mut Stream) -> Arrival {
        let mut drawn = now + self.latency.draw(stream) + self.delay;
        if self.loss_per_million > 0 && stream.chance(self.loss_per_million) {
            drawn += RETRANSMISSION;
        }
        self.last_due = self.last_due.max(drawn);
        Arrival { due: self.last_due, drawn }
    }

    /// Puts a packet onto the link, with the arrival that was drawn for it.
    pub(crate) fn send(&mut self, due: True, number: u64, payload: Payload) {
        self.queue.push_back(InFlight { due, number, payload });
    }

    /// Returns the arrival and the number of the next packet.
    pub(crate) fn head(&self) -> Option<(True, u64)> {
        self.queue.front().map(|head| (head.due, head.number))
    }

    /// Takes out the next packet.
    pub(crate) fn take(&mut self) -> Option<InFlight> {
        self.queue.pop_front()
    }

    /// Reopens a healed link: packets that should have arrived during the cut start now, in order.
    pub(crate) fn reopen(&mut self, now: True, stream: &mut Stream) {
        if !self.is_late(now) {
            return;
        }
        let mut due = now + self.latency.draw(stream) + self.delay;
        for waiting in &mut self.queue {
            due = due.max(waiting.due);
            waiting.due = due;
        }
        self.last_due = self.last_due.max(due);
    }

    /// Returns true if a packet waits that should have arrived before `now`.
    pub(crate) fn is_late(&self, now: True) -> bool {
        self.queue.front().is_some_and(|head| head.due < now)
    }

    /// Keeps only the packets that `keep` selects.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Payload) -> bool) {
        self.queue.retain(|waiting| keep(&waiting.payload));
    }

    /// Drops every packet in flight.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::Entropy;

    #[test]
    fn latencies_keep_their_promises() {
        let ms = Duration::from_millis;
        // Each row: the latency, its least and its greatest draw, and the bounds of the middle one
        // of 4,001 draws.
        let rows = [
            (Latency::Fixed(ms(3)), ms(3), ms(3), ms(3), ms(3)),
            (
                Latency::Uniform { min: ms(1), max: ms(3) },
                ms(1),
                ms(3),
                Duration::from_micros(1_900),
                Duration::from_micros(2_100),
            ),
            // The median of an exponential is ln 2 of its mean: 1 + 6.93 ms.
            (
                Latency::Exponential { min: ms(1), mean: ms(10), cap: ms(50) },
                ms(1),
                ms(51),
                Duration::from_micros(7_400),
                Duration::from_micros(8_500),
            ),
            (
                Latency::LogNormal { median: ms(5), sigma: 0.5, cap: ms(20) },
                ms(0),
                ms(20),
                Duration::from_micros(4_800),
                Duration::from_micros(5_200),
            ),
        ];
        for (latency, least, greatest, low, high) in rows {
            let mut stream = Entropy::new(1).stream("network");
            let mut draws: Vec<_> = (0..4_001).map(|_| latency.draw(&mut stream)).collect();
            draws.sort();
            assert!(
                draws[0] >= least && draws[4_000] <= greatest,
                "{latency}: {:?}..{:?}",
                draws[0],
                draws[4_000]
            );
            assert!((low..=high).contains(&draws[2_000]), "{latency}: {:?}", draws[2_000]);
        }
    }

    #[test]
    fn losses_of_one_link_are_met_one_after_the_other() {
        // Of a million packets half get through one loss, and of those half through the other.
        let mut link = Link::new(Latency::Fixed(Duration::from_millis(1)));
        for (cause, per_million, together) in
            [("a", 500_000, 500_000), ("b", 500_000, 750_000), ("a", 0, 500_000), ("b", 0, 0)]
        {
            link.lose(cause.into(), per_million);
            assert_eq!(link.loss_per_million, together);
        }
    }

    /// A packet that was due during the cut starts when the link heals; a packet due exactly then
    /// was never delayed.
    #[test]
    fn a_packet_that_is_due_when_the_link_heals_arrives_in_time() {
        for (delay, healed, arrives) in [(0, 0, 1), (0, 1, 1), (0, 2, 3), (2, 3, 3), (2, 4, 7)] {
            let mut link = Link::new(Latency::Fixed(Duration::from_millis(1)));
            link.slow("a".into(), Duration::from_millis(delay));
            let mut stream = Entropy::new(1).stream("network");
            let due = link.arrival(True::ZERO, &mut stream).due;
            link.send(due, 1, Payload::OnTurmoil);
            link.reopen(True::from_millis(healed), &mut stream);
            assert_eq!(link.head(), Some((True::from_millis(arrives), 1)), "healed at {healed} ms");
        }
    }

    /// 15.87 % of normal draws deviate by more than one standard deviation to each side: a factor
    /// of e to the power of sigma.
    #[test]
    fn a_log_normal_latency_spreads_as_its_sigma_says() {
        let latency = Latency::LogNormal {
            median: Duration::from_millis(5),
            sigma: 0.5,
            cap: Duration::from_millis(100),
        };
        let mut stream = Entropy::new(1).stream("network");
        let mut draws: Vec<_> = (0..10_000).map(|_| latency.draw(&mut stream).as_secs_f64() * 1e3).collect();
        draws.sort_by(f64::total_cmp);
        for (rank, expected) in [(1_587, 5.0 * (-0.5_f64).exp()), (8_413, 5.0 * 0.5_f64.exp())] {
            assert!((draws[rank] / expected - 1.0).abs() < 0.05, "{} is not about {expected}", draws[rank]);
        }
    }
}
