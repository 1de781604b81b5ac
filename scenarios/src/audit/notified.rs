//! One connection to a server that is audited gently: by keyspace events and reads, without
//! MONITOR.
//!
//! The connection speaks RESP3, so events and replies share it. At an interval the audit asks for
//! the counters of flushes and reads the keys that changed, as many as a bound allows. It sends no
//! command that changes data or the server's configuration.

use std::{collections::VecDeque, fmt};

use super::{
    capture::Unit,
    engine::Audit,
    names::key,
    server::{NAME, request},
    watched::{Id, KEYS_MAX, Watched},
    wire::{Item, Reader},
};

/// The classes of events that the audit needs, as `notify-keyspace-events` names them.
const CLASSES: &str = "Kg$hxe";

/// The most keys that are read at one interval.
const READS_MAX: usize = 500;

/// The most keys without a change that are read at one interval.
const QUIET_MAX: usize = 50;

/// The number of keys that one SCAN visits.
const SCANNED: &str = "1000";

/// The last byte of a value that is read. A token is shorter.
const VALUE_END: &str = "511";

/// The most databases that are scanned.
const DATABASES: usize = 1_024;

/// A request whose reply is awaited.
#[derive(Debug)]
enum Question {
    Hello,
    /// The reply is of no interest.
    Name,
    Classes,
    Subscribe,
    Databases,
    Select,
    /// The counters before the reads of an interval; after them, its number.
    Flushes(Option<u64>),
    Scan,
    Type(Id),
    Lives(Id),
    Value(Id, bool),
}

impl Question {
    /// Returns the right that a refused request lacks, and the part of the node that the audit does
    /// not see without it, as the end of a sentence.
    fn needs(&self, why: &str) -> (&'static str, &'static str) {
        let no_lock = "none of its locks was seen after that";
        match self {
            Question::Hello => ("a login", "none of its locks was seen"),
            Question::Name => ("+client|setname", "its connection had no name"),
            Question::Classes => {
                ("+config|get", "it may have sent too few events, without which ends of holds are missed")
            }
            Question::Subscribe if why.contains("channel") => {
                ("the channels __keyspace@*__:*", "none of its locks was seen")
            }
            Question::Subscribe => ("+psubscribe", "none of its locks was seen"),
            Question::Databases | Question::Flushes(_) => {
                ("+info", "no flush of all keys was proven, and no hold from before was looked for")
            }
            Question::Select => ("+select", no_lock),
            Question::Scan => ("+scan", "locks were seen only after an event of theirs"),
            Question::Type(_) | Question::Lives(_) | Question::Value(..) if is_of_key(why) => {
                ("the keys of some locks", "these were not read")
            }
            Question::Type(_) => ("+type", no_lock),
            Question::Lives(_) => ("+pttl", no_lock),
            Question::Value(_, true) => ("+hrandfield", no_lock),
            Question::Value(_, false) => ("+getrange", no_lock),
        }
    }
}

/// The end of the gentle audit of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The server refuses a request that the audit cannot do without, and will refuse it again.
    Refused(String),
    /// The server cannot answer now, or its bytes are no replies.
    Broken(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Refused(why) | Stop::Broken(why) => f.write_str(why),
        }
    }
}

/// Returns true for an error that the next request may not meet.
fn is_passing(why: &str) -> bool {
    ["LOADING ", "BUSY ", "MASTERDOWN "].iter().any(|code| why.starts_with(code))
}

/// Returns true if a server refuses a request for lack of a right or of the command itself.
fn is_lasting(why: &str) -> bool {
    ["NOPERM ", "NOAUTH ", "ERR unknown command"].iter().any(|code| why.starts_with(code))
}

/// Returns true if a login may use the command, but not on this key.
fn is_of_key(why: &str) -> bool {
    why.starts_with("NOPERM ") && why.contains(" access ") && why.contains("key")
}

/// The search for keys that no event has shown yet.
#[derive(Debug, Default)]
struct Search {
    /// The databases and patterns that are left, the present one last.
    left: Vec<(u32, Option<String>)>,
    cursor: Vec<u8>,
}

/// The gentle audit of a node over one connection.
#[derive(Debug)]
pub struct Gentle {
    node: usize,
    reader: Reader,
    asked: VecDeque<Question>,
    watched: Watched,
    search: Search,
    /// The database of the connection.
    db: u32,
    /// The number of patterns that are not yet subscribed to.
    unsubscribed: usize,
    /// The number of intervals.
    polls: u64,
    /// Unset once the server has refused INFO.
    may_count: bool,
    lacks: Option<String>,
}

