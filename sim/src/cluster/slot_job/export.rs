//! The source of a migration: copies the slots, streams its writes, and holds them back for the
//! hand-over.

use std::time::Duration;

use bytes::Bytes;

use super::{Draft, Job, JobState, MESSAGE_LEN_MAX, message, request};
use crate::{
    cluster::{Around, Cluster, Key, NodeId, SlotSet, Want},
    env::Env,
    event::{Action, ConnId},
    replication::encode,
    resp::Limits,
};

/// The message of a job whose connection is lost.
const LOST: &str =
    "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more information.";

/// The message of a job whose slots were not taken during the pause.
const UNPAUSED: &str = "Unpaused before migration completed (migration may have succeeded with lost writes)";

/// The message of a job whose other side is silent.
pub(super) const TIMED_OUT: &str = "Timed out after too long with no interaction";

/// The message of a job whose data was flushed.
pub(super) const FLUSHED: &str = "Data was flushed";

/// Something from the target.
enum Heard {
    /// A line of the handshake.
    Line(String),
    /// A message.
    Words(Vec<Bytes>),
    /// Bytes that are neither.
    Nonsense,
}

impl Cluster {
    /// CLUSTER MIGRATESLOTS: begins a job for each group of slots.
    ///
    /// # Errors
    /// Returns the reason if one of the groups cannot be moved; no job begins then.
    pub fn migrate_slots(
        &mut self,
        env: &mut Env,
        around: &Around<'_>,
        words: &[Bytes],
    ) -> Result<(), String> {
        self.must_be_primary()?;
        let mut groups: Vec<(Vec<(u16, u16)>, Key)> = Vec::new();
        let (mut seen, mut rest) = (SlotSet::default(), words);
        while !rest.is_empty() {
            let (ranges, after) = request::slots_range(rest)?;
            if self.owner_of_all(&ranges)? != Some(self.me) {
                return Err("Slots are not served by this node.".into());
            }
            let slots = || ranges.iter().flat_map(|(first, last)| *first..=*last);
            let (node, after) = request::node(after)?;
            let target = self.target(node)?;
            if let Some(slot) = slots().find(|slot| self.jobs.exports(*slot)) {
                return Err(format!("I am already migrating slot {slot}."));
            }
            if slots().any(|slot| !seen.add(slot)) {
                return Err("Slot ranges in migrations overlap".into());
            }
            groups.push((ranges, target));
            rest = after;
        }
        // The first group is listed first.
        for (ranges, target) in groups.into_iter().rev() {
            let (name, source) = (env.random_id(), self.my_id());
            let target_id = self.known(target).id;
            let draft = Draft { name, exports: true, ranges, source, target: target_id };
            let mut job = Job::new(draft, JobState::Connecting, around.now_secs());
            self.tell("exporting", format!("{} to {}", job.slots.words(), self.known(target).address));
            self.log(format!("Slot migration {} to {target_id} begins: {}", job.name, job.slots.words()));
            job.conn = Some(self.dial_target(around, target));
            self.jobs.add(job);
        }
        Ok(())
    }

    /// Returns the error for a command of a migration on a replica.
    pub(super) fn must_be_primary(&self) -> Result<(), String> {
        match self.myself().is_replica() {
            true => Err("Slot migration can only be used on primary nodes.".into()),
            false => Ok(()),
        }
    }

    /// Returns the only owner of some slots.
    ///
    /// # Errors
    /// If a slot has no owner, or two slots have different owners.
    pub(super) fn owner_of_all(&self, ranges: &[(u16, u16)]) -> Result<Option<Key>, String> {
        let mut first = None;
        for slot in ranges.iter().flat_map(|(first, last)| *first..=*last) {
            let owner = self.owner(slot).ok_or_else(|| format!("Slot {slot} has no node served."))?;
            if *first.get_or_insert(owner) != owner {
                return Err("Requested slots span multiple shards".into());
            }
        }
        Ok(first)
    }

    fn target(&self, name: &[u8]) -> Result<Key, String> {
        let shown = || String::from_utf8_lossy(name).into_owned();
        let id = NodeId::parse(name).ok_or_else(|| format!("Invalid node name: {}", shown()))?;
        let key = self.find(id).ok_or_else(|| format!("Unknown node name: {}", shown()))?;
        if key == self.me { Err("Target node can not be this node.".into()) } else { Ok(key) }
    }

