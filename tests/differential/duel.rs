//! The same steps on both servers, and the first difference between what they answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    clock::Stopwatch,
    panics,
    record::Record,
    rule::{self, Rule},
    servers::{Play, Real, Received, Simulated},
    steps::{Step, name},
    wire::{Kind, Wire, command},
};

/// Commands that are sent at once.
const BATCH: usize = 64;

/// Bytes that are sent at once; what `redis-server` reads at once, so that it cannot come back to a connection later.
const BATCH_BYTES: usize = 12 << 10;

/// The connection that asks about what the others did.
const CONTROL: &str = "control";

/// Something that the two servers do not agree on.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    /// The step it was seen at; beyond the last one when it was seen in the keys afterwards.
    pub(crate) at: usize,
    /// Steps that show it after all others, when it was seen in the keys.
    pub(crate) show: Vec<Step>,
    /// The step, and what either server answered.
    pub(crate) text: String,
}

/// Both servers.
pub(crate) struct Duel {
    real: Real,
    sim: Simulated,
    clock: Stopwatch,
    /// How long the real server may take.
    pub(crate) patience: Duration,
    /// Connections in use.
    conns: Vec<usize>,
    /// Those that a server has closed; they are made anew when they are next written to.
    closed: Vec<usize>,
    /// Those that wait for something.
    waiting: Vec<usize>,
    /// Those that may have selected another database, where nobody looks how a key is kept.
    elsewhere: BTreeSet<usize>,
    /// The rules of the commands that a connection has queued.
    queued: BTreeMap<usize, Vec<Rule>>,
    /// What was sent and answered, as a transcript, when wanted.
    pub(crate) record: Option<Record>,
    /// The last difference, for when the real server does not survive it.
    last: String,
    /// Commands played so far.
    pub(crate) played: u64,
}

/// What a step brought on a connection of the simulator.
struct Group {
    step: usize,
    conn: usize,
    rule: Rule,
    frames: Vec<Received>,
}

impl Duel {
    pub(crate) fn start() -> Duel {
        let mut real = Real::start();
        // Whether a key that expired is still counted would depend on the moment.
        real.send(CONTROL, &command(&words("DEBUG SET-ACTIVE-EXPIRE 0")));
        real.receive(CONTROL, Duration::from_secs(10));
        let clock = Stopwatch::start();
        let sim = Simulated::start_at(clock.wall_ms());
        Duel {
            real,
            sim,
            clock,
            patience: Duration::from_secs(5),
            conns: Vec::new(),
            closed: Vec::new(),
            waiting: Vec::new(),
            elsewhere: BTreeSet::new(),
            queued: BTreeMap::new(),
            record: None,
            last: String::new(),
            played: 0,
        }
    }

    /// Both servers as if they had just started.
    fn reset(&mut self) {
        for conn in std::mem::take(&mut self.conns) {
            self.real.close(&name(conn));
        }
        self.closed.clear();
        self.waiting.clear();
        self.elsewhere.clear();
        self.queued.clear();
        let lines = [
            "CLIENT KILL TYPE normal SKIPME yes",
            "CLIENT KILL TYPE pubsub SKIPME yes",
            "SELECT 0",
            "FLUSHALL",
            "SCRIPT FLUSH",
            "FUNCTION FLUSH",
            "CONFIG SET hash-max-listpack-entries 512 hash-max-listpack-value 64 zset-max-listpack-entries 128 \
             zset-max-listpack-value 64 set-max-intset-entries 512 stream-node-max-entries 100 \
             list-max-listpack-size -2 hll-sparse-max-bytes 3000 notify-keyspace-events \"\" maxmemory 0 \
             proto-max-bulk-len 512mb",
            "FLUSHALL",
        ];
        let lines = lines.map(|line| command(&words(line)));
        self.real.send(CONTROL, &lines.concat());
        for _ in lines {
            let got = self.real.receive(CONTROL, Duration::from_secs(10));
            assert!(
                matches!(got, Received::Reply(Wire::Status(_) | Wire::Integer(_))),
                "redis-server does not reset: {got:?}\n{}",
                self.last
            );
        }
        self.clock = Stopwatch::start();
        self.sim = Simulated::start_at(self.clock.wall_ms());
        self.sim.send(CONTROL, &command(&words("DEBUG SET-ACTIVE-EXPIRE 0")));
        self.sim.receive(CONTROL, Duration::ZERO);
    }

