//! The state of connections in a duel: their IDs, blocked commands, CLIENT REPLY OFF, and queued
//! commands.

use std::collections::VecDeque;

use crate::{
    duel::{Duel, Owed, agree::is_answer},
    rule::Rule,
    servers::{Play, REFERENCE, Received},
    steps::{Step, name},
    wire::{Kind, Wire},
};

impl Duel {
    /// Opens a connection on both servers. The real server numbers connections consecutively, so
    /// its ID is known in advance.
    pub(super) fn open(&mut self, conn: usize) {
        self.conns.push(conn);
        self.last_id += 1;
        self.ids.insert(conn, self.last_id);
        self.sim.open(&name(conn), self.last_id);
    }

    /// The ID of a connection; an unused ID if it does not exist.
    pub(super) fn id(&self, conn: usize) -> u64 {
        self.ids.get(&conn).copied().unwrap_or(999_999_999)
    }

    pub(super) fn hang_up(&mut self, conn: usize) {
        self.write_down(&Step::Close(conn));
        self.real.close(&name(conn));
        self.sim.close(&name(conn));
        self.conns.retain(|other| *other != conn);
        self.closed.retain(|other| *other != conn);
        self.waiting.retain(|other| *other != conn);
        self.owed.remove(&conn);
        self.silent.remove(&conn);
        self.queued.remove(&conn);
        self.transacting.remove(&conn);
        self.pausing.remove(&conn);
        self.elsewhere.remove(&conn);
        self.ids.remove(&conn);
    }

    /// Updates the state of a connection before a command is played.
    pub(super) fn before(&mut self, conn: usize, words: &[Vec<u8>]) {
        let upper = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        match (&upper(0)[..], &upper(1)[..]) {
            (b"SELECT", _) => drop(self.elsewhere.insert(conn)),
            (b"ACL", _) => self.users = true,
            (b"CLIENT", b"PAUSE") => {
                (self.paused, self.single) = (true, true);
                self.pausing.insert(conn);
            }
            (b"EXEC", _) => {
                self.transacting.remove(&conn);
                self.paused |= self.pausing.remove(&conn);
            }
            (b"DISCARD" | b"RESET", _) => {
                self.transacting.remove(&conn);
                self.pausing.remove(&conn);
            }
            (b"MULTI", _) => {
                self.transacting.insert(conn);
                // The server refuses MULTI inside MULTI and keeps the queue.
                if self.queued.get(&conn).is_none_or(Vec::is_empty) {
                    self.pausing.remove(&conn);
                }
            }
            (b"CLIENT", b"UNPAUSE") => self.paused = false,
            (b"CLIENT", b"TRACKING") => self.single |= (2..words.len()).any(|at| upper(at) == b"BCAST"),
            (b"CLIENT", b"REPLY") => match &upper(2)[..] {
                b"OFF" | b"SKIP" => drop(self.silent.insert(conn)),
                _ => {}
            },
            _ => {}
        }
    }

    /// The rules for frames that arrived on a connection. It no longer waits once all its replies
    /// are among them.
    pub(super) fn settle(&mut self, conn: usize, frames: &[Received]) -> Vec<Rule> {
        let mut rules = Vec::new();
        for frame in frames {
            let owed = self.owed.entry(conn).or_default();
            let answered = if is_answer(frame) { owed.pop_front() } else { None };
            // Raw bytes may be a command and be queued among the known ones.
            let is_queued = matches!(frame, Received::Reply(Wire::Status(text)) if text == b"QUEUED");
            if answered.is_none() && is_queued {
                self.queued.entry(conn).or_default().push(Rule::Exact);
            }
            rules.push(answered.map_or(Rule::Exact, |owed| self.answered(conn, owed, frame)));
        }
        if self.owed.get(&conn).is_none_or(VecDeque::is_empty) {
            self.waiting.retain(|other| *other != conn);
        }
        rules
    }

