//! The clocks of one host: wall, monotonic and boottime, each a pure function of true time and of
//! the faults so far.
//!
//! A clock is a list of straight pieces. Each piece starts from an exact anchor, kept in billionths
//! of a nanosecond, so that cutting a piece in two changes no reading. Readings are rounded down to
//! whole nanoseconds.

use std::{fmt, time::Duration};

use crate::time::{Boottime, Monotonic, True, Wall};

/// One of the three clocks of a host, each with its own error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClockId {
    /// `CLOCK_REALTIME`: a fault can step it forwards and backwards.
    Wall,
    /// `CLOCK_MONOTONIC`: stops while the host is suspended.
    Monotonic,
    /// `CLOCK_BOOTTIME`: continues while the host is suspended.
    Boottime,
}

impl ClockId {
    /// The three clocks in the order of their readings.
    pub const ALL: [Self; 3] = [Self::Wall, Self::Monotonic, Self::Boottime];

    /// Returns the name of one clock, or that of all of them, for the description of a fault.
    pub(crate) fn name_or_all(of: Option<Self>) -> &'static str {
        match of {
            None => "all clocks",
            Some(Self::Wall) => "wall",
            Some(Self::Monotonic) => "monotonic",
            Some(Self::Boottime) => "boottime",
        }
    }
}

/// The speed of a clock, in billionths of true time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(i64);

impl Rate {
    /// As fast as true time.
    pub const NOMINAL: Self = Self(UNIT);

    /// Returns a rate that is fast by `ppm` parts per million, or slow if negative; the slowest
    /// clock stands still.
    pub const fn ppm(ppm: i64) -> Self {
        let rate = UNIT.saturating_add(ppm.saturating_mul(1_000));
        Self(if rate < 0 { 0 } else { rate })
    }

    /// Returns the rate whose error is the sum of the errors of both rates; not below zero.
    pub fn and(self, other: Rate) -> Self {
        Self(self.0.saturating_add(other.0.saturating_sub(UNIT)).max(0))
    }

    /// Returns a rate of `factor` times true time; an invalid factor (negative or not a number)
    /// counts as zero.
    pub fn factor(factor: f64) -> Self {
        Self((factor * UNIT as f64).round().max(0.0) as i64)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+}ppb", self.0 - UNIT)
    }
}

/// The readings of a host's clocks at one true instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// `CLOCK_REALTIME`, since the Unix epoch.
    pub wall: Wall,
    /// `CLOCK_MONOTONIC`, without the time of suspensions.
    pub monotonic: Monotonic,
    /// `CLOCK_BOOTTIME`, with the time of suspensions.
    pub boottime: Boottime,
}

/// A linear piece of a host's clocks, valid from `from` until the next one, in plain numbers.
///
/// Readings are whole nanoseconds, while the clock itself keeps the rounding error. So a reading
/// computed from a segment may be a nanosecond less than that of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The true instant at which it begins.
    pub from: True,
    /// The readings of wall, monotonic and boottime at `from`, in nanoseconds.
    pub readings: [i64; 3],
    /// The rate of each clock, in billionths of true time.
    pub rates: [i64; 3],
}

/// A linear piece of the three clocks, valid from `from` until the next piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    from: True,
    /// Readings at `from`, in billionths of a nanosecond.
    anchors: [i128; 3],
    /// The same in whole nanoseconds, and the billionths beyond them; [`NO_REST`] if they do not
    /// fit.
    split: [(i64, i64); 3],
    /// In billionths of true time. The wall clock's rate is negative while it is slewed back faster
    /// than time passes.
    rates: [i64; 3],
}

/// The rest of an anchor whose whole nanoseconds do not fit.
const NO_REST: i64 = -1;

/// Billionths per nanosecond, and the nominal rate.
const UNIT: i64 = 1_000_000_000;

impl Piece {
    fn new(from: True, anchors: [i128; 3], rates: [i64; 3]) -> Piece {
        let mut piece = Piece { from, anchors, split: [(0, 0); 3], rates };
        piece.set_anchors(anchors);
        piece
    }

