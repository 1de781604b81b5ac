//! The commands that matter to locks, and calls: a command of a client with the commands of its
//! script.

use super::capture::{From, Line, Unit};

/// The most commands of one script that are kept. Scripts of locks have a dozen for each key.
const SCRIPT_MAX: usize = 10_000;

/// A command that reads or changes locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Set,
    SetNx,
    /// A command on one key, its first argument, that may change it.
    Change,
    /// PEXPIRE and its kind.
    Expire,
    /// DEL and UNLINK, whose arguments are all keys.
    Del,
    /// A command on one key, its first argument, that reads it.
    Read,
    /// HEXISTS, HGET and HINCRBY name an owner in their second argument.
    Hexists,
    Hincrby,
    /// A command whose first two arguments are keys that it may change.
    Move,
    FlushAll,
    FlushDb,
    /// EVAL and its kind: a script's text, or its digest, or a function.
    Eval,
    EvalSha,
    Function,
    /// SCRIPT LOAD.
    Script,
    Publish,
    /// SUBSCRIBE, UNSUBSCRIBE and their kind.
    Subscribe,
    /// A command of a script on a key beside the lock's, such as a queue of waiters.
    Beside,
}

/// The longest name in [`VERBS`].
const NAME_MAX: usize = 16;

/// The verb of each name, sorted by name.
const VERBS: &[(&str, Verb)] = &[
    ("append", Verb::Change),
    ("copy", Verb::Move),
    ("decr", Verb::Change),
    ("decrby", Verb::Change),
    ("del", Verb::Del),
    ("delifeq", Verb::Change),
    ("eval", Verb::Eval),
    ("evalsha", Verb::EvalSha),
    ("exists", Verb::Read),
    ("expire", Verb::Expire),
    ("expireat", Verb::Expire),
    ("fcall", Verb::Function),
    ("flushall", Verb::FlushAll),
    ("flushdb", Verb::FlushDb),
    ("get", Verb::Read),
    ("getdel", Verb::Change),
    ("getex", Verb::Change),
    ("getset", Verb::Change),
    ("hdel", Verb::Change),
    ("hexists", Verb::Hexists),
    ("hget", Verb::Hexists),
    ("hincrby", Verb::Hincrby),
    ("hmset", Verb::Change),
    ("hset", Verb::Change),
    ("hsetnx", Verb::Change),
    ("incr", Verb::Change),
    ("incrby", Verb::Change),
    ("lpop", Verb::Beside),
    ("lrem", Verb::Beside),
    ("move", Verb::Change),
    ("persist", Verb::Expire),
    ("pexpire", Verb::Expire),
    ("pexpireat", Verb::Expire),
    ("psetex", Verb::Change),
    ("pttl", Verb::Read),
    ("publish", Verb::Publish),
    ("rename", Verb::Move),
    ("renamenx", Verb::Move),
    ("restore", Verb::Change),
    ("rpush", Verb::Beside),
    ("script", Verb::Script),
    ("set", Verb::Set),
    ("setex", Verb::Change),
    ("setnx", Verb::SetNx),
    ("spublish", Verb::Publish),
    ("ssubscribe", Verb::Subscribe),
    ("subscribe", Verb::Subscribe),
    ("sunsubscribe", Verb::Subscribe),
    ("ttl", Verb::Read),
    ("unlink", Verb::Del),
    ("unsubscribe", Verb::Subscribe),
    ("zadd", Verb::Beside),
    ("zincrby", Verb::Beside),
    ("zrem", Verb::Beside),
    ("zremrangebyscore", Verb::Beside),
];

impl Verb {
    /// Returns the verb with this name in any case, or `None` if it concerns no lock.
    pub(super) fn of(name: &[u8]) -> Option<Verb> {
        if name.len() > NAME_MAX {
            return None;
        }
        let mut lower = [0; NAME_MAX];
        let lower = &mut lower[..name.len()];
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let found = VERBS.binary_search_by(|(known, _)| known.as_bytes().cmp(lower));
        found.ok().map(|at| VERBS[at].1)
    }

    /// Returns true if the command calls a script or a function.
    pub(super) fn calls_script(self) -> bool {
        matches!(self, Verb::Eval | Verb::EvalSha | Verb::Function)
    }

    /// Returns true if the command may change its keys.
    pub(super) fn changes(self) -> bool {
        use Verb::{Change, Del, Expire, Hincrby, Move, Set, SetNx};
        matches!(self, Set | SetNx | Change | Expire | Del | Hincrby | Move)
    }
}

/// A command in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) verb: Verb,
    /// The database, which a script may change.
    pub(super) db: u32,
    /// Name and arguments.
    pub(super) words: Vec<Box<[u8]>>,
}

impl Command {
    pub(super) fn of(verb: Verb, line: &Line<'_>) -> Command {
        let words = line.words().map(|word| word.into_owned().into_boxed_slice()).collect();
        Command { verb, db: line.db, words }
    }

    /// Returns an argument, the first of which is 1.
    pub(super) fn word(&self, at: usize) -> &[u8] {
        self.words.get(at).map_or(&[], |word| &word[..])
    }