    /// Follows the queue of a connection: EXEC is compared by the rules of the queued commands.
    fn answered(&mut self, conn: usize, owed: Owed, frame: &Received) -> Rule {
        let queued = self.queued.entry(conn).or_default();
        let status = if let Received::Reply(Wire::Status(text)) = frame { Some(&text[..]) } else { None };
        match (&owed.command[..], status) {
            (_, Some(b"QUEUED")) => {
                queued.push(owed.later);
                Rule::Exact
            }
            (b"EXEC", _) => Rule::Exec(std::mem::take(queued)),
            // The server refuses MULTI inside MULTI and keeps the queue.
            (b"MULTI" | b"DISCARD" | b"RESET", Some(_)) => {
                if owed.command == b"RESET" {
                    self.elsewhere.remove(&conn);
                }
                self.queued.entry(conn).or_default().clear();
                owed.rule
            }
            (b"SELECT 0", Some(_)) => {
                self.elsewhere.remove(&conn);
                owed.rule
            }
            _ => owed.rule,
        }
    }

    /// The simulator's encoding of a key of database 0, if it exists. The question has no side
    /// effects: an expired key remains, and a miss emits no event.
    pub(super) fn encoding(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let pattern = key.iter().flat_map(|byte| [b'\\', *byte]).collect();
        let Received::Reply(Wire::Items(_, there)) = self.ask_sim(&[b"KEYS".to_vec(), pattern]) else {
            return None;
        };
        if there.is_empty() {
            return None;
        }
        match self.ask_sim(&[b"OBJECT".to_vec(), b"ENCODING".to_vec(), key.to_vec()]) {
            Received::Reply(Wire::Bulk(encoding)) => Some(encoding),
            _ => None,
        }
    }

    /// Returns true if the simulator may keep a key in another order than that of its commands.
    pub(super) fn is_table(&mut self, conn: usize, words: &[Vec<u8>]) -> bool {
        // Other generations have encodings of their own.
        if self.elsewhere.contains(&conn) || self.generation != REFERENCE {
            return true;
        }
        // A command without its key is refused, even if a key with an empty name exists.
        let Some(key) = words.get(1) else { return true };
        let Some(encoding) = self.encoding(key) else { return true };
        let name = words[0].to_ascii_uppercase();
        match &encoding[..] {
            // Earlier values decide where long lists are split and how wide the integers of a set
            // are.
            b"intset" | b"quicklist" if name == b"DUMP" => true,
            b"intset" | b"quicklist" => false,
            // The source is a list, whose order counts, or a sorted set, which becomes a table
            // before it is read.
            b"listpack" => name.starts_with(b"SORT"),
            b"int" | b"embstr" | b"raw" | b"skiplist" => name != b"DUMP",
            // A consumer group records its last read time.
            b"stream" if name == b"DUMP" => {
                let groups = self.ask_sim(&[b"XINFO".to_vec(), b"GROUPS".to_vec(), key.clone()]);
                !matches!(groups, Received::Reply(Wire::Items(_, groups)) if groups.is_empty())
            }
            _ => true,
        }
    }
}

/// Returns true for commands that can block.
pub(super) fn may_wait(words: &[Vec<u8>]) -> bool {
    let name = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let reads = name.starts_with(b"XREAD") && words.iter().any(|word| word.eq_ignore_ascii_case(b"block"));
    name.starts_with(b"B") && !name.starts_with(b"BIT") || reads || name.starts_with(b"WAIT")
}

/// Returns true if the next command must not be delivered together with this step.
pub(super) fn stands_alone(step: &Step) -> bool {
    match step {
        Step::Send(_, words) => {
            let upper = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
            let client = upper(0) == b"CLIENT" && matches!(&upper(1)[..], b"PAUSE" | b"TRACKING" | b"REPLY");
            client || upper(0) == b"SPOP" || upper(0) == b"RANDOMKEY"
        }
        Step::Raw(..) | Step::Pipeline(..) | Step::Cross(..) => true,
        Step::Sleep(_) | Step::Close(_) => false,
    }
}

/// Returns true for a published message; several messages to one client come in the order of a hash
/// table.
pub(super) fn is_message(received: &Received) -> bool {
    let Received::Reply(Wire::Items(Kind::Array | Kind::Push, items)) = received else { return false };
    matches!(items.first(), Some(Wire::Bulk(kind)) if kind.ends_with(b"message"))
}
