//! The commands of a call by the keys that they name.
//!
//! A script may have thousands of keys and commands. Each lock of the call looks up its own
//! commands here, so that the work grows with the length of the call and not with its square.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    command::{Call, Command, Verb},
    owners::is_member,
};

/// The end of the names of keys with the deadlines of permits.
const DEADLINES: &[u8] = b":timeout";

/// A call with its commands by their keys.
#[derive(Debug)]
pub(super) struct Acts<'a> {
    pub(super) call: &'a Rc<Call>,
    /// The keys with their databases, in the order of the commands.
    order: Vec<(u32, &'a [u8])>,
    /// The places of the commands that name a key.
    places: BTreeMap<(u32, &'a [u8]), Vec<usize>>,
    /// The keys that a script is called with.
    keys: BTreeSet<&'a [u8]>,
    /// The arguments of a script after its keys, with their first places.
    args: BTreeMap<&'a [u8], usize>,
    /// The first argument that is no number.
    first_word: OnceCell<Option<usize>>,
    /// The first argument that is the name of a reader or a writer.
    member: OnceCell<Option<&'a [u8]>>,
    /// The messages that a script publishes.
    pub(super) messages: Vec<&'a Command>,
    /// Set if a script is called with a key for the deadlines of permits.
    pub(super) names_deadlines: bool,
}

impl<'a> Acts<'a> {
    pub(super) fn of(call: &'a Rc<Call>) -> Acts<'a> {
        let mut acts = Acts {
            call,
            order: Vec::new(),
            places: BTreeMap::new(),
            keys: BTreeSet::new(),
            args: BTreeMap::new(),
            first_word: OnceCell::new(),
            member: OnceCell::new(),
            messages: Vec::new(),
            names_deadlines: false,
        };
        for (at, command) in call.acts().iter().enumerate() {
            for key in command.keys() {
                let id = (command.db, &**key);
                let places = acts.places.entry(id).or_default();
                if places.is_empty() {
                    acts.order.push(id);
                }
                // DEL may name a key twice.
                if places.last() != Some(&at) {
                    places.push(at);
                }
            }
            if command.verb == Verb::Publish {
                acts.messages.push(command);
            }
        }
        if call.command.verb.calls_script() {
            acts.keys.extend(call.command.keys().iter().map(|key| &**key));
            for (at, word) in call.command.script_args().iter().enumerate() {
                acts.args.entry(&**word).or_insert(at);
            }
            acts.names_deadlines = acts.keys.iter().any(|key| key.ends_with(DEADLINES));
        }
        acts
    }

    /// Returns the keys that the commands name, with their databases, each once.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u32, &'a [u8])> {
        self.order.iter().copied()
    }

    /// Returns the commands that name a key, in their order.
    pub(super) fn on(&self, db: u32, key: &[u8]) -> Vec<&'a Command> {
        // A lookup by a shorter lifetime needs the shorter map.
        let places: &BTreeMap<(u32, &[u8]), Vec<usize>> = &self.places;
        self.commands(places.get(&(db, key)).into_iter().flatten().copied())
    }

    /// Returns the commands that name one of the keys, or a key that begins with one of the
    /// prefixes, in their order.
    pub(super) fn on_any(&self, db: u32, keys: &[&[u8]], prefixes: &[&[u8]]) -> Vec<&'a Command> {
        let all: &BTreeMap<(u32, &[u8]), Vec<usize>> = &self.places;
        let mut places: Vec<usize> = Vec::new();
        for key in keys {
            places.extend(all.get(&(db, *key)).into_iter().flatten());
        }
        for prefix in prefixes {
            let from = all.range::<(u32, &[u8]), _>((db, *prefix)..);
            let own = from.take_while(|((of, key), _)| *of == db && key.starts_with(prefix));
            places.extend(own.flat_map(|(_, own)| own));
        }
        places.sort_unstable();
        places.dedup();
        self.commands(places.into_iter())
    }

    fn commands(&self, places: impl Iterator<Item = usize>) -> Vec<&'a Command> {
        let all = self.call.acts();
        places.filter_map(|at| all.get(at)).collect()
    }

    /// Returns true if the script is called with this key.
    pub(super) fn names(&self, key: &[u8]) -> bool {
        self.keys.contains(key)
    }

    /// Returns true if the script is called with a key that begins with this.
    pub(super) fn names_prefix(&self, prefix: &[u8]) -> bool {
        let keys: &BTreeSet<&[u8]> = &self.keys;
        keys.range::<&[u8], _>(prefix..).next().is_some_and(|key| key.starts_with(prefix))
    }

    /// Returns true if a key or an argument of the script begins with this.
    pub(super) fn has_prefix(&self, prefix: &[u8]) -> bool {
        let args: &BTreeMap<&[u8], usize> = &self.args;
        let of_args =
            || args.range::<&[u8], _>(prefix..).next().is_some_and(|(word, _)| word.starts_with(prefix));
        self.names_prefix(prefix) || of_args()
    }

    /// Returns true if this is an argument of the script after its keys.
    pub(super) fn has_arg(&self, word: &[u8]) -> bool {
        self.args.contains_key(word)
    }

    /// Returns the first argument of a script that is the name of a reader or a writer.
    pub(super) fn member(&self) -> Option<&'a [u8]> {
        let find = || {
            let mut args = self.call.command.script_args().iter().map(|word| &**word);
            args.find(|word| is_member(word))
        };
        *self.member.get_or_init(find)
    }

    /// Returns the first argument of a script that is one of the known owners, or else its first
    /// argument that is no number, or else its first argument.
    pub(super) fn owner<'k>(&self, known: impl Iterator<Item = &'k str>) -> Option<String> {
        let args = self.call.command.script_args();
        let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
        let place = |owner: &str| {
            let at = self.args.get(owner.as_bytes()).copied();
            // The name of an owner is text, in which other bytes are replaced.
            let is_replaced = at.is_none() && owner.contains(char::REPLACEMENT_CHARACTER);
            let by_text = || args.iter().position(|word| text(word) == owner);
            at.or_else(|| is_replaced.then(by_text).flatten())
        };
        let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
        let first = || self.first_word.get_or_init(|| args.iter().position(|word| !is_number(word)));
        let at = known.filter_map(place).min().or_else(|| *first()).unwrap_or(0);
        args.get(at).map(|word| text(word))
    }
}

