//! Delivers a batch of steps together to the real server, then to the simulator.

use std::time::Duration;

use crate::{
    dialect,
    duel::{
        Difference, Duel, Owed,
        agree::{agree, is_answer, shown},
        connections::{may_wait, stands_alone},
    },
    panics,
    rule::{self, Rule},
    servers::{Play, Received},
    steps::{ANSWER, Step, encode, name},
    wire::Wire,
};

/// Most commands of a batch.
const BATCH: usize = 64;

/// Most bytes of a batch. `redis-server` reads as many at a time, so it need not return to a
/// connection later.
const BATCH_BYTES: usize = 12 << 10;

/// The frames that a step caused on one connection of the simulator.
pub(super) struct Group {
    step: usize,
    conn: usize,
    /// One rule for each frame.
    rules: Vec<Rule>,
    frames: Vec<Received>,
}

impl Duel {
    /// The bytes that a step writes; empty if it writes none.
    fn bytes(&self, step: &Step) -> Vec<u8> {
        step.bytes(&|conn| self.id(conn)).unwrap_or_default()
    }

    /// The end of the batch of steps that begins at `at`.
    pub(super) fn batch_end(&self, steps: &[Step], at: usize) -> usize {
        let Some(conn) = steps[at].conn() else { return at + 1 };
        // Commands queued behind a blocked one are read once it is unblocked; later steps must not
        // overtake them.
        let one = self.single || self.record.is_some() || !self.waiting.is_empty();
        // Invalid bytes may close the connection right away, with all replies still unwritten.
        if one || may_wait(steps[at].words()) || stands_alone(&steps[at]) {
            return at + 1;
        }
        let mut size = self.bytes(&steps[at]).len();
        let mut end = at + 1;
        while end < steps.len() && end - at < BATCH && size < BATCH_BYTES {
            if steps[end].conn() != Some(conn) || stands_alone(&steps[end]) {
                break;
            }
            size += self.bytes(&steps[end]).len();
            end += 1;
            if may_wait(steps[end - 1].words()) {
                break;
            }
        }
        end
    }

    /// Plays steps that all go to one connection, or one step that goes to none.
    pub(super) fn batch(&mut self, steps: &[Step], at: usize, end: usize) -> Option<Difference> {
        let step = &steps[at];
        // The bytes for the simulator if they differ from the step's own.
        let mut instead = None;
        match step {
            Step::Sleep(ms) => {
                self.real.sleep(Duration::from_millis(*ms));
                self.write_down(step);
            }
            Step::Close(conn) => {
                self.hang_up(*conn);
                self.barrier(1);
            }
            step => {
                let conn = step.conn()?;
                // A client with CLIENT REPLY OFF is not even disconnected for a protocol error;
                // waiting for it would never end.
                let lost = matches!(step, Step::Raw(..)) && self.silent.contains(&conn);
                // During a pause DUMP gets no reply, so its value cannot be carried across either.
                let lost = lost || matches!(step, Step::Cross(..)) && self.paused;
                // A step that was shrunk may have become a command that is not compared.
                let lost = lost || !dialect::compares(self.generation, step.words());
                if lost
                    || self.waiting.contains(&conn)
                    || kills(step.words(), self.paused, self.transacting.contains(&conn))
                {
                    return None;
                }
                if self.closed.contains(&conn) {
                    self.hang_up(conn);
                }
                if !self.conns.contains(&conn) {
                    self.open(conn);
                }
                instead = self.deliver(&steps[at..end], conn);
            }
        }
        self.played += steps[at..end].iter().map(|step| step.commands().len() as u64).sum::<u64>();
        let groups = match self.simulate(steps, at, end, instead.as_deref()) {
            Ok(groups) => groups,
            Err((step, why)) => {
                let text = format!("{}\n  the simulator {why}", steps[step].line());
                return Some(Difference { at: step, show: Vec::new(), text });
            }
        };
        for group in &groups {
            if let Some(text) = self.compare(steps, group) {
                return Some(Difference { at: group.step, show: Vec::new(), text });
            }
        }
        if let Some(conn) = steps[end - 1].conn() {
            // The real server may not have read a command without a reply yet; the next connection
            // must come after it.
            let answers = |group: &Group| {
                group.conn == conn && group.step == end - 1 && group.frames.iter().any(is_answer)
            };
            if !groups.last().is_some_and(answers) || !self.owed.get(&conn).is_none_or(|owed| owed.is_empty())
            {
                self.barrier(2 + self.bytes(&steps[end - 1]).len() / (16 << 10));
            }
        }
        self.died.then(|| {
            let text = format!("{}\n  redis-server ended, or hangs", steps[end - 1].line());
            Difference { at: end - 1, show: Vec::new(), text }
        })
    }