/// Returns the first request of the connection, with the words of a login.
pub fn hello(login: &[String]) -> Vec<u8> {
    let mut words = vec!["HELLO", "3"];
    match login {
        [password] => words.extend(["AUTH", "default", password]),
        [user, password, ..] => words.extend(["AUTH", user, password]),
        [] => {}
    }
    request(&words)
}

/// Returns a pattern of keys as the server reads it: only `*` and `?` are special.
fn glob(pattern: &str) -> String {
    let mut glob = String::new();
    for char in pattern.chars() {
        if matches!(char, '[' | ']' | '\\') {
            glob.push('\\');
        }
        glob.push(char);
    }
    glob
}

impl Gentle {
    /// Begins after [`hello`] was sent. Returns the next requests.
    pub fn begin(audit: &mut Audit, node: usize) -> (Gentle, Vec<u8>) {
        let patterns: Vec<String> = audit.settings.locks.iter().map(|pattern| glob(pattern)).collect();
        let mut gentle = Gentle {
            node,
            reader: Reader::default(),
            asked: VecDeque::from([Question::Hello]),
            watched: Watched::new(audit, node),
            search: Search::default(),
            db: 0,
            unsubscribed: patterns.len().max(1),
            polls: 0,
            may_count: true,
            lacks: None,
        };
        let mut bytes = Vec::new();
        gentle.ask(&mut bytes, &["CLIENT", "SETNAME", NAME], Question::Name);
        gentle.ask(&mut bytes, &["CONFIG", "GET", "notify-keyspace-events"], Question::Classes);
        let all = [String::from("*")];
        for pattern in if patterns.is_empty() { &all[..] } else { &patterns[..] } {
            let channels = format!("__keyspace@*__:{pattern}");
            gentle.ask(&mut bytes, &["PSUBSCRIBE", &channels], Question::Subscribe);
        }
        // From here on the counters show each flush.
        gentle.ask(&mut bytes, &["INFO", "commandstats"], Question::Flushes(None));
        gentle.ask(&mut bytes, &["INFO", "keyspace"], Question::Databases);
        (gentle, bytes)
    }

    /// Returns true once the server sends events.
    pub fn is_ready(&self) -> bool {
        self.unsubscribed == 0
    }

    /// Returns the reason why the server sends no events, or too few.
    pub fn lacks(&self) -> Option<&str> {
        self.lacks.as_deref()
    }

    /// Returns the requests of an interval; none while replies are awaited.
    pub fn poll(&mut self, audit: &mut Audit) -> Vec<u8> {
        let mut bytes = Vec::new();
        if !self.asked.is_empty() {
            return bytes;
        }
        self.polls += 1;
        self.count(&mut bytes, audit, None);
        for id in self.due(audit) {
            if let Some(seen) = self.watched.keys.get_mut(&id) {
                seen.asked_at = self.polls;
            }
            self.read(&mut bytes, id);
        }
        self.count(&mut bytes, audit, Some(self.polls));
        self.scan(&mut bytes);
        bytes
    }

    /// Asks for the counters of flushes.
    fn count(&mut self, bytes: &mut Vec<u8>, audit: &mut Audit, after: Option<u64>) {
        if self.may_count {
            self.ask(bytes, &["INFO", "commandstats"], Question::Flushes(after));
        } else {
            self.watched.flushes(audit, None, after);
        }
    }

    /// Returns the keys to read: those that changed and a few that did not, and of both those
    /// that were not read for longest.
    fn due(&self, audit: &Audit) -> Vec<Id> {
        let node = audit.nodes.get(self.node);
        let is_held = |id: &Id| {
            let lock = node.and_then(|node| node.locks.get(&id.0)?.get(&id.1));
            lock.is_some_and(|lock| lock.hold.is_some())
        };
        let (mut changed, mut quiet) = (Vec::new(), Vec::new());
        for (id, seen) in &self.watched.keys {
            if seen.is_dirty {
                changed.push((seen.asked_at, id));
            } else if is_held(id) {
                quiet.push((seen.asked_at, id));
            }
        }
        let mut ids = Vec::new();
        for (mut keys, max) in [(changed, READS_MAX), (quiet, QUIET_MAX)] {
            keys.sort_unstable();
            ids.extend(keys.into_iter().take(max).map(|(_, id)| id.clone()));
        }
        // Each database is selected once.
        ids.sort_unstable();
        ids
    }