    fn set_anchors(&mut self, anchors: [i128; 3]) {
        self.anchors = anchors;
        self.split = anchors.map(|anchor| {
            let (whole, rest) = (anchor.div_euclid(UNIT.into()), anchor.rem_euclid(UNIT.into()));
            i64::try_from(whole).map_or((0, NO_REST), |whole| (whole, rest as i64))
        });
    }

    fn exact(&self, clock_id: ClockId, at: True) -> i128 {
        let elapsed = i128::from(at.as_nanos()) - i128::from(self.from.as_nanos());
        self.anchors[clock_id as usize] + elapsed * i128::from(self.rates[clock_id as usize])
    }

    fn nanos(&self, clock_id: ClockId, at: True) -> i64 {
        self.nanos_in_words(clock_id, at).unwrap_or_else(|| self.nanos_of_any(clock_id, at))
    }

    /// Computes a reading without the division of 128 bits, which costs more than all the rest of a
    /// reading: the elapsed time is right but for the error of the rate. `None` if the error does
    /// not fit.
    fn nanos_in_words(&self, clock_id: ClockId, at: True) -> Option<i64> {
        let (whole, rest) = self.split[clock_id as usize];
        if rest == NO_REST {
            return None;
        }
        let elapsed = at.as_nanos().checked_sub(self.from.as_nanos())?;
        let whole = whole.checked_add(elapsed)?;
        let rate = self.rates[clock_id as usize];
        if rate == UNIT {
            return Some(whole);
        }
        let error = elapsed.checked_mul(rate.checked_sub(UNIT)?)?.checked_add(rest)?;
        whole.checked_add(error.div_euclid(UNIT))
    }