    /// Sends steps to the real server; returns the bytes for the simulator if they differ.
    fn deliver(&mut self, steps: &[Step], conn: usize) -> Option<Vec<u8>> {
        match &steps[0] {
            Step::Cross(_, ask, words) => {
                let (mut theirs, mut ours) = (payload(self.ask_real(ask)), payload(self.ask_sim(ask)));
                // The payload contains the order of a table, so both servers must restore the same
                // payload.
                if ask.get(1).is_some_and(|key| self.encoding(key).is_some_and(|of| of == b"hashtable")) {
                    if ours.len() % 2 == 0 {
                        theirs.clone_from(&ours);
                    } else {
                        ours.clone_from(&theirs);
                    }
                }
                let filled = |with: &Vec<u8>| -> Vec<Vec<u8>> {
                    words.iter().map(|word| if word == ANSWER { with } else { word }.clone()).collect()
                };
                self.write_down(&Step::Send(conn, filled(&theirs)));
                let id = |of: usize| self.id(of);
                let (to_real, to_sim) = (encode(&filled(&ours), &id), encode(&filled(&theirs), &id));
                self.real.send(&name(conn), &to_real);
                Some(to_sim)
            }
            Step::Pipeline(_, _, cuts) => {
                self.write_down(&steps[0]);
                let bytes = self.bytes(&steps[0]);
                let pieces = pieces(&bytes, cuts);
                for (at, piece) in pieces.iter().enumerate() {
                    if at > 0 {
                        // The server must read the previous piece by itself.
                        self.barrier(2);
                    }
                    self.real.send(&name(conn), piece);
                }
                None
            }
            step => {
                if step.words().first().is_some_and(|word| word.eq_ignore_ascii_case(b"randomkey")) {
                    // RANDOMKEY deletes the expired keys that it draws. A SCAN over all keys
                    // deletes them on both servers before.
                    let scan = [b"SCAN".to_vec(), b"0".to_vec(), b"COUNT".to_vec(), b"1000000".to_vec()];
                    self.ask_real(&scan);
                    self.ask_sim(&scan);
                }
                self.write_down(step);
                let bytes: Vec<u8> = steps.iter().flat_map(|step| self.bytes(step)).collect();
                self.real.send(&name(conn), &bytes);
                None
            }
        }
    }

    /// Plays the steps on the simulator at the time that the real server has reached.
    fn simulate(
        &mut self,
        steps: &[Step],
        at: usize,
        end: usize,
        instead: Option<&[u8]>,
    ) -> Result<Vec<Group>, (usize, String)> {
        let mut groups = Vec::new();
        let passed = self.clock.lap();
        for (step, action) in steps.iter().enumerate().take(end).skip(at) {
            let time = if step == at { passed } else { Duration::ZERO };
            let played = panics::catch(|| self.simulate_one(action, time, instead));
            let found = played.map_err(|why| (step, why))?;
            groups.extend(found.into_iter().map(|(conn, rules, frames)| Group { step, conn, rules, frames }));
        }
        // Each step's own connection comes last, so that the last group shows if it answered.
        Ok(groups)
    }