    /// Takes bytes of the server.
    ///
    /// # Errors
    /// If the server refuses a request that the audit cannot do without.
    pub fn take(&mut self, audit: &mut Audit, bytes: &[u8], at_us: i64) -> Result<(), Stop> {
        self.reader.feed(bytes);
        let no_reply = |_| Stop::Broken("it sends no replies of Redis".to_owned());
        while let Some(item) = self.reader.next().map_err(no_reply)? {
            match item {
                Item::Push(items) => self.pushed(audit, &items, at_us),
                item => self.replied(audit, item, at_us)?,
            }
            let Audit { nodes, findings, problems, .. } = &mut *audit;
            if let Some(node) = nodes.get_mut(self.node) {
                node.now_us = at_us;
                node.first_us.get_or_insert(at_us);
                node.sweep(findings);
                node.commands += std::mem::take(&mut self.watched.new_events);
                if std::mem::take(&mut self.watched.is_full) {
                    let what = format!("names a key beyond the {KEYS_MAX} that are watched");
                    problems.add(&node.name, (node.commands, Unit::Event), &what);
                }
            }
        }
        Ok(())
    }

    /// Takes a message: an event, or the confirmation of a subscription.
    fn pushed(&mut self, audit: &mut Audit, items: &[Item], at_us: i64) {
        match items {
            [kind, _, channel, event] if kind.text() == b"pmessage" => {
                if let Some(id) = id_of(channel.text()) {
                    self.watched.event(audit, id, event.text(), at_us);
                }
            }
            [kind, ..] if kind.text() == b"psubscribe" => {
                if matches!(self.asked.front(), Some(Question::Subscribe)) {
                    self.asked.pop_front();
                    self.unsubscribed = self.unsubscribed.saturating_sub(1);
                }
            }
            _ => {}
        }
    }

