//! A copy of the lock's keys that replays the server's commands from MONITOR. It goes through every
//! state of the server.
//!
//! A read of the keys shows their state one round trip later, when other commands may have followed
//! the observed one. So a read only checks the copy: MONITOR shows the read among the commands, and
//! so shows which commands came before it. A difference is a change that the server made itself.

use bytes::Bytes;
use lockstorm_sim::{
    config::Config,
    env::Env,
    event::{ConnId, Event},
    generation::Generation,
    server::Server,
};
use lockstorm_world::time::Wall;

use crate::judge::object::{Keys, Value};

/// A line of MONITOR.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) at: Wall,
    pub(super) db: u32,
    pub(super) from: From,
    /// Name and arguments in the quotes of MONITOR.
    pub(super) command: &'a str,
}

/// The sender of a command that MONITOR shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// A connection with this port at the client's end.
    Port(u16),
    /// The script or function that the last command of a connection called.
    Script,
    /// A connection without a port, or of another process that the node dialed, such as its master.
    Elsewhere,
}

impl<'a> Line<'a> {
    /// Parses a line such as `+1700000000.123456 [0 127.0.0.1:50000] "SET" "a" "b"`.
    pub(super) fn parse(text: &'a str) -> Option<Line<'a>> {
        let (at, rest) = text.strip_prefix('+')?.split_once(" [")?;
        let (client, command) = rest.split_once("] ")?;
        let (secs, micros) = at.split_once('.')?;
        let micros = secs.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
        let (db, client) = client.split_once(' ')?;
        // Other addresses are those of processes of a group, such as the master of a replica.
        let port = client.strip_prefix("127.0.0.1:").and_then(|port| port.parse().ok());
        let from = if client == "lua" { From::Script } else { port.map_or(From::Elsewhere, From::Port) };
        Some(Line { at: Wall::from_nanos(micros.checked_mul(1_000)?), db: db.parse().ok()?, from, command })
    }

    /// Returns the command's name in upper case.
    pub(super) fn name(&self) -> String {
        let name = self.command.trim_start_matches('"').split('"').next();
        name.unwrap_or_default().to_ascii_uppercase()
    }

    /// Returns name and arguments without quotes and escapes.
    pub(super) fn words(&self) -> Vec<String> {
        let (mut words, mut word, mut chars) = (Vec::new(), None::<Vec<u8>>, self.command.chars());
        while let Some(char) = chars.next() {
            match (&mut word, char) {
                (None, '"') => word = Some(Vec::new()),
                (None, _) => {}
                (Some(_), '"') => words.extend(word.take()),
                (Some(word), '\\') => word.extend(unescaped(&mut chars)),
                (Some(word), char) => word.extend(char.to_string().bytes()),
            }
        }
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }
}

/// Escapes bytes as MONITOR does between quotes.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let escaped = bytes.iter().map(|byte| match byte {
        b'\\' | b'"' => format!("\\{}", char::from(*byte)),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        b' '..=b'~' => char::from(*byte).to_string(),
        other => format!("\\x{other:02x}"),
    });
    escaped.collect()
}

/// Returns the byte of an escape, from the characters after its backslash.
fn unescaped(chars: &mut std::str::Chars<'_>) -> Option<u8> {
    Some(match chars.next()? {
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'a' => 0x07,
        'b' => 0x08,
        'x' => u8::from_str_radix(chars.as_str().get(..2)?, 16).ok().inspect(|_| {
            chars.nth(1);
        })?,
        char => u8::try_from(char).ok()?,
    })
}

/// A command that may have changed the keys, and the keys after it, including the effects of its
/// script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step<By> {
    pub(super) at: Wall,
    pub(super) by: By,
    /// The command's name in upper case.
    pub(super) command: String,
    /// The values in the order of the keys.
    pub(super) after: Vec<Value>,
}