    /// Plays all steps from an empty state, then compares the keys.
    pub(crate) fn play(&mut self, steps: &[Step]) -> Option<Difference> {
        self.reset();
        let mut at = 0;
        while at < steps.len() {
            let end = self.batch_end(steps, at);
            if let Some(difference) = self.batch(steps, at, end) {
                return Some(difference);
            }
            at = end;
        }
        self.silence(steps.len()).or_else(|| self.keys(steps.len()))
    }

    fn batch_end(&self, steps: &[Step], at: usize) -> usize {
        let Some((conn, first)) = steps[at].bytes() else { return at + 1 };
        // Bytes that are no command may close the connection at once, with all that was to be written before.
        if may_wait(&steps[at]) || matches!(steps[at], Step::Raw(..)) {
            return at + 1;
        }
        let mut size = first.len();
        let mut end = at + 1;
        let most = if self.record.is_some() { 1 } else { BATCH };
        while end < steps.len() && end - at < most && size < BATCH_BYTES {
            if matches!(steps[end], Step::Raw(..)) {
                break;
            }
            match steps[end].bytes() {
                Some((other, bytes)) if other == conn => size += bytes.len(),
                _ => break,
            }
            end += 1;
            if may_wait(&steps[end - 1]) {
                break;
            }
        }
        end
    }

    /// Plays steps that go to one connection, or one that goes to none.
    fn batch(&mut self, steps: &[Step], at: usize, end: usize) -> Option<Difference> {
        self.played += (end - at) as u64;
        match &steps[at] {
            Step::Sleep(ms) => {
                let time = Duration::from_millis(*ms);
                self.real.sleep(time);
                self.write_down(&steps[at]);
            }
            Step::Close(conn) => {
                self.hang_up(*conn);
                self.barrier(1);
            }
            // When the commands behind one that waits run depends on when the server reads on.
            Step::Send(conn, _) | Step::Raw(conn, _) if self.waiting.contains(conn) => return None,
            Step::Send(conn, _) | Step::Raw(conn, _) => {
                if self.closed.contains(conn) {
                    self.hang_up(*conn);
                }
                if !self.conns.contains(conn) {
                    self.conns.push(*conn);
                }
                self.write_down(&steps[at]);
                let bytes: Vec<u8> =
                    steps[at..end].iter().filter_map(Step::bytes).flat_map(|(_, b)| b).collect();
                self.real.send(&name(*conn), &bytes);
            }
        }
        let groups = match self.simulate(steps, at, end) {
            Ok(groups) => groups,
            Err((step, why)) => {
                let text = format!("{}\n  the simulator {why}", steps[step].line());
                return Some(Difference { at: step, show: Vec::new(), text });
            }
        };
        for group in &groups {
            if let Some(text) = self.compare(steps, group) {
                let sent: Vec<String> = steps[at..end].iter().map(Step::line).collect();
                self.last = format!("{}\n{text}", sent.join("\n"));
                return Some(Difference { at: group.step, show: Vec::new(), text });
            }
        }
        if let Some((conn, bytes)) = steps[end - 1].bytes() {
            // What brings no reply has perhaps not been read yet; the next connection must come after it.
            let answered = groups.last().is_some_and(|group| group.conn == conn && group.step == end - 1);
            if !answered {
                self.barrier(2 + bytes.len() / (16 << 10));
            }
        }
        None
    }