    fn dial_target(&mut self, around: &Around<'_>, target: Key) -> ConnId {
        let conn = self.next_dialed();
        let from = around.config.network.bind_source_addr.parse().ok();
        let address = &self.known(target).address;
        let (host, port) = (address.ip.clone(), address.port);
        self.out.actions.push(Action::Dial { conn, host, port, from });
        conn
    }

    /// CLUSTER CANCELSLOTMIGRATIONS: ends the jobs that move slots away.
    ///
    /// # Errors
    /// If there are none.
    pub fn cancel_jobs(&mut self, around: &Around<'_>) -> Result<(), String> {
        let names = self.names_of(|job| job.exports);
        if names.is_empty() {
            return Err("No migrations ongoing".into());
        }
        for name in names {
            self.end_export(around, &name, JobState::Cancelled, "");
        }
        Ok(())
    }

    /// Returns the names of some jobs under way, the oldest first.
    pub(super) fn names_of(&self, wanted: impl Fn(&Job) -> bool) -> Vec<String> {
        let mut names: Vec<String> =
            self.jobs.iter().filter(|job| wanted(job)).map(|job| job.name.clone()).collect();
        names.reverse();
        names
    }

    pub(super) fn end_export(&mut self, around: &Around<'_>, name: &str, state: JobState, message: &str) {
        let Some(job) = self.jobs.named_mut(name) else { return };
        job.set(state, around.now_secs());
        message.clone_into(&mut job.message);
        job.paused_until = None;
        (job.answer, job.decoder) = Default::default();
        let (conn, slots, target) = (job.conn.take(), job.slots.words(), job.target);
        self.out.actions.extend(conn.map(|conn| Action::Close { conn }));
        self.jobs.recount();
        let to =
            self.find(target).map_or_else(|| target.to_string(), |key| self.known(key).address.to_string());
        self.log(format!("Slot migration {name} is over: {}. {message}", state.name()));
        self.tell("exported", format!("{slots} to {to}: {}", state.name()));
    }

    /// Handles an established connection to a target; returns false for any other connection.
    pub(in crate::cluster) fn job_dialed(&mut self, around: &Around<'_>, conn: ConnId) -> bool {
        let Some(job) = self.jobs.of_mut(conn) else { return false };
        job.acked = around.now_secs();
        let (password, user) = (&around.config.replication.masterauth, &around.config.replication.masteruser);
        if password.is_empty() {
            self.establish(around, conn);
            return true;
        }
        job.set(JobState::ReadingAuth, around.now_secs());
        let words: Vec<&str> = ["AUTH", user, password].into_iter().filter(|word| !word.is_empty()).collect();
        let mut bytes = Vec::new();
        encode(&words, &mut bytes);
        self.send_target(conn, bytes.into());
        true
    }

    fn establish(&mut self, around: &Around<'_>, conn: ConnId) {
        let Some(job) = self.jobs.of_mut(conn) else { return };
        job.set(JobState::ReadingEstablish, around.now_secs());
        let mut words = vec!["ESTABLISH", "SOURCE", job.source.as_str(), "NAME", &job.name, "SLOTSRANGE"];
        let numbers: Vec<String> =
            job.ranges.iter().flat_map(|(first, last)| [first.to_string(), last.to_string()]).collect();
        words.extend(numbers.iter().map(String::as_str));
        let bytes = message(&words);
        self.send_target(conn, bytes);
    }

    fn send_target(&mut self, conn: ConnId, bytes: Bytes) {
        self.out.actions.push(Action::Send { conn, bytes });
    }

    /// Keeps bytes of a target for the end of the step; returns false for any other connection.
    pub(in crate::cluster) fn job_heard(&mut self, around: &Around<'_>, conn: ConnId, bytes: &[u8]) -> bool {
        let Some(job) = self.jobs.of_mut(conn) else { return false };
        match job.state {
            JobState::ReadingAuth | JobState::ReadingEstablish => job.answer.extend_from_slice(bytes),
            _ => job.decoder.feed(bytes),
        }
        if job.answer.len().max(job.decoder.buffered()) > MESSAGE_LEN_MAX {
            let name = job.name.clone();
            self.end_export(around, &name, JobState::Failed, LOST);
        }
        true
    }