/// Encodes a command for the wire.
fn encoded(words: &[Bytes]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// A copy of the keys. `By` identifies the sender of commands.
pub(super) struct Mirror<By> {
    /// The keys of each lock.
    keys: Vec<Keys>,
    server: Server,
    env: Env,
    conn: u64,
    /// The last step. Its script may still be running.
    open: Option<Step<By>>,
    /// The keys at the last read of the server's keys.
    read: Vec<Value>,
    /// The steps since then.
    steps: Vec<Step<By>>,
}

impl<By: Clone> Mirror<By> {
    /// Creates a copy in which no key exists.
    pub(super) fn new(generation: Generation, keys: Vec<Keys>) -> Mirror<By> {
        let mut env = Env::new(0);
        let config = Config::of(generation).with(|config| config.persistence.save = Vec::new());
        let server = Server::new(config, &mut env);
        let mut mirror =
            Mirror { keys, server, env, conn: 0, open: None, read: Vec::new(), steps: Vec::new() };
        mirror.read = mirror.kept();
        mirror
    }

    /// Processes a command that may change the keys. The commands of its script follow as separate
    /// lines.
    pub(super) fn begin(&mut self, line: &Line<'_>, by: By) {
        self.end();
        let command = line.name();
        // MONITOR prints the commands of a script one by one.
        let calls_script =
            matches!(&*command, "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO");
        let moves = command == "MIGRATE";
        self.open = Some(Step { at: line.at, by, command, after: Vec::new() });
        if moves {
            self.move_away(line);
        } else if !calls_script {
            self.give(line.at, format!("{}\r\n", line.command));
        }
    }

    /// Processes a MIGRATE, which deletes the keys that it names when the other node has them.
    fn move_away(&mut self, line: &Line<'_>) {
        let words = line.words();
        let is_named = |key: &Bytes| words.iter().any(|word| word.as_bytes() == &key[..]);
        let list = self.keys.iter().flat_map(|keys| keys.list.iter().map(|key| key.name.clone()));
        let mut deletion = vec![Bytes::from("DEL")];
        deletion.extend(list.filter(is_named));
        if deletion.len() > 1 {
            self.give(line.at, encoded(&deletion));
        }
    }

    /// Processes a command of the running script. Ignored if no step is open: then the script's
    /// caller does not matter.
    pub(super) fn go_on(&mut self, line: &Line<'_>) {
        // The time of a script is that of its call.
        if let Some(step) = &self.open {
            self.give(step.at, format!("{}\r\n", line.command));
        }
    }

    /// Completes the open step, because another command follows.
    pub(super) fn end(&mut self) {
        if let Some(step) = self.open.take() {
            let after = self.kept();
            self.steps.push(Step { after, ..step });
        }
    }

    /// Returns the steps since the last read of the keys. For the end, when no other read follows.
    pub(super) fn take(&mut self) -> Vec<Step<By>> {
        std::mem::take(&mut self.steps)
    }

    /// Returns the steps since the last read of the keys, and sets the copy to the values of this
    /// read. Also returns for each key true if the steps alone explain its value.
    ///
    /// The server computes the expiry of a key before it sends the command to MONITOR, so only the
    /// read has the expiry exact to the millisecond.
    pub(super) fn check(&mut self, read: &[Value], now: Wall) -> (Vec<Step<By>>, Vec<bool>) {
        self.end();
        let kept = self.kept();
        self.read = read.to_vec();
        let mut steps = std::mem::take(&mut self.steps);
        if kept == *read {
            return (steps, vec![true; read.len()]);
        }
        let mut explained = Vec::new();
        for (at, (kept, read)) in kept.iter().zip(read).enumerate() {
            explained.push(kept.is_like(read));
            if kept.is_like(read) {
                // The value of an earlier step is the same value as this read's, even if other
                // commands changed the key in between. So it gets the exact expiry too.
                let mut before = steps.iter_mut().rev();
                while before.next().is_some_and(|step| step.after[at].correct(kept, read)) {}
            }
        }
        self.become_like(read, now);
        (steps, explained)
    }

    /// Drops the steps that a node took as a replica, and returns the keys after them: the steps
    /// before the first change by a command that `is_client` accepts, because a replica refuses to
    /// write for clients. Without such a change it drops all steps, and returns `None`.
    pub(super) fn begin_as_master(&mut self, is_client: impl Fn(&By) -> bool) -> Option<Vec<Value>> {
        self.end();
        let mut before = &self.read;
        for (at, step) in self.steps.iter().enumerate() {
            if is_client(&step.by) && step.after != *before {
                let before = before.clone();
                self.steps.drain(..at);
                return Some(before);
            }
            before = &step.after;
        }
        self.steps.clear();
        None
    }

    /// Returns the time of the first step since the last read.
    pub(super) fn first_at(&self) -> Option<Wall> {
        self.steps.first().map(|step| step.at)
    }

    /// Returns the steps that a master took before it became a replica: up to the last one by a
    /// command that `is_client` accepts, because a replica refuses to write for clients.
    pub(super) fn end_as_master(&mut self, is_client: impl Fn(&By) -> bool) -> Vec<Step<By>> {
        self.end();
        let count = self.steps.iter().rposition(|step| is_client(&step.by)).map_or(0, |last| last + 1);
        self.steps.drain(..count).collect()
    }

    /// Returns the keys after all steps.
    pub(super) fn done(&mut self) -> Vec<Value> {
        self.end();
        self.kept()
    }

    fn kept(&self) -> Vec<Value> {
        let node = self.server.node();
        self.keys.iter().flat_map(|keys| keys.read(node, |_| true)).collect()
    }

    fn become_like(&mut self, read: &[Value], now: Wall) {
        // Each key, with the prefix of its lease keys.
        let keys: Vec<(&Bytes, &str)> = self
            .keys
            .iter()
            .flat_map(|keys| keys.list.iter().map(|key| (&key.name, &*keys.leases)))
            .collect();
        let kept = self.kept();
        let leases = keys.iter().zip(&kept).flat_map(|((_, tag), value)| value.lease_keys(tag));
        let deletion = [Bytes::from("DEL")].into_iter();
        let deletion = deletion.chain(keys.iter().map(|(key, _)| (*key).clone())).chain(leases).collect();
        let values = keys.iter().zip(read).flat_map(|((key, tag), value)| value.commands(key, tag));
        let commands: Vec<Vec<Bytes>> = [deletion].into_iter().chain(values).collect();
        for words in commands {
            self.give(now, encoded(&words));
        }
    }

    /// Executes a command on a connection of its own, so that only its effect on the keys remains.
    /// The format of MONITOR is also a valid inline command.
    fn give(&mut self, at: Wall, bytes: impl Into<Bytes>) {
        self.conn += 1;
        self.env.wall = at;
        let conn = ConnId(self.conn);
        let (peer, local) = ("c1:1".to_owned(), "n1:6379".to_owned());
        for event in [
            Event::Connected { conn, peer, local },
            Event::Bytes { conn, bytes: bytes.into() },
            Event::Closed { conn },
        ] {
            self.server.step(&mut self.env, event);
        }
        self.env.outbox.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{
        history::Mode,
        object::{Content, Keys, Known, LockKind},
    };

    /// Wall time in milliseconds of the first line of each story.
    const BEGINS_MS: i64 = 1_700_000_000_000;

    #[test]
    fn a_line_of_monitor_says_when_where_who_and_what() {
        let at = Wall::from_nanos(1_700_000_000_123_456_000);
        let rows = [
            ("+OK", None),
            (
                r#"+1700000000.123456 [0 127.0.0.1:50000] "SET" "a" "x] y""#,
                Some(Line { at, db: 0, from: From::Port(50_000), command: r#""SET" "a" "x] y""# }),
            ),
            (
                r#"+1700000000.123456 [3 lua] "get" "a""#,
                Some(Line { at, db: 3, from: From::Script, command: r#""get" "a""# }),
            ),
            (
                r#"+1700000000.123456 [0 127.1.0.1:7001] "PING""#,
                Some(Line { at, db: 0, from: From::Elsewhere, command: r#""PING""# }),
            ),
            (
                r#"+1700000000.123456 [0 unix:/run/redis] "PING""#,
                Some(Line { at, db: 0, from: From::Elsewhere, command: r#""PING""# }),
            ),
            ("+1700000000 [0 127.0.0.1:1] \"PING\"", None),
            ("+1700000000.123456 [127.0.0.1:1] \"PING\"", None),
            ("+9223372036854775807.000001 [0 127.0.0.1:1] \"PING\"", None),
        ];
        for (text, expected) in rows {
            assert_eq!(Line::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn the_words_of_a_line_are_what_was_sent() {
        let command = r#""EVAL" "a \"b\\\n" "" "\xd0\xb7 \x07\a" "c1:1""#;
        let line = Line { at: Wall::ZERO, db: 0, from: From::Elsewhere, command };
        assert_eq!(line.words(), ["EVAL", "a \"b\\\n", "", "\u{437} \u{7}\u{7}", "c1:1"]);
    }

    fn keys() -> Keys {
        LockKind::Plain.object(1).keys("lock")
    }

    /// Returns empty values for all keys.
    fn free() -> Vec<Value> {
        vec![Value::default(); keys().list.len()]
    }

    fn kept(fields: &[(&str, &str)], expires_ms: Option<i64>) -> Vec<Value> {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut kept = free();
        kept[0] = Value { content: Content::Fields(fields.collect()), expires_ms, ..Value::default() };
        kept
    }

    /// Returns a copy that processed these commands, each `who: command`, one per millisecond.
    /// Lines with `lua` are the commands of a script.
    fn mirror(story: &[(&str, &str)]) -> Mirror<String> {
        mirror_of(keys(), story)
    }

    fn mirror_of(keys: Keys, story: &[(&str, &str)]) -> Mirror<String> {
        let mut mirror = Mirror::new(Generation::Valkey91, vec![keys]);
        for ((who, command), after_ms) in story.iter().zip(0..) {
            let quoted: Vec<String> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
            let (at, command) = (Wall::from_millis(BEGINS_MS + after_ms), &*quoted.join(" "));
            match *who {
                "lua" => mirror.go_on(&Line { at, db: 0, from: From::Script, command }),
                who => mirror.begin(&Line { at, db: 0, from: From::Elsewhere, command }, who.to_owned()),
            }
        }
        mirror
    }

    /// Returns the sender of each step, and the values after it.
    fn told(steps: &[Step<String>]) -> Vec<(&str, &Vec<Value>)> {
        steps.iter().map(|step| (&*step.by, &step.after)).collect()
    }

    /// A client writes as soon as the replica is promoted, before the role is read. Regression: the
    /// read that showed the new role had the grant already, which was taken for what the replica
    /// had, and no grant was recorded.
    #[test]
    fn a_client_s_grant_right_after_the_promotion_is_no_part_of_the_replica() {
        let mut mirror = mirror(&[
            ("master", "HSET lock c1:1 1"),
            ("c2", "EVALSHA e0 1 lock 5000 c2:1"),
            ("master", "DEL lock"),
            ("c2", "EVALSHA e0 1 lock 5000 c2:1"),
            ("lua", "HINCRBY lock c2:1 1"),
            ("c2", "DEL lock"),
        ]);
        let before = mirror.begin_as_master(|by| by == "c2");
        assert_eq!(before, Some(free()), "c1's hold is gone with the master's DEL");
        let steps = mirror.take();
        let expected = [("c2", &kept(&[("c2:1", "1")], None)), ("c2", &free())];
        assert_eq!(told(&steps), expected);
        mirror.begin(
            &Line { at: Wall::ZERO, db: 0, from: From::Elsewhere, command: "\"PING\"" },
            "c2".to_owned(),
        );
        assert_eq!(mirror.begin_as_master(|by| by == "c2"), None, "no client has changed a key");
        assert_eq!(mirror.take(), []);
    }

    /// Both clients acted before the first read, which found the keys free. Regression: the
    /// recorder missed the two holds of C1, and recorded C2's release as C1's.
    #[test]
    fn what_two_clients_did_before_the_keys_were_read_is_told_apart() {
        let mut mirror = mirror(&[
            ("c1", "EVALSHA e0 1 lock 5000 c1:1"),
            ("lua", "HINCRBY lock c1:1 1"),
            ("lua", "PEXPIRE lock 5000"),
            ("c2", "EVALSHA e0 1 lock 5000 c2:1"),
            ("lua", "PTTL lock"),
            ("c2", "SUBSCRIBE redisson_lock__channel:{lock}"),
            ("c1", "EVALSHA e0 1 lock 5000 c1:1"),
            ("lua", "HINCRBY lock c1:1 1"),
            ("c1", "EVALSHA e1 2 lock redisson_lock__channel:{lock} c1:1"),
            ("lua", "HINCRBY lock c1:1 -1"),
            ("c1", "EVALSHA e1 2 lock redisson_lock__channel:{lock} c1:1"),
            ("lua", "DEL lock"),
            ("lua", "PUBLISH redisson_lock__channel:{lock} 0"),
            ("c2", "EVALSHA e0 1 lock 5000 c2:1"),
            ("lua", "HINCRBY lock c2:1 1"),
            ("c1", "DEL redisson_unlock_latch:{lock}:e2"),
            ("c2", "DEL lock"),
        ]);
        let (steps, explained) = mirror.check(&free(), Wall::from_millis(BEGINS_MS + 20));
        let until = Some(BEGINS_MS + 5_000);
        let [once, twice] = ["1", "2"].map(|count| kept(&[("c1:1", count)], until));
        let other = kept(&[("c2:1", "1")], None);
        let free = free();
        let expected = [
            ("c1", &once),
            ("c2", &once),
            ("c2", &once),
            ("c1", &twice),
            ("c1", &once),
            ("c1", &free),
            ("c2", &other),
            ("c1", &other),
            ("c2", &free),
        ];
        assert_eq!(told(&steps), expected);
        assert_eq!(explained, [true; 3]);
    }

    #[test]
    fn when_a_key_expires_is_what_was_read() {
        let held = |expires_ms| kept(&[("c1:1", "1")], Some(BEGINS_MS + expires_ms));
        let story = [("c1", "HSET lock c1:1 1"), ("c1", "PEXPIRE lock 5000"), ("c2", "HGET lock c2:1")];
        let mut mirror = mirror(&story);
        // The server computed the expiry 2 ms before it sent the command to MONITOR.
        let (steps, explained) = mirror.check(&held(4_999), Wall::from_millis(BEGINS_MS + 3));
        assert_eq!(told(&steps)[1..], [("c1", &held(4_999)), ("c2", &held(4_999))]);
        assert_eq!(explained, [true; 3]);
        let again = mirror.check(&held(4_999), Wall::from_millis(BEGINS_MS + 4));
        assert_eq!(again, (Vec::new(), vec![true; 3]));
    }

    /// Two readers enter before the keys are read. Regression: the end of the first reader's lease
    /// was off by a millisecond between the steps before and after the second reader's entry, so
    /// the recorder took it for a change by the second reader.
    #[test]
    fn when_the_lease_of_a_reader_ends_is_what_was_read_also_before_another_one_came_in() {
        let comes_in = |reader: &str| {
            let lease = format!("SET {{lock}}:{reader}:rwlock_timeout:1 1 PX 3000");
            [
                (reader.to_owned(), format!("EVALSHA e0 1 lock 3000 {reader}")),
                ("lua".to_owned(), "HSET lock mode read".to_owned()),
                ("lua".to_owned(), format!("HINCRBY lock {reader} 1")),
                ("lua".to_owned(), lease),
                ("lua".to_owned(), "PEXPIRE lock 3000".to_owned()),
            ]
        };
        let story = [comes_in("e2:1"), comes_in("e1:1")].concat();
        let story: Vec<(&str, &str)> = story.iter().map(|(who, what)| (&**who, &**what)).collect();
        for off in [-1, 0, 1] {
            let keys = LockKind::ReadWrite.object(1).keys("lock");
            let mut mirror = mirror_of(keys, &story);
            // E1 entered 5 ms later.
            let [first, second] = [0, 5].map(|after| Some(BEGINS_MS + after + 3_000 + off));
            let mut read = mirror.done();
            read[0].expires_ms = second;
            read[0].leases =
                [(("e1:1".to_owned(), 1), second), (("e2:1".to_owned(), 1), first)].into_iter().collect();
            let (steps, explained) = mirror.check(&read, Wall::from_millis(BEGINS_MS + 20));
            assert_eq!(explained, vec![true; read.len()], "{off}");
            let holding = |step: &Step<String>| {
                let holding = LockKind::ReadWrite.object(1).holding(&step.after, &Known::default(), None);
                holding.holds[&("e2:1".to_owned(), Mode::Shared)].expires_ms
            };
            assert_eq!(steps.iter().map(holding).collect::<Vec<_>>(), [first, first], "{off}");
        }
    }

    #[test]
    fn a_change_that_no_command_explains_is_the_server_s() {
        let mut full = kept(&[("c1:1", "1"), ("c2:1", "3")], Some(BEGINS_MS + 500));
        full[1].content = Content::List(vec!["c3:1".to_owned(), "c \"4\"".to_owned()]);
        full[2].content = Content::Text("7".to_owned());
        let mut text = free();
        text[0].content = Content::Text("7\r\n".to_owned());
        let now = Wall::from_millis(BEGINS_MS);
        let mut mirror = mirror(&[]);
        // For each reading, the keys that did not change.
        for (read, same) in [(full, [false; 3]), (text, [false; 3]), (free(), [false, true, true])] {
            assert_eq!(mirror.check(&read, now), (Vec::new(), same.to_vec()), "{read:?}");
            assert_eq!(mirror.check(&read, now), (Vec::new(), vec![true; 3]), "{read:?}");
        }
    }

    #[test]
    fn a_lease_on_a_field_is_that_of_the_lock() {
        let mut mirror = mirror(&[("c1", "HSETEX lock FNX PX 5000 FIELDS 1 holder t")]);
        let mut read = kept(&[("holder", "t")], Some(BEGINS_MS + 5_001));
        read[0].is_of_field = true;
        let (steps, explained) = mirror.check(&read, Wall::from_millis(BEGINS_MS + 10));
        assert!(explained.iter().all(|explained| *explained));
        assert_eq!(told(&steps), [("c1", &read)]);
        assert_eq!(mirror.done(), read);
    }

    /// A key that moves between nodes of a cluster is gone at the one and complete at the other.
    /// The payload is that of a Valkey 9.1.
    #[test]
    fn a_key_that_moves_is_gone_here_and_complete_there() {
        let mut source = mirror(&[
            ("c1", "HSET lock c1:1 1"),
            ("m", "MIGRATE 127.1.0.1 7001 0 0 5000 REPLACE KEYS other lock"),
        ]);
        assert_eq!(source.done(), free());
        let mut target = mirror(&[]);
        let command = concat!(
            r#""RESTORE-ASKING" "lock" "58724" "\x10\x0f\x0f\x00\x00\x00\x02\x00\x84c1:1\x05\x01\x01\xffP\x00 M"#,
            r#"\x96\x00\xa2\x17\x8b\xb3" "REPLACE""#
        );
        let at = Wall::from_millis(BEGINS_MS);
        target.begin(&Line { at, db: 0, from: From::Elsewhere, command }, "m".to_owned());
        assert_eq!(target.done(), kept(&[("c1:1", "1")], Some(BEGINS_MS + 58_724)));
    }

    /// A master is made a replica, and gets the data of the new master.
    #[test]
    fn a_master_s_last_step_is_that_of_a_client() {
        let mut mirror =
            mirror(&[("c1", "HSET lock c1:1 1"), ("c1", "DEL lock"), ("master", "HSET lock c2:1 1")]);
        let steps = mirror.end_as_master(|by| by == "c1");
        assert_eq!(told(&steps), [("c1", &kept(&[("c1:1", "1")], None)), ("c1", &free())]);
        assert_eq!(mirror.first_at(), Some(Wall::from_millis(BEGINS_MS + 2)));
        assert_eq!(told(&mirror.take()), [("master", &kept(&[("c2:1", "1")], None))]);
        assert_eq!(mirror.end_as_master(|by| by == "c1"), []);
    }

    #[test]
    fn a_name_is_looked_for_as_monitor_writes_it() {
        let rows: [(&[u8], &str); 4] = [
            (b"lock:{a b}", "lock:{a b}"),
            (b"a\"b\\c", "a\\\"b\\\\c"),
            ("\u{437}".as_bytes(), "\\xd0\\xb7"),
            (b"\n\r\t\x07\x08\x00\x7f", "\\n\\r\\t\\a\\b\\x00\\x7f"),
        ];
        for (name, expected) in rows {
            assert_eq!(escaped(name), expected);
        }
    }
}