    /// The simulator's part, at the time that the real server has reached.
    fn simulate(&mut self, steps: &[Step], at: usize, end: usize) -> Result<Vec<Group>, (usize, String)> {
        let mut groups = Vec::new();
        let passed = self.clock.lap();
        for (step, action) in steps.iter().enumerate().take(end).skip(at) {
            let time = if step == at { passed } else { Duration::ZERO };
            let played = panics::catch(|| self.simulate_one(action, time));
            match played {
                Ok((conn, rule, frames)) => {
                    for (of, frames) in frames {
                        let rule = if Some(of) == conn { rule.clone() } else { Rule::Exact };
                        groups.push(Group { step, conn: of, rule, frames });
                    }
                }
                Err(why) => return Err((step, why)),
            }
        }
        // The own connection's replies come last of each step, so that the last group tells whether it answered.
        Ok(groups)
    }

    #[expect(clippy::type_complexity, reason = "the parts of a group, before it has a step")]
    fn simulate_one(
        &mut self,
        step: &Step,
        time: Duration,
    ) -> (Option<usize>, Rule, Vec<(usize, Vec<Received>)>) {
        self.sim.sleep(time);
        let mut own = None;
        let mut rule = Rule::Exact;
        if let Some((conn, bytes)) = step.bytes() {
            own = Some(conn);
            rule = rule::of(step.words());
            if step.words().first().is_some_and(|word| word.eq_ignore_ascii_case(b"select")) {
                self.elsewhere.insert(conn);
            }
            if let Rule::IfTable(inner) = &rule {
                let key = step.words().get(1).cloned().unwrap_or_default();
                let sorts = step.words()[0].to_ascii_uppercase().starts_with(b"SORT");
                rule = if self.is_table(conn, key, sorts) { (**inner).clone() } else { Rule::Exact };
            }
            self.sim.send(&name(conn), &bytes);
        }
        let mut found = Vec::new();
        for at in 0..self.conns.len() {
            let conn = self.conns[at];
            if self.closed.contains(&conn) {
                continue;
            }
            let mut frames = Vec::new();
            loop {
                match self.sim.receive(&name(conn), Duration::ZERO) {
                    Received::Nothing => break,
                    Received::Closed => {
                        frames.push(Received::Closed);
                        self.closed.push(conn);
                        break;
                    }
                    reply => frames.push(reply),
                }
            }
            if !frames.is_empty() {
                found.push((conn, frames));
            }
        }
        found.sort_by_key(|(conn, _)| Some(*conn) == own);
        self.waiting.retain(|conn| !found.iter().any(|(answered, _)| answered == conn));
        if let Some(conn) = own.filter(|_| may_wait(step))
            && !found.iter().any(|(answered, _)| *answered == conn)
        {
            self.waiting.push(conn);
        }
        if let Some(conn) = own {
            let frames = found.iter().find(|(of, _)| *of == conn).map(|(_, frames)| &frames[..]);
            rule = self.queue(conn, step.words(), rule, frames.unwrap_or_default());
        }
        (own, rule, found)
    }

    /// Follows what a connection has queued; EXEC is compared by the rules of the commands in it.
    fn queue(&mut self, conn: usize, words: &[Vec<u8>], rule: Rule, frames: &[Received]) -> Rule {
        let queued = self.queued.entry(conn).or_default();
        let command = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        match (&command[..], frames.first()) {
            (_, Some(Received::Reply(Wire::Status(text)))) if text == b"QUEUED" => {
                queued.push(rule::of(words));
                Rule::Exact
            }
            (b"EXEC", _) => Rule::Exec(std::mem::take(queued)),
            // MULTI inside MULTI is refused, and what was queued stays.
            (b"MULTI" | b"DISCARD" | b"RESET", Some(Received::Reply(Wire::Status(_)))) => {
                queued.clear();
                rule
            }
            _ => rule,
        }
    }

