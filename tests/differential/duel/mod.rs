//! Plays the same steps on both servers and finds the first difference between their replies.

mod agree;
mod connections;
mod drawn;
mod keys;
mod play;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use lockstorm_sim::generation::Generation;

use crate::{
    clock::Stopwatch,
    record::Record,
    rule::Rule,
    servers::{Play, Real, Received, Simulated},
    steps::{Step, name},
    wire::{Wire, command},
};

/// The connection for questions about the others. It has a user of its own, so that no rule locks
/// it out.
const CONTROL: &str = "control";

/// The commands that restore libraries and settings.
const SETTINGS: [&str; 2] = [
    "FUNCTION FLUSH",
    "CONFIG SET hash-max-listpack-entries 512 hash-max-listpack-value 64 zset-max-listpack-entries 128 \
     zset-max-listpack-value 64 set-max-intset-entries 512 stream-node-max-entries 100 stream-node-max-bytes 4096 \
     list-max-listpack-size -2 list-compress-depth 0 hll-sparse-max-bytes 3000 notify-keyspace-events \"\" maxmemory 0 \
     maxmemory-policy noeviction proto-max-bulk-len 512mb",
];

/// The same commands for Redis 6.2, which sets one option at a time.
const SETTINGS_OF_OLD: [&str; 3] = [
    "CONFIG SET maxmemory-policy noeviction",
    "CONFIG SET notify-keyspace-events \"\"",
    "CONFIG SET proto-max-bulk-len 512mb",
];

/// A disagreement of the two servers.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    /// The step at which it was found; past the last step if it was found in the keys afterwards.
    pub(crate) at: usize,
    /// Steps that show it after all others if it was found in the keys.
    pub(crate) show: Vec<Step>,
    /// The step, and the replies of both servers.
    pub(crate) text: String,
}

/// A reply that is still to come.
struct Owed {
    /// The name of the command, in upper case.
    command: Vec<u8>,
    rule: Rule,
    /// The rule inside EXEC, for a command that is only queued now.
    later: Rule,
}

pub(crate) struct Duel {
    /// The generation of both servers.
    pub(crate) generation: Generation,
    real: Real,
    sim: Simulated,
    clock: Stopwatch,
    /// The longest wait for a reply of the real server.
    pub(crate) patience: Duration,
    conns: Vec<usize>,
    /// The IDs of connections, equal on both servers, and the last ID given.
    ids: BTreeMap<usize, u64>,
    last_id: u64,
    /// The ID of the control connection.
    control_id: u64,
    /// Connections that a server has closed; the next write opens them again.
    closed: Vec<usize>,
    /// Connections with a blocked command.
    waiting: Vec<usize>,
    /// The replies that a connection will get, in order.
    owed: BTreeMap<usize, VecDeque<Owed>>,
    /// Connections with CLIENT REPLY OFF or SKIP.
    silent: BTreeSet<usize>,
    /// Connections that may have selected another database, in which encodings are not compared.
    elsewhere: BTreeSet<usize>,
    /// The rules of the commands that a connection has queued.
    queued: BTreeMap<usize, Vec<Rule>>,
    /// Connections that may be in a transaction.
    transacting: BTreeSet<usize>,
    /// CLIENT PAUSE is in force.
    paused: bool,
    /// The connections that requested the pause, perhaps in a transaction that is not executed yet.
    pausing: BTreeSet<usize>,
    /// Commands are played one by one, because notifications depend on the batches that the server
    /// reads.
    single: bool,
    /// Users with rules may exist.
    users: bool,
    /// The transcript of commands and replies, if wanted.
    pub(crate) record: Option<Record>,
    /// The real server died or stopped answering, and another one replaced it.
    pub(crate) died: bool,
    /// Commands played so far.
    pub(crate) played: u64,
}

impl Duel {
    /// Starts both servers.
    ///
    /// # Panics
    /// If the real server of the generation is not installed.
    pub(crate) fn start(generation: Generation) -> Duel {
        let clock = Stopwatch::start();
        let sim = simulated(generation, clock.wall_ms());
        let mut duel = Duel {
            generation,
            real: real(generation),
            sim,
            clock,
            patience: Duration::from_secs(5),
            conns: Vec::new(),
            ids: BTreeMap::new(),
            last_id: 0,
            control_id: 0,
            closed: Vec::new(),
            waiting: Vec::new(),
            owed: BTreeMap::new(),
            silent: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
            queued: BTreeMap::new(),
            paused: false,
            transacting: BTreeSet::new(),
            pausing: BTreeSet::new(),
            single: false,
            users: false,
            record: None,
            died: false,
            played: 0,
        };
        duel.take_control();
        duel
    }

    /// Prepares a real server that has just started.
    fn take_control(&mut self) {
        // With active expiry, the moment would decide if an expired key is still counted.
        for line in
            ["ACL SETUSER control on nopass ~* &* +@all", "AUTH control x", "DEBUG SET-ACTIVE-EXPIRE 0"]
        {
            let got = self.ask_real(&words(line));
            assert!(matches!(got, Received::Reply(Wire::Status(_))), "redis-server does not obey: {got:?}");
        }
        let got = self.ask_real(&words("CLIENT ID"));
        let Received::Reply(Wire::Integer(id)) = got else { panic!("redis-server gives no number: {got:?}") };
        (self.last_id, self.control_id) = (id as u64, id as u64);
    }

