//! The scripts of a capture: their digests, the libraries that they belong to, and their purpose.
//!
//! A script that does nothing to its lock shows only reads in MONITOR. Its purpose then follows
//! from its text, or from the commands of its other calls.

use std::collections::BTreeMap;

use lockstorm_sim::script::sha1_hex;

use super::{
    acts::Acts,
    command::{Call, Command, Verb},
    owners::is_redisson_owner,
};

/// The most scripts that are remembered. An application that builds scripts from values has more.
const SCRIPTS_MAX: usize = 10_000;

/// The most bytes of texts that are remembered with their digests.
const TEXTS_MAX: usize = 4 << 20;

/// The scripts of lock libraries that their keys and texts do not identify, by digest.
const LIBRARIES: &[(&str, &str)] = &[
    ("c3f8721cbb97f72bc19e972846bd7aaf91901658", "redis-py"),
    ("96da70f7716f27d278a5218544df37fd8b0a5e4c", "node-redlock"),
    ("e4612211c9f8f51c257e26e056b0a654b3187242", "node-redlock"),
    ("e950836ed1e694540c503ef9972b8de518044d3b", "redsync"),
    ("7157921a7cc7cfba979acf6d63f073151df17d12", "redis-semaphore"),
];

/// The digest of the script by which `lockstorm-client` acquires. Its owners have names as those of
/// Redisson, except in the simulated world, where hosts have names in place of UUIDs.
const ACQUIRE: &str = "e2b3d9a4aef218717f37d8f1cb62715f1aff3a2b";

/// The purpose of a script for one lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Acquire,
    Renew,
    Release,
    Unknown,
}

/// The commands that a script can call, from its text or from its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Parts {
    gets: bool,
    sets: bool,
    looks: bool,
    deletes: bool,
    expires: bool,
    counts: bool,
}

impl Parts {
    /// Returns the commands in a script's text.
    fn of_text(text: &[u8]) -> Parts {
        let text = text.to_ascii_lowercase();
        let calls = |names: &[&str]| {
            names.iter().any(|name| {
                let quoted = [format!("'{name}'"), format!("\"{name}\"")];
                quoted.iter().any(|name| text.windows(name.len()).any(|part| part == name.as_bytes()))
            })
        };
        Parts {
            gets: calls(&["get"]),
            sets: calls(&["set", "setnx", "psetex", "setex"]),
            looks: calls(&["exists"]),
            deletes: calls(&["del", "unlink"]),
            expires: calls(&["pexpire", "expire", "pexpireat", "expireat"]),
            counts: calls(&["hincrby"]),
        }
    }

    fn add(&mut self, command: &Command) {
        match command.verb {
            Verb::Set | Verb::SetNx => self.sets = true,
            Verb::Del => self.deletes = true,
            Verb::Expire => self.expires = true,
            Verb::Hincrby => self.counts = true,
            Verb::Change if owns(command, false) => self.counts = true,
            Verb::Read if command.word(0).eq_ignore_ascii_case(b"get") => self.gets = true,
            Verb::Read if command.word(0).eq_ignore_ascii_case(b"exists") => self.looks = true,
            _ => {}
        }
    }

    fn purpose(self) -> Purpose {
        match self {
            // Redisson's release may leave a level, and then sets the expiry of the rest.
            Parts { deletes: true, .. } => Purpose::Release,
            Parts { counts: true, .. } | Parts { sets: true, looks: true, .. } => Purpose::Acquire,
            // Spring's script renews a lock that its owner has, and sets it otherwise.
            Parts { sets: true, gets: true, expires: true, .. } => Purpose::Acquire,
            // node-redlock extends a lock by writing its own value again.
            Parts { sets: true, gets: true, .. } => Purpose::Renew,
            Parts { sets: true, .. } => Purpose::Acquire,
            Parts { expires: true, .. } => Purpose::Renew,
            _ => Purpose::Unknown,
        }
    }
}

/// The scripts that a capture has shown.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    parts: BTreeMap<Box<[u8]>, Parts>,
    /// The digest of each text that was sent.
    digests: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// The bytes of these texts.
    bytes: usize,
}

impl Scripts {
    /// Learns a script's text from SCRIPT LOAD, and the commands of a call.
    pub(super) fn learn(&mut self, call: &Call) {
        match call.command.verb {
            Verb::Script if call.command.word(1).eq_ignore_ascii_case(b"load") => {
                self.digest_of_text(call.command.word(2));
            }
            verb if verb.calls_script() => {
                let digest = self.digest(&call.command);
                if self.parts.len() < SCRIPTS_MAX || self.parts.contains_key(&digest) {
                    let parts = self.parts.entry(digest).or_default();
                    call.script.iter().for_each(|command| parts.add(command));
                }
            }
            _ => {}
        }
    }

    /// Returns the digest of a call's script, or the name of its function.
    pub(super) fn digest(&mut self, command: &Command) -> Box<[u8]> {
        match command.verb {
            Verb::Eval => self.digest_of_text(command.word(1)),
            _ => command.word(1).to_ascii_lowercase().into(),
        }
    }

