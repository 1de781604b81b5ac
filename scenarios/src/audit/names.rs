//! Commands, owners and times in words. Values are hashed unless the user asks for them.

use std::time::Duration;

use lockstorm_sim::script::sha1_hex;

use super::command::{Call, Command, Verb};
use crate::judge::{checker::evidence::words, digest::sha256};

/// The longest key that is shown whole.
const KEY_MAX: usize = 200;

/// The most words of a command that are shown.
const WORDS_MAX: usize = 12;

/// The part of a key that ends with a reader's hold; the owner is before it, in two parts.
const READ_HOLD: &str = ":rwlock_timeout";

/// Options of commands, which are no values.
const OPTIONS: &[&[u8]] = &[
    b"NX", b"XX", b"GT", b"LT", b"PX", b"EX", b"PXAT", b"EXAT", b"GET", b"KEEPTTL", b"IFEQ", b"ASYNC",
    b"SYNC",
];

/// The way to show values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Names {
    /// Set if values are shown as they are.
    pub(super) reveal: bool,
}

impl Names {
    /// Returns a value: the first eight digits of its SHA-256, or the value itself.
    pub(super) fn value(self, value: &str) -> String {
        if self.reveal { printable(value.as_bytes()) } else { format!("#{}", &sha256(value)[..8]) }
    }

    /// Returns a command with its keys, numbers and options, and its values hashed.
    pub(super) fn command(self, command: &Command) -> String {
        // A script may have thousands of keys. Only the first `WORDS_MAX` words are shown, so later
        // keys do not matter.
        let keys = command.keys();
        let keys = &keys[..keys.len().min(WORDS_MAX)];
        let mut words = vec![command.name()];
        for (at, word) in command.words.iter().enumerate().skip(1).take(WORDS_MAX) {
            let is_text = at == 1 && command.verb.calls_script();
            // A token may be a number, too.
            let is_token = at == 2 && matches!(command.verb, Verb::Set | Verb::SetNx);
            let is_number = !is_token && word.len() <= 18 && word.iter().all(|byte| byte.is_ascii_digit());
            let is_option = OPTIONS.iter().any(|option| word.eq_ignore_ascii_case(option));
            words.push(if is_text {
                script(word)
            } else if keys.contains(word) {
                self.key(word)
            } else if is_number || is_option {
                key(word)
            } else {
                self.value(&String::from_utf8_lossy(word))
            });
        }
        if command.words.len() > WORDS_MAX + 1 {
            words.push("..".to_owned());
        }
        words.join(" ")
    }

    /// Returns a key. One that ends with a reader's hold has the name of its owner in it, which is
    /// hashed.
    fn key(self, word: &[u8]) -> String {
        let text = String::from_utf8_lossy(word);
        let Some((before, after)) = text.split_once(READ_HOLD).filter(|_| !self.reveal) else {
            return key(word);
        };
        let Some((at, _)) = before.rmatch_indices(':').nth(1) else { return key(word) };
        let (name, owner) = (&before[..at], self.value(&before[at + 1..]));
        key(format!("{name}:{owner}{READ_HOLD}{after}").as_bytes())
    }

    /// Returns the command of a call with its sender.
    pub(super) fn call(self, call: &Call) -> String {
        self.command(&call.command)
    }
}

/// Returns a script's text or digest in short.
fn script(word: &[u8]) -> String {
    if word.len() == 40 && word.iter().all(u8::is_ascii_hexdigit) {
        return String::from_utf8_lossy(&word[..8]).into_owned();
    }
    if word.len() <= 40 {
        return printable(word);
    }
    let hash = sha1_hex(word);
    format!("<script {}>", &hash[..8])
}

/// Returns a key in printable characters, shortened if it is long.
pub(super) fn key(key: &[u8]) -> String {
    if key.len() <= KEY_MAX {
        return printable(key);
    }
    format!("{}..", printable(&key[..KEY_MAX]))
}

/// Returns text without control characters, which a terminal would execute.
fn printable(bytes: &[u8]) -> String {
    let shown = |char: char| match char.is_control() {
        true => char.escape_default().to_string(),
        false => char.to_string(),
    };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

/// Returns a time in UTC: `2026-11-21 11:10:51.123456`.
pub(super) fn date(at_us: i64) -> String {
    let secs = at_us.div_euclid(1_000_000);
    let (days, second) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let us = at_us.rem_euclid(1_000_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{us:06}")
}

/// Returns a time in UTC, or says that it is unknown: an append-only file without timestamps has
/// zero in its place.
pub(super) fn moment(at_us: i64) -> String {
    if at_us == 0 { "time unknown".to_owned() } else { date(at_us) }
}

/// Returns year, month and day of a number of days since 1970, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years that begin in March have the leap day at their end.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + 400 * era + i64::from(month <= 2), month, day)
}

/// Formats a length in microseconds: `950 µs`, `1.500 s`, `2 h 1 min`.
pub(super) fn length(us: i64) -> String {
    let us = us.unsigned_abs();
    match us {
        0..60_000_000 => words::length(Duration::from_micros(us)),
        60_000_000..3_600_000_000 => format!("{} min {} s", us / 60_000_000, us / 1_000_000 % 60),
        _ => format!("{} h {} min", us / 3_600_000_000, us / 60_000_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::capture::{From, Line};

    fn command(text: &str) -> Command {
        let line = Line { at_us: 0, db: 0, from: From::Script, command: text.as_bytes() };
        Command::of(Verb::of(line.name()).expect("a verb"), &line)
    }

    #[test]
    fn values_are_hashed_and_keys_numbers_and_options_are_not() {
        let rows = [
            (r#""set" "a" "secret" "NX" "px" "30000""#, "SET a #2bb80d53 NX px 30000"),
            (
                r#""EVALSHA" "149c5a8bf18676fd99e9e6e24923bd64d9b62f94" "1" "a" "secret""#,
                "EVALSHA 149c5a8b 1 a #2bb80d53",
            ),
            (r#""setnx" "a" "12345""#, "SETNX a #5994471a"),
            (
                r#""EVALSHA" "149c5a8bf18676fd99e9e6e24923bd64d9b62f94" "1" "{a}:id-1:5:rwlock_timeout""#,
                "EVALSHA 149c5a8b 1 {a}:#f10221b2:rwlock_timeout",
            ),
            (r#""DEL" "a\n" "b""#, r"DEL a\n b"),
        ];
        for (text, expected) in rows {
            assert_eq!(Names { reveal: false }.command(&command(text)), expected);
        }
        let revealed = Names { reveal: true }.command(&command(r#""set" "a" "secret" "NX""#));
        assert_eq!(revealed, "SET a secret NX");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ms, expected) in [
            (0, "1970-01-01 00:00:00.000000"),
            (951_827_696_789, "2000-02-29 12:34:56.789000"),
            (1_795_259_451_123, "2026-11-21 11:10:51.123000"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000000"),
            (-1, "1969-12-31 23:59:59.999000"),
        ] {
            assert_eq!(date(ms * 1_000), expected);
        }
    }

    #[test]
    fn lengths_have_their_units() {
        let rows = [
            (12, "12 µs"),
            (1_500, "1.5 ms"),
            (250_000, "250 ms"),
            (1_500_000, "1.500 s"),
            (90_000_000, "1 min 30 s"),
            (7_260_000_000, "2 h 1 min"),
        ];
        for (us, expected) in rows {
            assert_eq!(length(us), expected);
        }
    }
}