    fn replied(&mut self, audit: &mut Audit, item: Item, at_us: i64) -> Result<(), Stop> {
        let Some(question) = self.asked.pop_front() else {
            return Err(Stop::Broken("it sends replies that nobody asked for".to_owned()));
        };
        match (question, item) {
            (question, Item::Error(why)) => return self.refused(audit, question, &why, at_us),
            (Question::Classes, Item::List(items)) => {
                self.lacks = lacking(items.get(1).map_or(&[], Item::text));
            }
            (Question::Flushes(after), item) => {
                self.watched.flushes(audit, Some(flushes(item.text())), after);
            }
            (Question::Databases, item) => {
                let patterns: Vec<Option<String>> = match audit.settings.locks.as_slice() {
                    [] => vec![None],
                    patterns => patterns.iter().map(|pattern| Some(glob(pattern))).collect(),
                };
                let left = databases(item.text()).into_iter().rev();
                self.search.left =
                    left.flat_map(|db| patterns.iter().map(move |pattern| (db, pattern.clone()))).collect();
            }
            (Question::Scan, Item::List(items)) => {
                let [cursor, keys] = <[Item; 2]>::try_from(items).unwrap_or([Item::Null, Item::Null]);
                self.search.cursor = cursor.text().to_vec();
                let db = self.db;
                for key in keys.flat() {
                    self.watched.found(audit, (db, key.text().into()));
                }
                if matches!(self.search.cursor.as_slice(), b"" | b"0") {
                    self.search.cursor.clear();
                    self.search.left.pop();
                }
            }
            (Question::Scan, _) => self.search = Search::default(),
            (Question::Type(id), Item::Text(kind)) => self.watched.is_of_type(&id, &kind),
            (Question::Lives(id), Item::Integer(ms)) => self.watched.lives(&id, ms),
            (Question::Value(id, is_hash), item) => {
                let value = match is_hash {
                    false => Some((String::from_utf8_lossy(item.text()).into_owned(), 1)),
                    true => match item.flat().as_slice() {
                        [owner, levels] => {
                            let levels = std::str::from_utf8(levels.text()).ok();
                            let levels = levels.and_then(|levels| levels.parse().ok()).unwrap_or(1);
                            Some((String::from_utf8_lossy(owner.text()).into_owned(), levels))
                        }
                        [] => Some((String::new(), 1)),
                        _ => None,
                    },
                };
                self.watched.read(audit, &id, value, at_us);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes an error in place of a reply.
    fn refused(&mut self, audit: &mut Audit, question: Question, why: &str, at_us: i64) -> Result<(), Stop> {
        let begins = matches!(question, Question::Hello | Question::Subscribe | Question::Select);
        let is_missing = if begins { !is_passing(why) } else { is_lasting(why) };
        // The audit can do without a name.
        if is_missing && !matches!(question, Question::Name) {
            let (right, what) = question.needs(why);
            audit.lacks(self.node, right, why, what);
        }
        let says = || format!("the server refuses: {}", key(why.as_bytes()));
        match question {
            _ if begins && is_missing => return Err(Stop::Refused(says())),
            _ if begins => return Err(Stop::Broken(says())),
            Question::Type(_) | Question::Lives(_) | Question::Value(..) if is_missing && !is_of_key(why) => {
                return Err(Stop::Refused(says()));
            }
            Question::Type(id) | Question::Value(id, _) => {
                self.watched.unread(audit, &id, why.starts_with("WRONGTYPE"), at_us);
            }
            Question::Flushes(after) => {
                self.may_count = false;
                self.watched.flushes(audit, None, after);
            }
            Question::Scan => self.search = Search::default(),
            // The reply to the read that follows PTTL is an error, too.
            _ => {}
        }
        Ok(())
    }

    fn ask(&mut self, bytes: &mut Vec<u8>, words: &[&str], question: Question) {
        bytes.extend_from_slice(&request(words));
        self.asked.push_back(question);
    }

    fn ask_key(&mut self, bytes: &mut Vec<u8>, words: &[&str], at: usize, question: Question, key: &[u8]) {
        bytes.extend_from_slice(format!("*{}\r\n", words.len() + 1).as_bytes());
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        for word in words[..at].iter().chain([&key]).chain(&words[at..]) {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.asked.push_back(question);
    }

    /// Asks for the owner and the expiry of a key, or first for its type.
    fn read(&mut self, bytes: &mut Vec<u8>, id: Id) {
        let Some(seen) = self.watched.keys.get_mut(&id) else { return };
        seen.is_asked = true;
        let is_hash = seen.is_hash;
        self.select(bytes, id.0);
        let key = id.1.clone();
        let Some(is_hash) = is_hash else {
            return self.ask_key(bytes, &["TYPE"], 1, Question::Type(id), &key);
        };
        self.ask_key(bytes, &["PTTL"], 1, Question::Lives(id.clone()), &key);
        // The reply to either command is bounded, even if the key is no lock.
        let words = if is_hash { ["HRANDFIELD", "2", "WITHVALUES"] } else { ["GETRANGE", "0", VALUE_END] };
        self.ask_key(bytes, &words, 1, Question::Value(id, is_hash), &key);
    }

    fn select(&mut self, bytes: &mut Vec<u8>, db: u32) {
        if self.db != db {
            self.db = db;
            self.ask(bytes, &["SELECT", &db.to_string()], Question::Select);
        }
    }

    fn scan(&mut self, bytes: &mut Vec<u8>) {
        let Some((db, pattern)) = self.search.left.last().cloned() else { return };
        self.select(bytes, db);
        let cursor = String::from_utf8_lossy(&self.search.cursor).into_owned();
        let mut words = vec!["SCAN", if cursor.is_empty() { "0" } else { &cursor }, "COUNT", SCANNED];
        match &pattern {
            Some(pattern) => words.extend(["MATCH", pattern]),
            // Only the hashes of Redisson are known without a pattern.
            None => words.extend(["TYPE", "hash"]),
        }
        self.ask(bytes, &words, Question::Scan);
    }
}

/// Returns the key of a channel `__keyspace@<db>__:<key>`.
fn id_of(channel: &[u8]) -> Option<Id> {
    let rest = channel.strip_prefix(b"__keyspace@")?;
    let end = rest.windows(3).position(|three| three == b"__:")?;
    let db = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some((db, rest[end + 3..].into()))
}

/// Returns the classes that a setting lacks.
fn lacking(setting: &[u8]) -> Option<String> {
    let setting = String::from_utf8_lossy(setting);
    let has_all = setting.contains('A');
    let is_set = |class: &char| setting.contains(*class) || has_all && *class != 'K';
    let lacks = !CLASSES.chars().all(|class| is_set(&class));
    lacks.then(|| {
        format!(
            "notify-keyspace-events is \"{setting}\": the events of locks need \
             CONFIG SET notify-keyspace-events {CLASSES}, which the audit does not send"
        )
    })
}

/// Returns the number of commands that delete or exchange all keys of a database.
fn flushes(info: &[u8]) -> u64 {
    let info = String::from_utf8_lossy(info);
    let count = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let digits = rest.split(',').next()?;
        matches!(name, "flushall" | "flushdb" | "swapdb").then(|| digits.parse::<u64>().ok()).flatten()
    };
    info.lines().filter_map(count).fold(0, u64::saturating_add)
}

/// Returns the databases that have keys.
fn databases(info: &[u8]) -> Vec<u32> {
    let info = String::from_utf8_lossy(info);
    let number = |line: &str| line.strip_prefix("db")?.split(':').next()?.parse().ok();
    info.lines().filter_map(number).take(DATABASES).collect()
}

#[cfg(test)]
mod tests;