    fn digest_of_text(&mut self, text: &[u8]) -> Box<[u8]> {
        if let Some(digest) = self.digests.get(text) {
            return digest.clone();
        }
        let digest: Box<[u8]> = sha1_hex(text).into_bytes().into();
        if self.bytes + text.len() <= TEXTS_MAX {
            self.bytes += text.len();
            self.digests.insert(text.into(), digest.clone());
        }
        if self.parts.len() < SCRIPTS_MAX {
            self.parts.insert(digest.clone(), Parts::of_text(text));
        }
        digest
    }

    /// Returns the script of a call, or for a command without one a script without a digest.
    pub(super) fn script(&mut self, acts: &Acts<'_>) -> Script {
        let command = &acts.call.command;
        if !command.verb.calls_script() {
            let is_shedlock = command.creates() && command.word(2).starts_with(b"ADDED:");
            return Script { library: is_shedlock.then_some("ShedLock"), ..Script::default() };
        }
        let digest = self.digest(command);
        let known = || LIBRARIES.iter().find(|(known, _)| known.as_bytes() == &*digest);
        let library = match acts.has_prefix(b"redisson_") {
            true => Some("Redisson"),
            false => known().map(|(_, library)| *library),
        };
        let is_acquire = acts.names_prefix(b"redisson_lock_") || *digest == *ACQUIRE.as_bytes();
        Script { digest, library, is_acquire }
    }

    /// Returns the purpose of a call for a lock: by `own`, its commands on the lock's key, or else
    /// by its script.
    pub(super) fn purpose(&self, script: &Script, own: &[&Command]) -> Purpose {
        let mut renews = false;
        for command in own {
            match command.verb {
                Verb::Hincrby if command.word(3).starts_with(b"-") => return Purpose::Release,
                Verb::Hincrby => return Purpose::Acquire,
                Verb::Change if owns(command, false) => return Purpose::Acquire,
                Verb::Del => return Purpose::Release,
                Verb::Set | Verb::SetNx if command.creates() => return Purpose::Acquire,
                Verb::Set if command.has_option("IFEQ") => return Purpose::Renew,
                Verb::Change if is_delifeq(command) => return Purpose::Release,
                Verb::Expire => renews = true,
                _ => {}
            }
        }
        if renews {
            return Purpose::Renew;
        }
        let parts = self.parts.get(&script.digest).filter(|_| !script.digest.is_empty());
        parts.map_or(Purpose::Unknown, |parts| parts.purpose())
    }
}

/// The script of a call.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The digest, or the name of a function; empty for a command without a script.
    pub(super) digest: Box<[u8]>,
    /// The library that the call belongs to, if it is known.
    pub(super) library: Option<&'static str>,
    /// Set if it acquires a lock of `lockstorm-client` or Redisson, by its text or by the names of
    /// its keys, whatever the name of its owner.
    pub(super) is_acquire: bool,
}

/// Returns true for a command that gives a hash an owner: HINCRBY, or HSET as in fair locks.
/// `is_any` accepts owners of any name.
pub(super) fn owns(command: &Command, is_any: bool) -> bool {
    let sets = command.verb == Verb::Hincrby || command.word(0).eq_ignore_ascii_case(b"hset");
    sets && (is_any || is_redisson_owner(command.word(2)))
}

/// Returns true for Valkey's DELIFEQ, which deletes a key that has a given value.
fn is_delifeq(command: &Command) -> bool {
    command.word(0).eq_ignore_ascii_case(b"delifeq")
}