    fn simulate_one(
        &mut self,
        step: &Step,
        time: Duration,
        instead: Option<&[u8]>,
    ) -> Vec<(usize, Vec<Rule>, Vec<Received>)> {
        self.sim.sleep(time);
        let mut owed = Vec::new();
        let was_silent = step.conn().is_some_and(|conn| self.silent.contains(&conn));
        if let Some(conn) = step.conn() {
            let together = matches!(step, Step::Pipeline(..));
            owed.extend(step.commands().iter().map(|words| self.owed(conn, words, together)));
            step.commands().iter().for_each(|words| self.before(conn, words));
            let own = instead.map_or_else(|| self.bytes(step), <[u8]>::to_vec);
            let cuts = if let Step::Pipeline(_, _, cuts) = step { &cuts[..] } else { &[] };
            for piece in pieces(&own, cuts) {
                self.sim.send(&name(conn), piece);
            }
        }
        let mut found = self.collect();
        found.sort_by_key(|(conn, _)| Some(*conn) == step.conn());
        if let Some(conn) = step.conn() {
            let own = found.iter().find(|(of, _)| *of == conn);
            let answers = own.map_or(0, |(_, frames)| frames.iter().filter(|frame| is_answer(frame)).count());
            let silent = (was_silent || self.silent.contains(&conn)) && answers == 0;
            let may_wait = step.commands().iter().any(|words| may_wait(words));
            let subscribes = |words: &[Vec<u8>]| words[0].to_ascii_uppercase().ends_with(b"SUBSCRIBE");
            if silent {
                owed.clear();
            } else if answers > 0 && !step.words().is_empty() && !subscribes(step.words()) {
                // Of these commands, only subscribing and unsubscribing get a reply.
                self.silent.remove(&conn);
            }
            if may_wait && silent || answers < owed.len() && (may_wait || self.paused) {
                self.waiting.push(conn);
            } else {
                // The connection is closed, or the bytes were no command.
                owed.truncate(answers);
            }
            self.owed.entry(conn).or_default().extend(owed);
        }
        let settled = found.into_iter().map(|(conn, frames)| (conn, self.settle(conn, &frames), frames));
        settled.collect()
    }

    /// The frames that arrived on each connection of the simulator.
    fn collect(&mut self) -> Vec<(usize, Vec<Received>)> {
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
                        self.waiting.retain(|other| *other != conn);
                        break;
                    }
                    reply => frames.push(reply),
                }
            }
            if !frames.is_empty() {
                found.push((conn, frames));
            }
        }
        found
    }

    /// The rule for the reply to a command, from the simulator's present state of its key; right if
    /// the command runs immediately.
    fn owed(&mut self, conn: usize, words: &[Vec<u8>], together: bool) -> Owed {
        let later = dialect::rule(self.generation, words, rule::of(words));
        let rule = match later.clone() {
            rule if together => rule,
            Rule::IfTable(inner) if self.is_table(conn, words) => *inner,
            Rule::IfTable(_) => Rule::Exact,
            Rule::Drawn => self.possible(conn, words),
            rule => rule,
        };
        let mut command = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        if command == b"SELECT" && words.len() == 2 && words[1] == b"0" {
            command.extend(b" 0");
        }
        Owed { command, rule, later }
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
        let step = &steps[group.step];
        if let Some(record) = &mut self.record {
            record.answers(step, group.conn, &theirs, &group.rules);
        }
        if agree(&group.rules, step.words(), &group.frames, &theirs) {
            if step.conn() == Some(group.conn) {
                self.even_out(step, &group.frames, &theirs);
            }
            return None;
        }
        Some(format!(
            "{}\n  on connection {}, by the rules {:?}, the simulator answers\n{}\n  and redis-server\n{}",
            step.line(),
            name(group.conn),
            group.rules,
            shown(&group.frames),
            shown(&theirs)
        ))
    }
}

/// Returns true for commands that crash `redis-server` 7.0 or keep it from answering any client. It
/// crashes at `EVAL "error({})" 0` and at two functions of one library whose names differ only in
/// case, too; those are never drawn.
fn kills(words: &[Vec<u8>], paused: bool, transacting: bool) -> bool {
    let upper = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    match (&upper(0)[..], &upper(1)[..]) {
        (b"CLIENT", b"UNBLOCK") => paused,
        // It would search forever for a key that has not expired.
        (b"RANDOMKEY", _) => paused,
        // Of two pauses the longer and stricter one counts; the pause in force when a transaction
        // runs is unknown.
        (b"CLIENT", b"PAUSE") => upper(3) != b"WRITE" && (paused || transacting || upper(2).len() > 2),
        _ => false,
    }
}

/// Splits bytes into pieces that end at `cuts`.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % bytes.len().max(1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut start = 0;
    let pieces = ends.into_iter().map(|end| &bytes[std::mem::replace(&mut start, end)..end]);
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// The bytes of a bulk string reply; empty for any other.
fn payload(received: Received) -> Vec<u8> {
    if let Received::Reply(Wire::Bulk(bytes)) = received { bytes } else { Vec::new() }
}
