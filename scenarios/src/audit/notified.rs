//! One connection to a server that is audited gently: by keyspace events and reads, without
//! MONITOR.
//!
//! The connection speaks RESP3, so events and replies share it. At an interval the audit asks for
//! the counters of flushes and reads the keys that changed, as many as a bound allows. It sends no
//! command that changes data or the server's configuration.

use std::collections::VecDeque;

use super::{
    capture::Unit,
    engine::Audit,
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
    pub fn take(&mut self, audit: &mut Audit, bytes: &[u8], at_us: i64) -> Result<(), String> {
        self.reader.feed(bytes);
        while let Some(item) = self.reader.next().map_err(|_| "it sends no replies of Redis".to_owned())? {
            match item {
                Item::Push(items) => self.pushed(audit, &items, at_us),
                item => self.replied(audit, item, at_us)?,
            }
            if let Some(node) = audit.nodes.get_mut(self.node) {
                node.now_us = at_us;
                node.first_us.get_or_insert(at_us);
                node.commands += std::mem::take(&mut self.watched.new_events);
                if std::mem::take(&mut self.watched.is_full) {
                    let what = format!("names a key beyond the {KEYS_MAX} that are watched");
                    audit.problems.add(&node.name, (node.commands, Unit::Event), &what);
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

    fn replied(&mut self, audit: &mut Audit, item: Item, at_us: i64) -> Result<(), String> {
        let Some(question) = self.asked.pop_front() else {
            return Err("it sends replies that nobody asked for".to_owned());
        };
        match (question, item) {
            (Question::Hello | Question::Subscribe | Question::Select, Item::Error(why)) => {
                return Err(format!("the server refuses: {why}"));
            }
            (Question::Classes, Item::List(items)) => {
                self.lacks = lacking(items.get(1).map_or(&[], Item::text));
            }
            (Question::Flushes(after), Item::Error(_)) => {
                self.may_count = false;
                self.watched.flushes(audit, None, after);
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
                    self.watched.found((db, key.text().into()));
                }
                if matches!(self.search.cursor.as_slice(), b"" | b"0") {
                    self.search.cursor.clear();
                    self.search.left.pop();
                }
            }
            (Question::Scan, _) => self.search = Search::default(),
            (Question::Type(id), Item::Text(kind)) => self.watched.is_of_type(&id, &kind),
            (Question::Lives(id), Item::Integer(ms)) => self.watched.lives(&id, ms),
            // The reply to the read that follows is an error, too.
            (Question::Lives(_), _) => {}
            (Question::Type(id) | Question::Value(id, _), Item::Error(why)) => {
                if why.starts_with("NOPERM") {
                    return Err(format!("the server refuses: {why}"));
                }
                self.watched.unread(audit, &id, why.starts_with("WRONGTYPE"), at_us);
            }
            (Question::Value(id, is_hash), item) => {
                let value = match is_hash {
                    false => Some((String::from_utf8_lossy(item.text()).into_owned(), 1)),
                    true => match item.flat().as_slice() {
                        [owner, levels] => {
                            let levels = std::str::from_utf8(levels.text()).ok();
                            let levels = levels.and_then(|levels| levels.parse().ok()).unwrap_or(1);
                            Some((String::from_utf8_lossy(owner.text()).into_owned(), levels))
                        }
                        _ => None,
                    },
                };
                self.watched.read(audit, &id, value, at_us);
            }
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
        // Both are bounded, also if the key is no lock.
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
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::audit::{Settings, Summary};

    #[test]
    fn the_setting_has_the_classes_or_says_what_it_lacks() {
        for enough in ["AKE", "g$hxeK", "KA", "Kg$hxe", "g$lshzxeKEtmdn"] {
            assert_eq!(lacking(enough.as_bytes()), None, "{enough}");
        }
        for less in ["", "A", "AE", "Kg$hx", "Ex"] {
            assert!(lacking(less.as_bytes()).is_some_and(|why| why.contains("Kg$hxe")), "{less}");
        }
    }

    #[test]
    fn channels_counters_and_patterns() {
        assert_eq!(id_of(b"__keyspace@3__:a__:b"), Some((3, (*b"a__:b").into())));
        assert_eq!((id_of(b"__keyspace@x__:a"), id_of(b"__keyevent@0__:del")), (None, None));
        let info = b"# Commandstats\r\ncmdstat_flushall:calls=2,usec=81\r\ncmdstat_set:calls=9,usec=1\r\n\
            cmdstat_flushdb:calls=1,usec=1\r\ncmdstat_swapdb:calls=x,usec=1\r\n";
        assert_eq!((flushes(info), flushes(b"")), (3, 0));
        assert_eq!(databases(b"# Keyspace\r\ndb0:keys=1,expires=0\r\ndb12:keys=5\r\n"), [0, 12]);
        assert_eq!(glob(r"a[b]*\?"), r"a\[b\]*\\?");
    }

    /// A server whose keys and events a test writes.
    struct Server {
        audit: Audit,
        gentle: Gentle,
        keys: BTreeMap<String, (String, i64)>,
        flushes: u64,
        now_us: i64,
    }

    const BEGIN_US: i64 = 1_700_000_000_000_000;

    impl Server {
        fn new(locks: &[&str]) -> Server {
            let locks = locks.iter().map(|lock| (*lock).to_owned()).collect();
            let mut audit = Audit::new(Settings { locks, reveal: true, ..Settings::default() });
            let node = audit.node("n1");
            let (gentle, bytes) = Gentle::begin(&mut audit, node);
            let keys = BTreeMap::new();
            let mut server = Server { audit, gentle, keys, flushes: 0, now_us: BEGIN_US };
            server.feed(b"%1\r\n$5\r\nproto\r\n:3\r\n");
            server.answer(&bytes);
            assert!(server.gentle.is_ready());
            assert_eq!(server.gentle.lacks(), None);
            server
        }

        fn feed(&mut self, bytes: &[u8]) {
            self.gentle.take(&mut self.audit, bytes, self.now_us).expect("it is allowed");
        }

        /// Answers requests as a server does.
        fn answer(&mut self, bytes: &[u8]) {
            let text = String::from_utf8(bytes.to_vec()).expect("text");
            let mut lines = text.split("\r\n");
            while let Some(count) = lines.next().and_then(|line| line.strip_prefix('*')) {
                let count: usize = count.parse().expect("a count");
                let words: Vec<&str> = (0..count).map(|_| lines.nth(1).expect("a word")).collect();
                let key = words.get(1).and_then(|key| self.keys.get(*key)).cloned();
                let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
                let reply = match (words[0], key) {
                    ("CONFIG", _) => format!("%1\r\n{}{}", bulk("notify-keyspace-events"), bulk("AKE")),
                    ("PSUBSCRIBE", _) => format!(">3\r\n{}{}:1\r\n", bulk("psubscribe"), bulk(words[1])),
                    ("INFO", _) if words[1] == "keyspace" => bulk("# Keyspace\r\ndb0:keys=1"),
                    ("INFO", _) => bulk(&format!("cmdstat_flushall:calls={},usec=1", self.flushes)),
                    ("SCAN", _) => {
                        let keys: Vec<String> = self.keys.keys().map(|key| bulk(key)).collect();
                        format!("*2\r\n$1\r\n0\r\n*{}\r\n{}", keys.len(), keys.concat())
                    }
                    ("TYPE", Some((value, _))) if value.contains(':') => "+hash\r\n".to_owned(),
                    ("TYPE", Some(_)) => "+string\r\n".to_owned(),
                    ("TYPE", None) => "+none\r\n".to_owned(),
                    ("PTTL", key) => format!(":{}\r\n", key.map_or(-2, |(_, ms)| ms)),
                    ("GETRANGE", key) => bulk(&key.map_or_else(String::new, |(value, _)| value)),
                    ("HRANDFIELD", Some((value, _))) => format!("*1\r\n*2\r\n{}{}", bulk(&value), bulk("1")),
                    ("HRANDFIELD", None) => "*0\r\n".to_owned(),
                    _ => "+OK\r\n".to_owned(),
                };
                self.feed(reply.as_bytes());
            }
        }

        /// Sends events on a key, a millisecond apart.
        fn events(&mut self, key: &str, events: &str) {
            for event in events.split(' ') {
                self.now_us += 1_000;
                let channel = format!("__keyspace@0__:{key}");
                let message = format!(
                    ">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n${}\r\n{channel}\r\n${}\r\n{event}\r\n",
                    channel.len(),
                    event.len()
                );
                self.feed(message.as_bytes());
            }
        }

        fn set(&mut self, key: &str, value: &str, ms: i64) {
            self.keys.insert(key.to_owned(), (value.to_owned(), ms));
        }

        /// Polls, a while after the last event.
        fn poll(&mut self, after_ms: i64) {
            self.now_us += after_ms * 1_000;
            let bytes = self.gentle.poll(&mut self.audit);
            self.answer(&bytes);
        }

        fn summary(&mut self) -> Summary {
            self.poll(0);
            self.audit.finish();
            self.audit.summary()
        }

        /// Returns the findings and notices: kind, lock and owner.
        fn found(&mut self) -> Vec<String> {
            let summary = self.summary();
            let all = summary.findings.iter().chain(&summary.notices);
            all.map(|one| format!("{} {} {}", one.kind.title(), one.lock, one.owner)).collect()
        }
    }

    #[test]
    fn a_hold_is_known_by_its_events_and_reads() {
        let mut server = Server::new(&["lock:*"]);
        server.events("lock:a", "set expire");
        server.set("lock:a", "one", 29_900);
        server.poll(100);
        server.events("lock:a", "expire");
        server.set("lock:a", "one", 29_990);
        server.poll(10);
        let row = server.summary().locks.remove(0);
        assert_eq!((row.lock.as_str(), row.holder.as_deref(), row.renewed), ("lock:a", Some("one"), 1));
        assert_eq!(row.left_ms, Some(29_990));
        server.events("lock:a", "del");
        server.keys.clear();
        // A hold that no read sees.
        server.events("lock:a", "set expire del");
        server.poll(10);
        assert_eq!(server.found(), [""; 0]);
        let row = server.summary().locks.remove(0);
        assert_eq!((row.holder, row.grants, row.releases, row.renewals), (None, 2, 2, 1));
        assert_eq!(row.holds.expect("two").count, 2);
    }

    #[test]
    fn another_owner_without_an_end_is_overwritten() {
        let mut server = Server::new(&["lock:*"]);
        server.events("lock:a", "set expire");
        server.set("lock:a", "one", 29_900);
        server.poll(100);
        server.events("lock:a", "set expire");
        server.set("lock:a", "two", 29_900);
        server.poll(100);
        assert_eq!(server.found(), ["overwritten lock:a one"]);
        assert_eq!(server.summary().locks[0].holder.as_deref(), Some("two"));
    }

    #[test]
    fn an_end_in_between_is_no_finding_and_expiry_is_a_notice() {
        let mut server = Server::new(&["lock:*"]);
        for (owner, end) in [("one", "del"), ("two", "expired"), ("three", "expired"), ("four", "evicted")] {
            server.events("lock:a", "set expire");
            server.set("lock:a", owner, 1_000);
            server.poll(100);
            server.events("lock:a", end);
            server.keys.clear();
        }
        assert_eq!(server.found(), ["lease ended lock:a two", "ended without a command lock:a four"]);
        assert_eq!(server.summary().notices[0].times, 2);
    }

    #[test]
    fn a_flush_has_no_event_and_its_counter_shows_it() {
        let mut server = Server::new(&["lock:*"]);
        server.events("lock:a", "set expire");
        server.events("lock:b", "set expire");
        server.set("lock:a", "one", 29_900);
        server.set("lock:b", "two", 29_900);
        server.poll(100);
        server.keys.clear();
        server.flushes += 1;
        server.events("lock:a", "set expire");
        server.set("lock:a", "three", 29_900);
        server.poll(100);
        server.poll(500);
        assert_eq!(server.found(), ["flushed lock:a one", "flushed lock:b two"]);
        assert_eq!(server.summary().locks[0].holder.as_deref(), Some("three"));
    }

    #[test]
    fn a_lock_without_an_expiry_is_found_by_a_search() {
        let mut server = Server::new(&["lock:*"]);
        server.set("lock:old", "one", -1);
        for _ in 0..6 {
            server.poll(500);
        }
        assert_eq!(server.found(), ["no expiry lock:old one"]);
        let row = server.summary().locks.remove(0);
        assert_eq!((row.since, row.left_ms), (None, None));
    }

    #[test]
    fn a_read_that_an_event_splits_is_repeated() {
        let mut server = Server::new(&["lock:*"]);
        server.poll(0);
        server.events("lock:a", "set expire");
        let bytes = server.gentle.poll(&mut server.audit);
        assert!(String::from_utf8_lossy(&bytes).contains("GETRANGE"));
        server.feed(b"$0\r\n\r\n:30000\r\n");
        server.events("lock:a", "del set expire");
        server.feed(b"$3\r\ntwo\r\n");
        assert_eq!(server.audit.summary().locks[0].holder, None);
        server.set("lock:a", "two", 30_000);
        server.poll(1);
        let row = server.summary().locks.remove(0);
        assert_eq!((row.holder.as_deref(), row.grants), (Some("two"), 2));
    }

    #[test]
    fn without_patterns_only_hashes_of_redisson_are_locks() {
        let owner = "285475da-9152-4c83-822a-67ee2f116a79:52";
        let mut server = Server::new(&[]);
        server.events("cache", "set expire");
        server.events("counters", "hincrby");
        server.events("stock", "hincrby expire");
        server.set("cache", "value", 30_000);
        server.set("counters", "a:b", -1);
        server.set("stock", owner, 30_000);
        server.poll(10);
        server.poll(10);
        let summary = server.summary();
        assert_eq!(summary.locks.len(), 1);
        let row = &summary.locks[0];
        assert_eq!(
            (row.lock.as_str(), row.holder.as_deref(), row.library),
            ("stock", Some(owner), Some("Redisson"))
        );
        assert!(summary.text().contains("keyspace events"), "{}", summary.text());
    }

    #[test]
    fn a_refused_subscription_is_an_error() {
        let mut audit = Audit::new(Settings::default());
        let node = audit.node("n1");
        let (mut gentle, _) = Gentle::begin(&mut audit, node);
        let replies =
            b"%1\r\n$5\r\nproto\r\n:3\r\n-NOPERM no\r\n-NOPERM no\r\n-NOPERM this user has no right\r\n";
        let refused = gentle.take(&mut audit, replies, BEGIN_US).expect_err("it is refused");
        assert_eq!(refused, "the server refuses: NOPERM this user has no right");
        assert_eq!(hello(&[]), b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
        let login = hello(&["secret".to_owned()]);
        assert!(login.ends_with(b"$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n"));
    }
}