/// Returns the owner's name that a call has for a lock: the field of a hash, or the argument of a
/// script that is one of the `known` owners, or else its first argument that is no number. `own`
/// are the commands on the lock's key.
pub(super) fn owner<'k>(
    acts: &Acts<'_>,
    own: &[&Command],
    known: impl Iterator<Item = &'k str>,
) -> Option<String> {
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let is_field = |one: &&&Command| matches!(one.verb, Verb::Hexists | Verb::Hincrby) || owns(one, false);
    if let Some(field) = own.iter().find(is_field) {
        return Some(text(field.word(2)));
    }
    if let Some(set) = own.iter().find(|one| matches!(one.verb, Verb::Set | Verb::SetNx)) {
        return Some(text(set.word(2)));
    }
    let command = &acts.call.command;
    if !command.verb.calls_script() {
        return is_delifeq(command).then(|| text(command.word(2)));
    }
    // A script that changes the key and reads nothing compares nothing.
    if own.first().is_some_and(|first| first.verb.changes()) {
        return None;
    }
    acts.owner(known)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::audit::capture::{From, Line};

    fn line(text: &str) -> Line<'_> {
        Line { at_us: 0, db: 0, from: From::Client(b"10.0.0.1:1"), command: text.as_bytes() }
    }

    fn call(lines: &[&str]) -> Rc<Call> {
        let first = line(lines[0]);
        let mut call = Call::new(1, &first, Verb::of(first.name()).expect("a verb"));
        for text in &lines[1..] {
            call.push(Verb::of(line(text).name()).expect("a verb"), &line(text));
        }
        Rc::new(call)
    }

    /// Returns the purpose of a call for the key `a`.
    fn purpose(scripts: &mut Scripts, call: &Rc<Call>) -> Purpose {
        let acts = Acts::of(call);
        let script = scripts.script(&acts);
        scripts.purpose(&script, &acts.on(0, b"a"))
    }

    /// Returns the owner that a call has for the key `a`.
    fn owner(call: &Rc<Call>, known: &[&str]) -> Option<String> {
        let acts = Acts::of(call);
        super::owner(&acts, &acts.on(0, b"a"), known.iter().copied())
    }

    #[test]
    fn a_script_without_effect_has_the_purpose_of_its_text() {
        let rows = [
            (
                "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end",
                Purpose::Release,
            ),
            (
                "if redis.call('get',KEYS[1]) == ARGV[1] then redis.call(\\\"PEXPIRE\\\",KEYS[1],1) end",
                Purpose::Renew,
            ),
            (
                "if redis.call('exists',KEYS[1]) == 0 then redis.call('set',KEYS[1],ARGV[1]) end",
                Purpose::Acquire,
            ),
            ("return 1", Purpose::Unknown),
        ];
        for (text, expected) in rows {
            let call = call(&[&format!("\"EVAL\" \"{text}\" \"1\" \"a\" \"t\""), r#""get" "a""#]);
            let mut scripts = Scripts::default();
            assert_eq!(purpose(&mut scripts, &call), expected, "{text}");
        }
    }

    #[test]
    fn a_digest_has_the_purpose_of_its_other_calls() {
        let mut scripts = Scripts::default();
        let refused = call(&[r#""EVALSHA" "0F" "1" "a" "t""#, r#""get" "a""#]);
        assert_eq!(purpose(&mut scripts, &refused), Purpose::Unknown);
        scripts.learn(&call(&[r#""EVALSHA" "0f" "1" "b" "u""#, r#""get" "b""#, r#""del" "b""#]));
        assert_eq!(purpose(&mut scripts, &refused), Purpose::Release);
    }

    #[test]
    fn the_owner_is_a_field_or_an_argument() {
        let redisson = call(&[
            r#""EVALSHA" "0f" "1" "a" "30000" "id:48""#,
            r#""exists" "a""#,
            r#""hincrby" "a" "id:48" "1""#,
        ]);
        assert_eq!(owner(&redisson, &[]).as_deref(), Some("id:48"));
        let token = call(&[r#""EVALSHA" "0f" "1" "a" "500" "t""#, r#""get" "a""#]);
        assert_eq!(owner(&token, &[]).as_deref(), Some("t"));
        assert_eq!(owner(&token, &["500"]).as_deref(), Some("500"));
        let forced = call(&[r#""EVALSHA" "0f" "1" "a" "t""#, r#""del" "a""#]);
        assert_eq!(owner(&forced, &[]), None);
        assert_eq!(owner(&call(&[r#""DEL" "a""#]), &[]), None);
        assert_eq!(owner(&call(&[r#""SET" "a" "t" "NX""#]), &[]).as_deref(), Some("t"));
    }

    #[test]
    fn an_owner_of_redisson_is_no_mere_counter() {
        let rows = [
            ("c8c7c6c1-cdd6-4784-aa85-6361cc9ef870:48", true),
            ("83a1886e-ce87-4bb8-8307-7f6e5d4cc596:-8869539123815435447", true),
            ("c8c7c6c1-cdd6-4784-aa85-6361cc9ef870:", false),
            ("c8c7c6c1-cdd6-4784-aa85-6361cc9ef870:48:write", false),
            ("page:home", false),
            ("", false),
        ];
        for (field, expected) in rows {
            assert_eq!(is_redisson_owner(field.as_bytes()), expected, "{field}");
        }
    }

    #[test]
    fn the_acquisition_of_the_client_is_known_by_its_script() {
        let text = include_str!("../../../client/src/locks/reentrant/acquire.lua");
        assert_eq!(sha1_hex(text.as_bytes()), ACQUIRE);
        let mut scripts = Scripts::default();
        let by_digest = call(&[&format!("\"EVALSHA\" \"{ACQUIRE}\" \"1\" \"a\" \"30000\" \"c1:1\"")]);
        assert!(scripts.script(&Acts::of(&by_digest)).is_acquire);
        let fenced = call(&[r#""EVALSHA" "0f" "2" "a" "redisson_lock_token:{a}" "30000" "c1:1""#]);
        assert!(scripts.script(&Acts::of(&fenced)).is_acquire);
        let other = call(&[r#""EVALSHA" "0f" "1" "a" "30000" "c1:1""#]);
        assert!(!scripts.script(&Acts::of(&other)).is_acquire);
    }

    #[test]
    fn the_digest_of_a_text_is_that_of_evalsha() {
        let mut scripts = Scripts::default();
        let text = call(&[r#""EVAL" "return 1" "0""#]);
        assert_eq!(&*scripts.digest(&text.command), b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    }
}