    /// Records the sent bytes that the network has not taken; returns false for any other
    /// connection than that to a target.
    pub(in crate::cluster) fn job_unsent(&mut self, conn: ConnId, bytes: usize) -> bool {
        self.jobs.of_mut(conn).map(|job| job.unsent = bytes).is_some()
    }

    /// Handles the end of a connection to a target; returns false for any other connection.
    pub(in crate::cluster) fn target_lost(&mut self, around: &Around<'_>, conn: ConnId) -> bool {
        let Some(job) = self.jobs.of_mut(conn).filter(|job| job.exports) else { return false };
        // The connection is closed already.
        job.conn = None;
        let name = job.name.clone();
        match job.state {
            // The target hangs up once it has the slots.
            JobState::FailoverGranted => {}
            JobState::Connecting => {
                let why = "Unable to connect to target node: Connection refused";
                self.end_export(around, &name, JobState::Failed, why);
            }
            _ => self.end_export(around, &name, JobState::Failed, LOST),
        }
        true
    }

    /// Returns true if a write to this slot must be sent to a target.
    pub fn streams(&self, slot: u16) -> bool {
        !self.jobs.are_over() && self.stream_of(slot).is_some()
    }

    /// Returns the connection to the target of a slot that this node still has.
    fn stream_of(&self, slot: u16) -> Option<ConnId> {
        if self.owner(slot) != Some(self.me) {
            return None;
        }
        let job = self.jobs.iter().find(|job| job.state.streams() && job.exports && job.slots.has(slot))?;
        job.conn
    }

    /// Returns true if a job moves slots away, so that writes must be reported.
    pub fn exports(&self) -> bool {
        !self.jobs.are_over() && self.jobs.iter().any(|job| job.exports)
    }

    /// Sends writes to a slot to the target that gets it.
    pub fn stream_write(&mut self, slot: u16, bytes: Bytes) {
        if let Some(conn) = self.stream_of(slot) {
            self.send_target(conn, bytes);
        }
    }

    /// Sends the copy of the slots of a job.
    pub fn send_copy(&mut self, conn: ConnId, copy: &[u8]) {
        let mut bytes = copy.to_vec();
        bytes.extend_from_slice(&message(&["SNAPSHOT-EOF"]));
        self.send_target(conn, bytes.into());
    }

    /// Does the work of the source at the end of a step.
    pub(super) fn run_exports(&mut self, env: &mut Env, around: &Around<'_>) {
        let conns: Vec<ConnId> =
            self.jobs.iter().filter(|job| job.exports).filter_map(|job| job.conn).collect();
        for conn in conns {
            self.hear_target(env, around, conn);
        }
        let late = |job: &Job| job.paused_until.is_some_and(|until| until <= env.monotonic);
        for name in self.names_of(late) {
            self.end_export(around, &name, JobState::Failed, UNPAUSED);
        }
    }

    /// Handles what has come from a target.
    fn hear_target(&mut self, env: &mut Env, around: &Around<'_>, conn: ConnId) {
        while let Some(heard) = self.next_heard(conn) {
            let Some(job) = self.jobs.of_mut(conn) else { return };
            job.acked = around.now_secs();
            let name = job.name.clone();
            match (heard, job.state) {
                (Heard::Line(line), JobState::ReadingAuth) if line.starts_with('+') => {
                    self.establish(around, conn);
                }
                (Heard::Line(line), JobState::ReadingEstablish) if line.starts_with('+') => {
                    let rest = std::mem::take(&mut job.answer);
                    job.decoder.feed(&rest);
                    job.set(JobState::WaitingToSnapshot, around.now_secs());
                    self.send_target(conn, message(&["ACK"]));
                }
                (Heard::Line(line), _) => {
                    let why = format!("Received error during handshake to target: {line}");
                    self.end_export(around, &name, JobState::Failed, &why);
                }
                (Heard::Words(words), state) if is_message(&words) => {
                    match (&words[2].to_ascii_uppercase()[..], state) {
                        (b"ACK", _) => {}
                        (b"REQUEST-PAUSE", JobState::Replicating) => {
                            job.set(JobState::WaitingToPause, around.now_secs());
                            self.try_pause(env, around, conn);
                        }
                        (b"REQUEST-FAILOVER", JobState::FailoverPaused) => {
                            job.set(JobState::FailoverGranted, around.now_secs());
                            self.send_target(conn, message(&["FAILOVER-GRANTED"]));
                        }
                        _ => self.end_export(around, &name, JobState::Failed, LOST),
                    }
                }
                (Heard::Words(_) | Heard::Nonsense, _) => {
                    self.end_export(around, &name, JobState::Failed, LOST);
                }
            }
        }
    }