    /// Whether the simulator may keep a key as a hash table.
    fn is_table(&mut self, conn: usize, key: Vec<u8>, sorts: bool) -> bool {
        if self.elsewhere.contains(&conn) {
            return true;
        }
        self.sim.send(CONTROL, &command(&[b"OBJECT".to_vec(), b"ENCODING".to_vec(), key]));
        let reply = self.sim.receive(CONTROL, Duration::ZERO);
        let Received::Reply(Wire::Bulk(encoding)) = reply else { return true };
        // What is sorted is a list, whose order counts, or a sorted set, which becomes a table before it is read.
        match &encoding[..] {
            b"listpack" => sorts,
            b"intset" | b"quicklist" => false,
            _ => true,
        }
    }

    fn compare(&mut self, steps: &[Step], group: &Group) -> Option<String> {
        let mut theirs = Vec::new();
        for ours in &group.frames {
            let got = self.real.receive(&name(group.conn), self.patience);
            let over = !matches!(got, Received::Reply(_)) || matches!(ours, Received::Closed);
            theirs.push(got);
            if over {
                break;
            }
        }
        if let Some(record) = &mut self.record {
            record.answers(&steps[group.step], group.conn, &theirs, &group.rule);
        }
        if agree(&group.rule, steps[group.step].words(), &group.frames, &theirs) {
            return None;
        }
        let step = steps[group.step].line();
        let ours = shown(&group.frames);
        Some(format!(
            "{step}\n  on connection {}, by the rule {:?}, the simulator answers\n{ours}\n  and redis-server\n{}",
            name(group.conn),
            group.rule,
            shown(&theirs)
        ))
    }

    fn write_down(&mut self, step: &Step) {
        if let Some(record) = &mut self.record {
            record.step(step);
        }
    }

    fn hang_up(&mut self, conn: usize) {
        self.write_down(&Step::Close(conn));
        self.real.close(&name(conn));
        self.sim.close(&name(conn));
        self.conns.retain(|other| *other != conn);
        self.closed.retain(|other| *other != conn);
        self.waiting.retain(|other| *other != conn);
        self.queued.remove(&conn);
    }

    /// Waits until the real server has read all that was sent to it before, and written what it answers.
    fn barrier(&mut self, times: usize) {
        for _ in 0..times {
            self.real.send(CONTROL, b"PING\r\n");
            let got = self.real.receive(CONTROL, Duration::from_secs(20));
            assert!(matches!(got, Received::Reply(_)), "redis-server does not answer PING: {got:?}");
        }
    }

    /// Whether the real server has said something more than the simulator.
    fn silence(&mut self, at: usize) -> Option<Difference> {
        self.barrier(2);
        for conn in self.conns.clone() {
            if self.closed.contains(&conn) {
                continue;
            }
            let got = self.real.receive(&name(conn), Duration::ZERO);
            if got != Received::Nothing {
                let text = format!(
                    "at the end, on connection {}, the simulator says nothing more, and redis-server\n{}",
                    name(conn),
                    shown(&[got])
                );
                return Some(Difference { at: at.saturating_sub(1), show: Vec::new(), text });
            }
        }
        None
    }