#[cfg(test)]
mod tests {
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

    fn names(commands: &[&Command]) -> Vec<String> {
        commands.iter().map(|command| command.name()).collect()
    }

    #[test]
    fn the_commands_of_a_key_keep_their_order() {
        let call = call(&[
            r#""EVALSHA" "0f" "2" "b" "{a}:1:timeout" "7" "t""#,
            r#""get" "b""#,
            r#""set" "{a}:1:timeout" "t""#,
            r#""pexpire" "b" "7""#,
            r#""del" "b" "a" "b""#,
            r#""publish" "b" "0""#,
        ]);
        let acts = Acts::of(&call);
        let keys: Vec<(u32, &[u8])> = acts.keys().collect();
        assert_eq!(keys, [(0, &b"b"[..]), (0, &b"{a}:1:timeout"[..]), (0, &b"a"[..])]);
        assert_eq!(names(&acts.on(0, b"b")), ["GET", "PEXPIRE", "DEL"]);
        assert_eq!(names(&acts.on(0, b"a")), ["DEL"]);
        assert!(acts.on(1, b"a").is_empty() && acts.on(0, b"c").is_empty());
        assert_eq!(names(&acts.on_any(0, &[b"a"], &[b"{a}:"])), ["SET", "DEL"]);
        assert_eq!(names(&acts.messages), ["PUBLISH"]);
        assert!(acts.names(b"b") && !acts.names(b"a") && acts.names_deadlines);
        assert!(acts.names_prefix(b"{a") && !acts.names_prefix(b"t"));
        assert!(acts.has_prefix(b"{a") && acts.has_prefix(b"t") && !acts.has_prefix(b"u"));
        assert!(acts.has_arg(b"7") && !acts.has_arg(b"b"));
    }

    #[test]
    fn the_owner_is_a_known_argument_or_the_first_that_is_no_number() {
        let token = call(&[r#""EVALSHA" "0f" "1" "a" "500" "t" "\xff" "u""#, r#""get" "a""#]);
        let acts = Acts::of(&token);
        let rows: [(&[&str], &str); 5] = [
            (&[], "t"),
            (&["500"], "500"),
            (&["u", "t"], "t"),
            (&["\u{fffd}"], "\u{fffd}"),
            (&["a", "v"], "t"),
        ];
        for (known, expected) in rows {
            assert_eq!(acts.owner(known.iter().copied()).as_deref(), Some(expected), "{known:?}");
        }
        let numbers = call(&[r#""EVALSHA" "0f" "1" "a" "500" "6""#]);
        assert_eq!(Acts::of(&numbers).owner(std::iter::empty()).as_deref(), Some("500"));
        assert_eq!(Acts::of(&call(&[r#""EVALSHA" "0f" "1" "a""#])).owner(std::iter::empty()), None);
    }
}