    /// Sends a command to the real server on the control connection and returns its reply.
    fn ask_real(&mut self, words: &[Vec<u8>]) -> Received {
        self.real.send(CONTROL, &command(words));
        self.real.receive(CONTROL, Duration::from_secs(20))
    }

    /// Sends a command to the simulator on the control connection and returns its reply.
    fn ask_sim(&mut self, words: &[Vec<u8>]) -> Received {
        // A reply that a pause held back belongs to no later request.
        while self.sim.receive(CONTROL, Duration::ZERO) != Received::Nothing {}
        self.sim.send(CONTROL, &command(words));
        self.sim.receive(CONTROL, Duration::ZERO)
    }

    /// Brings both servers to their state after a start.
    fn reset(&mut self) {
        for conn in std::mem::take(&mut self.conns) {
            self.real.close(&name(conn));
        }
        self.closed.clear();
        self.waiting.clear();
        self.owed.clear();
        self.silent.clear();
        self.elsewhere.clear();
        self.queued.clear();
        self.transacting.clear();
        self.pausing.clear();
        self.ids.clear();
        (self.paused, self.single, self.users, self.died) = (false, false, false, false);
        let settings: &[&str] = match self.generation {
            Generation::Redis62 => &SETTINGS_OF_OLD,
            _ => &SETTINGS,
        };
        let mut lines = vec![
            "CLIENT UNPAUSE",
            "CLIENT KILL TYPE normal SKIPME yes",
            "CLIENT KILL TYPE pubsub SKIPME yes",
            "ACL SETUSER default reset on nopass ~* &* +@all",
            "ACL LOG RESET",
            "SELECT 0",
            "FLUSHALL",
            "SCRIPT FLUSH",
        ];
        lines.extend(settings);
        lines.push("FLUSHALL");
        let bytes: Vec<Vec<u8>> = lines.iter().map(|line| command(&words(line))).collect();
        self.real.send(CONTROL, &bytes.concat());
        for line in lines {
            let got = self.real.receive(CONTROL, Duration::from_secs(10));
            if matches!(got, Received::Closed | Received::Nothing) {
                self.revive();
                break;
            }
            let fine = matches!(got, Received::Reply(Wire::Status(_) | Wire::Integer(_)));
            assert!(fine, "redis-server does not reset at {line}: {got:?}");
        }
        if let Received::Reply(Wire::Items(_, users)) = self.ask_real(&words("ACL USERS"))
            && users.len() > 2
        {
            let mut delete = words("ACL DELUSER");
            delete.extend(users.into_iter().filter_map(|user| match user {
                Wire::Bulk(name) => Some(name).filter(|name| name != b"control" && name != b"default"),
                _ => None,
            }));
            self.ask_real(&delete);
        }
        self.clock = Stopwatch::start();
        self.sim = simulated(self.generation, self.clock.wall_ms());
        self.sim.open(CONTROL, self.control_id);
        for line in
            ["ACL SETUSER control on nopass ~* &* +@all", "AUTH control x", "DEBUG SET-ACTIVE-EXPIRE 0"]
        {
            self.ask_sim(&words(line));
        }
        self.ask_sim(&words("ACL SETUSER default reset on nopass ~* &* +@all"));
    }

    /// Starts a real server in place of one that died.
    fn revive(&mut self) {
        self.real = real(self.generation);
        self.take_control();
        self.died = true;
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
        // Long enough for every short wait to end on both servers.
        if (self.paused || !self.waiting.is_empty())
            && let Some(difference) = self.batch(&[Step::Sleep(120)], 0, 1)
        {
            return Some(Difference { at: steps.len() - 1, show: vec![Step::Sleep(120)], ..difference });
        }
        self.silence(steps.len()).or_else(|| self.keys(steps.len()))
    }

    /// Waits until the real server has read everything sent before, and has written its replies.
    fn barrier(&mut self, times: usize) {
        for _ in 0..times {
            self.real.send(CONTROL, b"PING\r\n");
            match self.real.receive(CONTROL, Duration::from_secs(20)) {
                Received::Reply(_) => {}
                Received::Closed => return self.revive(),
                // Give up on this server.
                Received::Nothing => return self.revive(),
            }
        }
    }

    /// Returns a difference if the real server sent more than the simulator.
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
                    agree::shown(&[got])
                );
                return Some(Difference { at: at.saturating_sub(1), show: Vec::new(), text });
            }
        }
        None
    }

    fn write_down(&mut self, step: &Step) {
        if let Some(record) = &mut self.record {
            record.step(step);
        }
    }
}

/// Starts the real server of a generation.
fn real(generation: Generation) -> Real {
    Real::start_as(generation, &[]).expect("the caller has looked for the program")
}

/// Starts the simulator as a generation, with DEBUG.
fn simulated(generation: Generation, wall_ms: i64) -> Simulated {
    // Redis 6.2 always has DEBUG, and does not know the option.
    let debug = [("enable-debug-command".to_owned(), "yes".to_owned())];
    Simulated::start_as(generation, wall_ms, if generation == Generation::Redis62 { &[] } else { &debug })
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split_whitespace().map(|word| word.trim_matches('"').as_bytes().to_vec()).collect()
}