    /// Compares every key of the databases in use.
    fn keys(&mut self, at: usize) -> Option<Difference> {
        const WATCHER: usize = 8;
        for db in 0..3 {
            let select = Step::Send(WATCHER, words(&format!("SELECT {db}")));
            let mut show = vec![select, Step::Send(WATCHER, words("KEYS *"))];
            if let Some(difference) = self.batch(&show, 0, 2) {
                return Some(Difference { at, show, ..difference });
            }
            self.sim.send(&name(WATCHER), &command(&words("KEYS *")));
            let Received::Reply(Wire::Items(_, keys)) = self.sim.receive(&name(WATCHER), Duration::ZERO)
            else {
                continue;
            };
            show.pop();
            for key in keys {
                let Wire::Bulk(key) = key else { continue };
                self.sim.send(&name(WATCHER), &command(&[b"TYPE".to_vec(), key.clone()]));
                let Received::Reply(Wire::Status(kind)) = self.sim.receive(&name(WATCHER), Duration::ZERO)
                else {
                    continue;
                };
                let whole = match &kind[..] {
                    b"string" => "GET ?",
                    b"hash" => "HGETALL ?",
                    b"list" => "LRANGE ? 0 -1",
                    b"set" => "SMEMBERS ?",
                    b"zset" => "ZRANGE ? 0 -1 WITHSCORES",
                    _ => "XINFO STREAM ? FULL 0",
                };
                for line in ["TYPE ?", whole, "OBJECT ENCODING ?", "PTTL ?"] {
                    let words = line.split(' ').map(|word| match word {
                        "?" => key.clone(),
                        word => word.as_bytes().to_vec(),
                    });
                    show.push(Step::Send(WATCHER, words.collect()));
                }
            }
            let mut from = 0;
            while from < show.len() {
                let end = self.batch_end(&show, from);
                if let Some(difference) = self.batch(&show, from, end) {
                    let show = vec![show[0].clone(), show[difference.at].clone()];
                    return Some(Difference { at, show, ..difference });
                }
                from = end;
            }
        }
        None
    }
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split_whitespace().map(|word| word.trim_matches('"').as_bytes().to_vec()).collect()
}

/// Whether a command is one of those that can wait.
fn may_wait(step: &Step) -> bool {
    let name = step.words().first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    name.starts_with(b"B") && !name.starts_with(b"BIT") || name.starts_with(b"XREAD") || name == b"WAIT"
}

/// What a client is sent because others publish; several to one client come in the order of a hash table.
fn is_message(received: &Received) -> bool {
    let Received::Reply(Wire::Items(Kind::Array | Kind::Push, items)) = received else { return false };
    matches!(items.first(), Some(Wire::Bulk(kind)) if kind.ends_with(b"message"))
}

fn agree(rule: &Rule, words: &[Vec<u8>], ours: &[Received], theirs: &[Received]) -> bool {
    if ours.len() != theirs.len() {
        return false;
    }
    let bare_unsubscribe =
        words.len() == 1 && words[0].to_ascii_uppercase().ends_with(b"UNSUBSCRIBE") && ours.len() > 1;
    if bare_unsubscribe {
        return without_counts(ours) == without_counts(theirs);
    }
    let in_order = |all: &[Received]| -> Vec<Received> {
        all.iter().filter(|received| !is_message(received)).cloned().collect()
    };
    let messages = |all: &[Received]| {
        let mut messages: Vec<String> = all
            .iter()
            .filter(|received| is_message(received))
            .map(|one| shown(std::slice::from_ref(one)))
            .collect();
        messages.sort();
        messages
    };
    let (one, other) = (in_order(ours), in_order(theirs));
    one.len() == other.len()
        && messages(ours) == messages(theirs)
        && one.iter().zip(&other).all(|(one, other)| match (one, other) {
            (Received::Reply(Wire::Items(Kind::Push, _)), _) => one == other,
            (Received::Reply(one), Received::Reply(other)) => rule.agree(one, other),
            (one, other) => one == other,
        })
}

/// The channels left, in order of their names, and how many remained each time.
fn without_counts(all: &[Received]) -> (Vec<String>, Vec<Wire>) {
    let (mut channels, mut counts) = (Vec::new(), Vec::new());
    for received in all {
        if let Received::Reply(Wire::Items(kind, items)) = received {
            let mut items = items.clone();
            counts.extend(items.pop());
            channels.push(shown(&[Received::Reply(Wire::Items(*kind, items))]));
        }
    }
    channels.sort();
    (channels, counts)
}

fn shown(all: &[Received]) -> String {
    let mut lines = Vec::new();
    for received in all {
        match received {
            Received::Reply(reply) => reply.lines(4, &mut lines),
            Received::Nothing => lines.push("    nothing".into()),
            Received::Closed => lines.push("    closed".into()),
        }
    }
    const MOST: usize = 60;
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("    and {more} lines more"));
    }
    lines.join("\n")
}