    fn next_heard(&mut self, conn: ConnId) -> Option<Heard> {
        let job = self.jobs.of_mut(conn)?;
        if matches!(job.state, JobState::ReadingAuth | JobState::ReadingEstablish) {
            let end = job.answer.iter().position(|byte| *byte == b'\n')?;
            let line: Vec<u8> = job.answer.drain(..=end).collect();
            return Some(Heard::Line(String::from_utf8_lossy(&line).trim_end().to_owned()));
        }
        match job.decoder.next(&Limits::default()) {
            Ok(words) => words.map(Heard::Words),
            Err(_) => Some(Heard::Nonsense),
        }
    }

    /// Holds back writes, if the network has taken all earlier ones.
    fn try_pause(&mut self, env: &Env, around: &Around<'_>, conn: ConnId) {
        let Some(job) = self.jobs.of_mut(conn) else { return };
        if job.state != JobState::WaitingToPause || job.unsent > 0 {
            return;
        }
        job.paused_until = Some(env.monotonic + Duration::from_millis(around.hand_over_pause_ms()));
        job.set(JobState::FailoverPaused, around.now_secs());
        let (name, slots) = (job.name.clone(), job.slots.words());
        self.send_target(conn, message(&["PAUSED"]));
        self.log(format!("Writes are paused for the hand-over of slot migration {name}"));
        self.tell("paused", format!("for {slots}"));
    }

    /// Returns the connections of the jobs of this source in some states, the newest first.
    fn targets_in(&self, states: &[JobState]) -> Vec<ConnId> {
        let wanted = self.jobs.iter().filter(|job| job.exports && states.contains(&job.state));
        wanted.filter_map(|job| job.conn).collect()
    }

    /// Does the periodic work of the source.
    pub(super) fn tick_exports(&mut self, env: &Env, around: &Around<'_>) {
        let is_silent = |job: &Job| {
            let silence = around.now_secs().saturating_sub(job.acked);
            job.exports && job.conn.is_some() && silence > around.repl_timeout()
        };
        for name in self.names_of(is_silent) {
            self.end_export(around, &name, JobState::Failed, TIMED_OUT);
        }
        if self.ticks.is_multiple_of(10) {
            let waits = [JobState::WaitingToSnapshot, JobState::Replicating, JobState::WaitingToPause];
            for conn in self.targets_in(&waits) {
                self.send_target(conn, message(&["ACK"]));
            }
        }
        for conn in self.targets_in(&[JobState::WaitingToPause]) {
            self.try_pause(env, around, conn);
        }
        // One copy at a time, the oldest job first.
        let waiting = self.targets_in(&[JobState::WaitingToSnapshot]);
        if let Some(&conn) = waiting.last()
            && let Some(job) = self.jobs.of_mut(conn)
        {
            job.set(JobState::Replicating, around.now_secs());
            let slots = job.slots.clone();
            self.out.wants.push(Want::CopySlots { conn, slots });
        }
    }

    /// Ends jobs whose slots this node does not have any more.
    pub(super) fn check_exports(&mut self, around: &Around<'_>) {
        for name in self.names_of(|job| job.exports) {
            let Some(job) = self.jobs.iter().find(|job| job.name == name) else { continue };
            let owned_by =
                |key: Option<Key>| key.is_some() && job.slots.iter().all(|slot| self.owner(slot) == key);
            if owned_by(Some(self.me)) {
                continue;
            }
            let (state, why) = match owned_by(self.find(job.target)) {
                true => (JobState::Success, ""),
                false => (JobState::Failed, "Slots are no longer owned by myself"),
            };
            self.end_export(around, &name, state, why);
        }
    }
}

/// Returns true for a message of `CLUSTER SYNCSLOTS`.
fn is_message(words: &[Bytes]) -> bool {
    let is = |at: usize, word: &[u8]| words.get(at).is_some_and(|found| found.eq_ignore_ascii_case(word));
    words.len() > 2 && is(0, b"cluster") && is(1, b"syncslots")
}