    fn nanos_of_any(&self, clock_id: ClockId, at: True) -> i64 {
        let nanos = self.exact(clock_id, at).div_euclid(i128::from(UNIT));
        nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

/// A running slew.
#[derive(Debug, Clone, Copy)]
struct Slew {
    until: True,
    /// The addition to the wall clock's rate until then, in billionths.
    rate: i64,
    /// The rounding error of the rate, in billionths of a nanosecond, never negative; added at the
    /// end.
    rest: i128,
}

/// The clocks of one host, from the beginning of the world to the last change known so far.
#[derive(Debug, Clone)]
pub struct Clock {
    pieces: Vec<Piece>,
    rates: [Rate; 3],
    frozen: [bool; 3],
    suspended: bool,
    /// The running slews, sorted by their ends.
    slews: Vec<Slew>,
}

impl Clock {
    /// Returns clocks that run at the rate of true time, with these readings at true zero.
    pub fn new(wall: Wall, monotonic: Monotonic, boottime: Boottime) -> Self {
        let anchors = [wall.as_nanos(), monotonic.as_nanos(), boottime.as_nanos()]
            .map(|n| i128::from(n) * i128::from(UNIT));
        Self {
            pieces: vec![Piece::new(True::ZERO, anchors, [UNIT; 3])],
            rates: [Rate::NOMINAL; 3],
            frozen: [false; 3],
            suspended: false,
            slews: Vec::new(),
        }
    }

    /// Returns the reading of the wall clock at this true instant.
    pub fn wall(&self, at: True) -> Wall {
        Wall::from_nanos(self.piece(at).nanos(ClockId::Wall, at))
    }

    /// Returns the reading of the monotonic clock at this true instant.
    pub fn monotonic(&self, at: True) -> Monotonic {
        Monotonic::from_nanos(self.piece(at).nanos(ClockId::Monotonic, at))
    }

    /// Returns the reading of the boottime clock at this true instant.
    pub fn boottime(&self, at: True) -> Boottime {
        Boottime::from_nanos(self.piece(at).nanos(ClockId::Boottime, at))
    }

    /// Returns the readings of all clocks at this true instant.
    pub fn read(&self, at: True) -> Reading {
        Reading { wall: self.wall(at), monotonic: self.monotonic(at), boottime: self.boottime(at) }
    }

    /// Returns the first true instant, not before `from`, at which this clock shows `nanos` or
    /// more, by the changes known so far; `None` if that never happens.
    pub fn first_true(&self, clock_id: ClockId, nanos: i64, from: True) -> Option<True> {
        let target = i128::from(nanos) * i128::from(UNIT);
        let first = self.index(from);
        for (index, piece) in self.pieces.iter().enumerate().skip(first) {
            let start = from.max(piece.from);
            let missing = target - piece.exact(clock_id, start);
            if missing <= 0 {
                return Some(start);
            }
            let rate = i128::from(piece.rates[clock_id as usize]);
            if rate <= 0 {
                continue;
            }
            let wait = (missing + rate - 1) / rate;
            let Ok(at) = i64::try_from(i128::from(start.as_nanos()) + wait) else { continue };
            let at = True::from_nanos(at);
            if self.pieces.get(index + 1).is_none_or(|next| at < next.from) {
                return Some(at);
            }
        }
        None
    }

    /// Returns the first true instant, not before `from`, at which the monotonic clock shows
    /// `target` or more.
    pub fn true_at_monotonic(&self, target: Monotonic, from: True) -> Option<True> {
        self.first_true(ClockId::Monotonic, target.as_nanos(), from)
    }

    /// Returns the linear pieces of these clocks for a recorder, in order, including those planned
    /// ahead.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        self.pieces.iter().map(|piece| Segment {
            from: piece.from,
            readings: ClockId::ALL.map(|clock_id| piece.nanos(clock_id, piece.from)),
            rates: piece.rates,
        })
    }

    /// Moves the wall clock by `by_nanos` in one step.
    pub fn step(&mut self, at: True, by_nanos: i64) {
        self.change(at, |clock| {
            let last = clock.pieces.last_mut().expect("a clock has a first piece");
            let mut anchors = last.anchors;
            anchors[ClockId::Wall as usize] += i128::from(by_nanos) * i128::from(UNIT);
            last.set_anchors(anchors);
        });
    }

    /// Moves the wall clock by `by_nanos`, evenly over `over` of true time. Slews add up. A frozen
    /// clock is not slewed, and the part of a slew that it misses is lost.
    pub fn slew(&mut self, at: True, by_nanos: i64, over: Duration) {
        let until = at + over;
        let over = i128::from(until.as_nanos()) - i128::from(at.as_nanos());
        if over == 0 {
            return self.step(at, by_nanos);
        }
        let by = i128::from(by_nanos) * i128::from(UNIT);
        let rate = by.div_euclid(over).clamp(i128::from(i64::MIN / 2), i128::from(i64::MAX / 2)) as i64;
        let rest = by - i128::from(rate) * over;
        self.change(at, |clock| {
            let behind = clock.slews.partition_point(|slew| slew.until <= until);
            clock.slews.insert(behind, Slew { until, rate, rest });
        });
    }

    /// Sets the rate of these clocks from now on.
    pub fn set_rate(&mut self, at: True, clock_ids: &[ClockId], rate: Rate) {
        self.change(at, |clock| clock_ids.iter().for_each(|&clock_id| clock.rates[clock_id as usize] = rate));
    }

    /// Freezes these clocks, or resumes them from their readings.
    pub fn freeze(&mut self, at: True, clock_ids: &[ClockId], frozen: bool) {
        self.change(at, |clock| {
            clock_ids.iter().for_each(|&clock_id| clock.frozen[clock_id as usize] = frozen)
        });
    }

    /// Suspends the host, which stops only its monotonic clock, or resumes it.
    pub fn suspend(&mut self, at: True, suspended: bool) {
        self.change(at, |clock| clock.suspended = suspended);
    }

    fn index(&self, at: True) -> usize {
        self.pieces.partition_point(|piece| piece.from <= at).saturating_sub(1)
    }

    fn piece(&self, at: True) -> &Piece {
        &self.pieces[self.index(at)]
    }

    /// Splits the pieces at `at`, makes the change there, and recomputes the pieces after it.
    fn change(&mut self, at: True, change: impl FnOnce(&mut Self)) {
        let now = *self.piece(at);
        self.slews.retain(|slew| slew.until > at);
        self.pieces.retain(|piece| piece.from < at);
        let anchors = ClockId::ALL.map(|clock_id| now.exact(clock_id, at));
        self.pieces.push(Piece::new(at, anchors, [0; 3]));
        change(self);

        let mut rates = ClockId::ALL
            .map(|clock_id| if self.frozen[clock_id as usize] { 0 } else { self.rates[clock_id as usize].0 });
        if self.suspended {
            rates[ClockId::Monotonic as usize] = 0;
        }
        let wall = ClockId::Wall as usize;
        let own = rates[wall];
        let slews = if self.frozen[wall] { &[][..] } else { &self.slews[..] };
        for (done, slew) in slews.iter().enumerate() {
            let together: i128 = slews[done..].iter().map(|slew| i128::from(slew.rate)).sum();
            let rate = (i128::from(own) + together).clamp(i128::from(i64::MIN), i128::from(i64::MAX));
            rates[wall] = rate as i64;
            let last = self.pieces.last_mut().expect("pushed above");
            last.rates = rates;
            let mut anchors = ClockId::ALL.map(|clock_id| last.exact(clock_id, slew.until));
            anchors[wall] += slew.rest;
            if last.from == slew.until {
                last.set_anchors(anchors);
            } else {
                self.pieces.push(Piece::new(slew.until, anchors, rates));
            }
        }
        rates[wall] = own;
        self.pieces.last_mut().expect("pushed above").rates = rates;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Fault {
        Step(i64),
        Slew(i64, u64),
        Rate(usize, i64),
        Freeze(usize, bool),
        Suspend(bool),
    }

    fn fault() -> impl Strategy<Value = Fault> {
        prop_oneof![
            (-5_000_000_000..5_000_000_000i64).prop_map(Fault::Step),
            (-1_000_000..1_000_000i64, 0..10_000_000_000u64).prop_map(|(by, over)| Fault::Slew(by, over)),
            (0..3usize, -1_000_000..1_000_000i64).prop_map(|(clock_id, ppm)| Fault::Rate(clock_id, ppm)),
            (0..3usize, any::<bool>()).prop_map(|(clock_id, frozen)| Fault::Freeze(clock_id, frozen)),
            any::<bool>().prop_map(Fault::Suspend),
        ]
    }

    /// Generates faults, each with its distance from the previous one in nanoseconds.
    fn faults() -> impl Strategy<Value = Vec<(i64, Fault)>> {
        prop::collection::vec((0..3_000_000_000i64, fault()), 0..8)
    }

    fn start() -> Clock {
        Clock::new(Wall::from_secs(1_704_067_200), Monotonic::from_secs(5), Boottime::from_secs(7))
    }

    fn apply(clock: &mut Clock, at: True, fault: &Fault) {
        match *fault {
            Fault::Step(by) => clock.step(at, by),
            Fault::Slew(by, over) => clock.slew(at, by, Duration::from_nanos(over)),
            Fault::Rate(clock_id, ppm) => clock.set_rate(at, &[ClockId::ALL[clock_id]], Rate::ppm(ppm)),
            Fault::Freeze(clock_id, frozen) => clock.freeze(at, &[ClockId::ALL[clock_id]], frozen),
            Fault::Suspend(suspended) => clock.suspend(at, suspended),
        }
    }

    fn build(faults: &[(i64, Fault)]) -> (Clock, True) {
        let (mut clock, mut at) = (start(), True::ZERO);
        for (gap, fault) in faults {
            at = True::from_nanos(at.as_nanos() + gap);
            apply(&mut clock, at, fault);
        }
        (clock, at)
    }

    /// Generates an instant in the time that the faults span, or somewhat later.
    fn instant() -> impl Strategy<Value = True> {
        (0..40_000_000_000i64).prop_map(True::from_nanos)
    }

    fn nanos(clock: &Clock, clock_id: ClockId, at: True) -> i64 {
        let reading = clock.read(at);
        match clock_id {
            ClockId::Wall => reading.wall.as_nanos(),
            ClockId::Monotonic => reading.monotonic.as_nanos(),
            ClockId::Boottime => reading.boottime.as_nanos(),
        }
    }

    proptest! {
        #[test]
        fn monotonic_and_boottime_never_go_back(faults in faults(), a in instant(), b in instant()) {
            let (clock, _) = build(&faults);
            let (early, late) = (a.min(b), a.max(b));
            prop_assert!(clock.monotonic(early) <= clock.monotonic(late));
            prop_assert!(clock.boottime(early) <= clock.boottime(late));
        }

        #[test]
        fn the_wall_clock_goes_back_only_when_it_is_set_back(faults in faults(), a in instant(), b in instant()) {
            let back = |fault: &Fault| matches!(fault, Fault::Step(by) | Fault::Slew(by, _) if *by < 0);
            let forward: Vec<_> = faults.into_iter().filter(|(_, fault)| !back(fault)).collect();
            let (clock, _) = build(&forward);
            prop_assert!(clock.wall(a.min(b)) <= clock.wall(a.max(b)));
        }

        #[test]
        fn the_inverse_is_exact(faults in faults(), from in instant(), ahead in 0..20_000_000_000i64, clock_id in 0..3usize) {
            let (clock, _) = build(&faults);
            let clock_id = ClockId::ALL[clock_id];
            let target = nanos(&clock, clock_id, from) + ahead;
            match clock.first_true(clock_id, target, from) {
                Some(at) => {
                    prop_assert!(at >= from);
                    prop_assert!(nanos(&clock, clock_id, at) >= target);
                    let before = True::from_nanos(at.as_nanos() - 1);
                    prop_assert!(at == from || nanos(&clock, clock_id, before) < target);
                }
                None => prop_assert!(nanos(&clock, clock_id, True::from_secs(1_000_000)) < target),
            }
        }

        #[test]
        fn cutting_a_piece_in_two_changes_no_reading(faults in faults(), cuts in prop::collection::vec(0..9_000_000_000i64, 1..5), at in instant()) {
            let (clock, last) = build(&faults);
            let mut cut = clock.clone();
            let mut when = last;
            for gap in cuts {
                when = True::from_nanos(when.as_nanos() + gap);
                cut.freeze(when, &[], true);
            }
            prop_assert_eq!(clock.read(at), cut.read(at));
        }

        #[test]
        fn a_fault_changes_nothing_before_it(faults in faults(), fault in fault(), gap in 1..9_000_000_000i64, at in instant()) {
            let (clock, last) = build(&faults);
            let when = True::from_nanos(last.as_nanos() + gap);
            let mut changed = clock.clone();
            apply(&mut changed, when, &fault);
            prop_assert_eq!(clock.read(at.min(True::from_nanos(when.as_nanos() - 1))), changed.read(at.min(True::from_nanos(when.as_nanos() - 1))));
            // At its own instant a fault moves no clock, except that a step moves the wall clock.
            prop_assert_eq!(clock.monotonic(when), changed.monotonic(when));
            prop_assert_eq!(clock.boottime(when), changed.boottime(when));
            let step = match fault { Fault::Step(by) | Fault::Slew(by, 0) => by, _ => 0 };
            prop_assert_eq!(clock.wall(when).as_nanos() + step, changed.wall(when).as_nanos());
        }

        #[test]
        fn a_slew_comes_to_exactly_what_was_asked(by in -2_000_000_000..2_000_000_000i64, over in 1..20_000_000_000u64) {
            let mut clock = start();
            clock.slew(True::from_secs(1), by, Duration::from_nanos(over));
            let end = True::from_secs(1) + Duration::from_nanos(over);
            prop_assert_eq!(clock.wall(end).as_nanos(), start().wall(end).as_nanos() + by);
            prop_assert_eq!(clock.monotonic(end), start().monotonic(end));
        }
    }

    #[test]
    fn each_fault_moves_the_clocks_it_should() {
        let s = 1_000_000_000;
        let at = True::from_secs(10);
        // Each row: a fault at true 10 s, and its effect on wall, monotonic and boottime at true 20
        // s.
        type Row = (&'static str, fn(&mut Clock, True), [i64; 3]);
        let rows: [Row; 8] = [
            ("step back", |c, at| c.step(at, -3_000_000_000), [-3 * s, 0, 0]),
            ("slew, half done", |c, at| c.slew(at, 2_000_000_000, Duration::from_secs(20)), [s, 0, 0]),
            ("fast by 100 ppm", |c, at| c.set_rate(at, &ClockId::ALL, Rate::ppm(100)), [1_000_000; 3]),
            (
                "twice as fast",
                |c, at| c.set_rate(at, &[ClockId::Monotonic], Rate::factor(2.0)),
                [0, 10 * s, 0],
            ),
            (
                "standing still",
                |c, at| c.set_rate(at, &[ClockId::Wall], Rate::ppm(-2_000_000)),
                [-10 * s, 0, 0],
            ),
            ("frozen", |c, at| c.freeze(at, &[ClockId::Wall], true), [-10 * s, 0, 0]),
            ("suspended", |c, at| c.suspend(at, true), [0, -10 * s, 0]),
            (
                "suspended for 4 s",
                |c, at| {
                    c.suspend(at, true);
                    c.suspend(at + Duration::from_secs(4), false);
                },
                [0, -4 * s, 0],
            ),
        ];
        for (name, fault, expected) in rows {
            let (plain, mut clock) = (start(), start());
            fault(&mut clock, at);
            let end = True::from_secs(20);
            let moved =
                ClockId::ALL.map(|clock_id| nanos(&clock, clock_id, end) - nanos(&plain, clock_id, end));
            assert_eq!(moved, expected, "{name}");
        }
    }

    #[test]
    fn segments_say_what_the_clock_shows_where_they_begin() {
        let mut clock = start();
        clock.set_rate(True::from_nanos(3), &ClockId::ALL, Rate::factor(0.5));
        clock.slew(True::from_secs(1), 1_000, Duration::from_secs(1));
        let segments: Vec<_> = clock.segments().collect();
        let froms: Vec<_> = segments.iter().map(|segment| segment.from.as_nanos()).collect();
        assert_eq!(froms, [0, 3, 1_000_000_000, 2_000_000_000]);
        assert_eq!(segments[2].rates, [500_001_000, 500_000_000, 500_000_000]);
        for segment in segments {
            assert_eq!(segment.readings, ClockId::ALL.map(|clock_id| nanos(&clock, clock_id, segment.from)));
        }
    }

    #[test]
    fn slews_that_overlap_add_up() {
        let mut clock = start();
        let slews = [(0, 10, 10), (5, 100, 10), (6, -7, 2), (7, 3, 1), (7, 30, 8)];
        for (from, by, over) in slews {
            clock.slew(True::from_secs(from), by, Duration::from_secs(over));
        }
        // At 8 s: eight of the ten, thirty of the hundred, all of the two short slews, an eighth of
        // the thirty.
        for (at, moved) in [(5, 5), (8, 8 + 30 - 7 + 3 + 3), (100, 10 + 100 - 7 + 3 + 30)] {
            let at = True::from_secs(at);
            assert_eq!(clock.wall(at).as_nanos(), start().wall(at).as_nanos() + moved, "at {at}");
            assert_eq!(clock.monotonic(at), start().monotonic(at));
        }
    }

    #[test]
    fn errors_of_rates_add_up_and_no_clock_runs_backwards() {
        let rows = [(1.1, 1.2, 1.3), (1.5, 0.5, 1.0), (0.4, 0.4, 0.0), (1.0, 0.25, 0.25)];
        for (one, other, both) in rows {
            assert_eq!(Rate::factor(one).and(Rate::factor(other)), Rate::factor(both), "{one} and {other}");
        }
    }

    /// The clock would show the target at 5 s, but is set back by 2 s at that instant: it shows the
    /// target at 7 s.
    #[test]
    fn a_reading_is_not_reached_in_the_instant_in_which_the_clock_is_set_back() {
        let mut clock = start();
        let second = |seconds: i64| True::from_nanos(seconds * 1_000_000_000);
        let target = clock.wall(second(5)).as_nanos();
        clock.step(second(5), -2_000_000_000);
        assert_eq!(clock.first_true(ClockId::Wall, target, True::ZERO), Some(second(7)));
    }
}
