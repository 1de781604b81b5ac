//! The definition of L3. A critical section lasts from the beginning of a hold to the arrival of
//! the last write that belongs to it. The layer is violated iff critical sections of two owners
//! have an instant in common, or an owner writes that never had the lock. An instant at which one
//! section ends and the other begins does not count. Several permits of a semaphore may be out, so
//! its critical sections may overlap. In real time a result is undecided if it would differ with
//! one of the two earlier or later by 100 ms.

use std::time::Duration;

use lockstorm::judge::history::{History, Mode};
use lockstorm_world::time::True;

use crate::{
    Answer,
    past::{Clashes, Stretch, excludes, given_up, is_certain},
    section::{Write, tested, writes},
};

pub(crate) fn judge(history: &History) -> Answer {
    let writes = writes(history);
    let mut sections: Vec<Stretch> = Vec::new();
    for write in writes.iter().filter(|write| excludes(history, write.lock)) {
        let Some(from) = write.hold else { continue };
        let same =
            |other: &&Write| (other.lock, other.owner, other.hold) == (write.lock, write.owner, write.hold);
        let until = writes.iter().filter(same).map(|other| other.arrived).max().unwrap_or(write.arrived);
        let (lock, owner, mode) = (write.lock, write.owner, Mode::Exclusive);
        let section = Stretch { lock, owner, mode, from, until };
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    let mut clashes = Clashes::among(history, &sections);
    // A grant and the last write of its hold may be one instant, in the middle of another section.
    for one in sections.iter().filter(|one| one.from == one.until) {
        for other in sections.iter().filter(|other| other.lock == one.lock && other.owner != one.owner) {
            let is_around = |at: True| other.from < at && at < other.until;
            if is_around(one.from) {
                let is_certain = is_certain(history, |shift| is_around(one.moved(shift).from));
                clashes.add(Duration::ZERO, is_certain);
            }
        }
    }
    let strangers = writes.iter().any(|write| write.hold.is_none());
    let word = match !clashes.lengths.is_empty() || strangers {
        true => "violated",
        false if clashes.unsure > 0 || given_up(history) || !tested(history, &writes) => "undecided",
        false => "holds",
    };
    Answer::of(word)
        .time("overlap", clashes.longest())
        .count("times", clashes.lengths.len())
        .count("writes", writes.len())
}
