//! `notify-keyspace-events`: the classes of keyspace events that a node publishes.

use std::fmt;

/// The keyspace events that are published (`notify-keyspace-events`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notify {
    letters: u32,
}

impl Notify {
    /// Every letter, in printing order.
    const LETTERS: &'static [u8] = b"g$lshzxetdnKEm";
    /// The classes that `A` stands for.
    const ALL: &'static [u8] = b"g$lshzxetd";

    /// Parses letters; `None` if any is unknown.
    pub fn parse(text: &str) -> Option<Notify> {
        let mut notify = Notify::default();
        for letter in text.bytes() {
            let letters = if letter == b'A' { Notify::ALL } else { &[letter][..] };
            for letter in letters {
                notify.letters |= 1 << Notify::LETTERS.iter().position(|known| known == letter)?;
            }
        }
        Some(notify)
    }

    /// Returns every letter that is set; `Display` abbreviates them as CONFIG GET does.
    pub fn in_full(self) -> String {
        Notify::LETTERS
            .iter()
            .filter(|letter| self.wants(**letter))
            .map(|letter| char::from(*letter))
            .collect()
    }

    /// Returns true if a letter is set.
    pub fn wants(self, letter: u8) -> bool {
        let at = Notify::LETTERS.iter().position(|known| *known == letter);
        at.is_some_and(|at| self.letters & 1 << at != 0)
    }
}

impl fmt::Display for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Notify::ALL.iter().all(|letter| self.wants(*letter));
        if all {
            f.write_str("A")?;
        }
        for &letter in Notify::LETTERS {
            // The server also omits `n` when it writes `A`.
            let covered = all && (Notify::ALL.contains(&letter) || letter == b'n');
            if self.wants(letter) && !covered {
                write!(f, "{}", char::from(letter))?;
            }
        }
        Ok(())
    }
}