    /// Returns the name in upper case.
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(self.word(0)).to_ascii_uppercase()
    }

    /// Returns the keys that the command itself names, scripts' keys included.
    pub(super) fn keys(&self) -> &[Box<[u8]>] {
        let range = match self.verb {
            Verb::FlushAll | Verb::FlushDb | Verb::Script | Verb::Publish | Verb::Subscribe => 0..0,
            Verb::Del => 1..self.words.len(),
            Verb::Move => 1..3,
            Verb::Eval | Verb::EvalSha | Verb::Function => {
                let count = std::str::from_utf8(self.word(2)).ok().and_then(|count| count.parse().ok());
                3..3_usize.saturating_add(count.unwrap_or(0))
            }
            _ => 1..2,
        };
        let end = range.end.min(self.words.len());
        &self.words[range.start.min(end)..end]
    }

    /// Returns the arguments of a script, after its keys.
    pub(super) fn script_args(&self) -> &[Box<[u8]>] {
        let from = 3 + self.keys().len();
        self.words.get(from..).unwrap_or_default()
    }

    /// Returns true if an argument after the value of SET is this word in any case.
    pub(super) fn has_option(&self, option: &str) -> bool {
        let options = self.words.get(3..).unwrap_or_default();
        options.iter().any(|word| word.eq_ignore_ascii_case(option.as_bytes()))
    }

    /// Returns true for a SET or SETNX that creates a key and never replaces one.
    pub(super) fn creates(&self) -> bool {
        self.verb == Verb::SetNx || self.verb == Verb::Set && self.has_option("NX")
    }

    /// Returns true for a command on a hash whose fields are owners.
    pub(super) fn is_of_hash(&self) -> bool {
        matches!(self.verb, Verb::Hexists | Verb::Hincrby) || self.word(0).eq_ignore_ascii_case(b"hset")
    }

    /// Returns true for a SET that sets an expiry.
    pub(super) fn sets_expiry(&self) -> bool {
        self.verb == Verb::Set && ["PX", "EX", "PXAT", "EXAT"].iter().any(|option| self.has_option(option))
    }
}

/// A command of a client, with the commands of its script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// The number of its line, or its offset.
    pub(super) line: u64,
    pub(super) unit: Unit,
    pub(super) at_us: i64,
    /// The address of the client's connection.
    pub(super) client: Box<str>,
    pub(super) command: Command,
    /// The commands of its script that concern locks.
    pub(super) script: Vec<Command>,
}

impl Call {
    pub(super) fn new(number: u64, line: &Line<'_>, verb: Verb) -> Call {
        let client = match line.from {
            From::Client(client) => String::from_utf8_lossy(client).into(),
            From::Script => "lua".into(),
        };
        let command = Command::of(verb, line);
        Call { line: number, unit: Unit::Line, at_us: line.at_us, client, command, script: Vec::new() }
    }

    /// Adds a command of the script.
    pub(super) fn push(&mut self, verb: Verb, line: &Line<'_>) {
        if self.script.len() < SCRIPT_MAX {
            self.script.push(Command::of(verb, line));
        }
    }

    /// Returns the commands that act on keys: those of the script, or the command itself.
    pub(super) fn acts(&self) -> &[Command] {
        if self.command.verb.calls_script() { &self.script } else { std::slice::from_ref(&self.command) }
    }

    pub(super) fn at_ms(&self) -> i64 {
        self.at_us.div_euclid(1_000)
    }
}

/// Returns the address without the port, which differs between the connections of a client.
pub(super) fn host_of(address: &str) -> &str {
    match address.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verbs_are_sorted_and_found_in_any_case() {
        assert!(VERBS.is_sorted_by(|one, next| one.0 < next.0));
        assert!(VERBS.iter().all(|(name, _)| name.len() <= NAME_MAX));
        let rows = [
            ("SET", Some(Verb::Set)),
            ("PExpire", Some(Verb::Expire)),
            ("unlink", Some(Verb::Del)),
            ("ping", None),
            ("setnxx", None),
            ("a name that is longer than any", None),
            ("", None),
        ];
        for (name, expected) in rows {
            assert_eq!(Verb::of(name.as_bytes()), expected, "{name}");
        }
    }

    fn command(text: &str) -> Command {
        let line = Line { at_us: 0, db: 0, from: From::Script, command: text.as_bytes() };
        Command::of(Verb::of(line.name()).expect("a verb"), &line)
    }

    #[test]
    fn the_keys_and_arguments_of_commands() {
        let rows: [(&str, &[&str], &[&str]); 7] = [
            (r#""SET" "a" "t" "NX""#, &["a"], &[]),
            (r#""DEL" "a" "b""#, &["a", "b"], &[]),
            (r#""EVALSHA" "0f" "2" "a" "b" "t" "5""#, &["a", "b"], &["t", "5"]),
            (r#""EVALSHA" "0f" "9" "a""#, &["a"], &[]),
            (r#""EVALSHA" "0f" "-1" "a""#, &[], &["a"]),
            (r#""EVAL" "return 1""#, &[], &[]),
            (r#""FLUSHALL" "ASYNC""#, &[], &[]),
        ];
        let text = |words: &[Box<[u8]>]| -> Vec<String> {
            words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
        };
        for (line, keys, args) in rows {
            let command = command(line);
            assert_eq!(text(command.keys()), keys, "{line}");
            if command.verb.calls_script() {
                assert_eq!(text(command.script_args()), args, "{line}");
            }
        }
    }

    #[test]
    fn a_value_is_no_option() {
        assert!(command(r#""set" "a" "t" "px" "5" "nx""#).creates());
        assert!(!command(r#""set" "a" "nx" "px" "5""#).creates());
        assert!(command(r#""set" "a" "nx" "px" "5""#).sets_expiry());
        assert!(command(r#""setnx" "a" "t""#).creates());
    }

    #[test]
    fn the_host_of_an_address_has_no_port() {
        let rows =
            [("10.0.0.1:50000", "10.0.0.1"), ("[::1]:5", "[::1]"), ("unix:/run/a", "unix:/run/a"), ("", "")];
        for (address, expected) in rows {
            assert_eq!(host_of(address), expected);
        }
    }
}
