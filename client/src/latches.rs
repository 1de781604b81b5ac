//! The latches of releases whose final reply has come. The next release deletes them, so that
//! acquiring and releasing a lock takes two commands. The latches of the last releases expire.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::env::Monotonic;
use crate::mutex::locked;
use crate::wire::Slot;

/// The maximum number of latches that one release deletes, so that it does not take longer.
const AT_ONCE: usize = 16;

/// The maximum number of latches that a client remembers. Further ones expire.
const MOST: usize = 4096;

/// The latches of one client that are not needed any more.
#[derive(Default)]
pub(crate) struct SpentLatches(Mutex<Spent>);

#[derive(Default)]
struct Spent {
    /// The latches with the time at which each has expired. The slot represents all slots that may
    /// share a script.
    by_slot: BTreeMap<Slot, Vec<(String, Monotonic)>>,
    count: usize,
    /// The time at which the first remembered latch expires, as of the last check of all of them.
    first_end: Option<Monotonic>,
}

impl Spent {
    /// Removes expired latches from all slots. Otherwise a slot without further releases would keep
    /// its latches forever.
    fn forget_ended(&mut self, now: Monotonic) {
        if self.first_end.is_some_and(|end| end > now) {
            return;
        }
        self.by_slot.retain(|_, of_slot| {
            of_slot.retain(|(_, ends)| *ends > now);
            !of_slot.is_empty()
        });
        self.count = self.by_slot.values().map(Vec::len).sum();
        self.first_end = self.by_slot.values().flatten().map(|(_, ends)| *ends).min();
    }
}

impl SpentLatches {
    /// Adds `latch`, which is not needed any more. It was set no later than `now`, with the TTL
    /// `life`.
    pub(crate) fn add(&self, slot: Slot, latch: String, now: Monotonic, life: Duration) {
        let mut spent = locked(&self.0);
        if spent.count == MOST {
            spent.forget_ended(now);
        }
        if spent.count < MOST {
            spent.first_end = spent.first_end.map(|first| first.min(now + life));
            spent.by_slot.entry(slot).or_default().push((latch, now + life));
            spent.count += 1;
        }
    }

    /// Takes out latches to delete with the next script of `slot`.
    pub(crate) fn take(&self, slot: Slot, now: Monotonic) -> Vec<String> {
        let mut spent = locked(&self.0);
        let Some(of_slot) = spent.by_slot.get_mut(&slot) else { return Vec::new() };
        let before = of_slot.len();
        of_slot.retain(|(_, ends)| *ends > now);
        let kept = of_slot.len().saturating_sub(AT_ONCE);
        let taken: Vec<_> = of_slot.drain(kept..).map(|(latch, _)| latch).collect();
        let gone = before - of_slot.len();
        if of_slot.is_empty() {
            spent.by_slot.remove(&slot);
        }
        spent.count -= gone;
        taken
    }

    /// Returns a slot that has latches.
    pub(crate) fn any_slot(&self) -> Option<Slot> {
        locked(&self.0).by_slot.keys().next().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latches_are_taken_once_by_slot_while_they_last() {
        let at = |secs| Monotonic(Duration::from_secs(secs));
        let spent = SpentLatches::default();
        let life = Duration::from_secs(20);
        spent.add(Slot(1), "old".to_owned(), at(0), life);
        spent.add(Slot(1), "new".to_owned(), at(10), life);
        spent.add(Slot(2), "other".to_owned(), at(10), life);
        assert_eq!(spent.take(Slot(1), at(20)), ["new"]);
        assert!(spent.take(Slot(1), at(20)).is_empty());
        assert_eq!(spent.any_slot(), Some(Slot(2)));
        assert_eq!(spent.take(Slot(2), at(20)), ["other"]);
        assert_eq!(spent.any_slot(), None);
    }

    /// A full store has room again for as many latches as were taken.
    #[test]
    fn what_is_taken_makes_room() {
        let spent = SpentLatches::default();
        let (now, life) = (Monotonic(Duration::ZERO), Duration::from_secs(20));
        let add = |latch: &str| spent.add(Slot(1), latch.to_owned(), now, life);
        (0..=MOST).for_each(|latch| add(&latch.to_string()));
        assert_eq!(
            spent.take(Slot(1), now).last(),
            Some(&(MOST - 1).to_string()),
            "the last one had no room"
        );
        add("new");
        assert_eq!(spent.take(Slot(1), now).last().map(String::as_str), Some("new"));
    }

    #[test]
    fn latches_that_had_ended_in_other_slots_left_no_room() {
        let at = |secs| Monotonic(Duration::from_secs(secs));
        let spent = SpentLatches::default();
        let life = Duration::from_secs(20);
        // The latches of every second slot have a longer TTL.
        for n in 0..MOST {
            let slot = u16::try_from(n).unwrap();
            let life = if n.is_multiple_of(2) { life } else { 2 * life };
            spent.add(Slot(slot), n.to_string(), at(0), life);
        }
        spent.add(Slot(9999), "too many".to_owned(), at(10), life);
        assert!(spent.take(Slot(9999), at(10)).is_empty());
        for n in 0..MOST / 2 {
            spent.add(Slot(9999), n.to_string(), at(20), life);
        }
        spent.add(Slot(9999), "too many".to_owned(), at(20), life);
        assert_eq!(spent.take(Slot(9999), at(20)).last().unwrap(), &(MOST / 2 - 1).to_string());
        assert_eq!(spent.take(Slot(1), at(20)), ["1"], "it lasts still");
        for n in 0..=MOST / 2 {
            spent.add(Slot(9999), n.to_string(), at(30), 2 * life);
        }
        spent.add(Slot(9998), "room".to_owned(), at(41), life);
        assert_eq!(spent.take(Slot(9998), at(41)), ["room"], "what lasted longer has ended as well");
    }

    #[test]
    fn there_is_a_limit_to_what_is_taken_and_to_what_is_remembered() {
        let (now, life) = (Monotonic(Duration::ZERO), Duration::from_secs(20));
        let spent = SpentLatches::default();
        for n in 0..MOST + 10 {
            spent.add(Slot(0), n.to_string(), now, life);
        }
        let mut taken = 0;
        while spent.any_slot().is_some() {
            let some = spent.take(Slot(0), now).len();
            assert!((1..=AT_ONCE).contains(&some));
            taken += some;
        }
        assert_eq!(taken, MOST);
    }
}
