//! The target of a migration: takes in the copy and the stream, and then the slots. Replicas of the
//! target follow its jobs in the replication stream.

use bytes::Bytes;

use super::{
    Draft, Job, JobState,
    export::{FLUSHED, TIMED_OUT},
    message,
    request::{self, Part},
};
use crate::{
    cluster::{Around, Cluster, NodeId, Want, key_slot},
    env::Env,
    event::ConnId,
};

/// The message of a job whose connection is lost.
const LOST: &str =
    "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information.";

/// The message of a job whose command cannot be executed.
const REFUSED: &str = "Failed to process command during slot migration. Check logs for more information";

impl Cluster {
    /// Handles the first message of a source, CLUSTER SYNCSLOTS ESTABLISH. `words` are all words of
    /// the command.
    ///
    /// # Errors
    /// Returns the reason why this node does not take the slots.
    pub fn begin_import(&mut self, around: &Around<'_>, conn: ConnId, words: &[Bytes]) -> Result<(), String> {
        self.must_be_primary()?;
        let named = |name: &[u8]| {
            let key = NodeId::parse(name).and_then(|id| self.find(id));
            let key = key.ok_or("Target node does not know the source node")?;
            if key == self.me { Err("Source node is target node itself") } else { Ok(key) }
        };
        let asked = request::establish(&words[3..], |part| match part {
            Part::Source(name) => named(name).map(drop).map_err(str::to_owned),
            Part::Slots(ranges) => self.owner_of_all(ranges).map(drop),
        })?;
        let source = named(&asked.source)?;
        if self.owner_of_all(&asked.ranges)? != Some(source) {
            return Err("Target node does not agree about current slot ownership".into());
        }
        let draft = Draft {
            name: asked.name,
            exports: false,
            ranges: asked.ranges,
            source: self.known(source).id,
            target: self.my_id(),
        };
        let mut job = Job::new(draft, JobState::WaitingForAck, around.now_secs());
        let is_taken =
            |other: &Job| other.name == job.name || job.slots.iter().any(|slot| other.slots.has(slot));
        if self.jobs.iter().any(is_taken) {
            return Err("Slot is already being imported on the target by a different migration".into());
        }
        job.conn = Some(conn);
        self.log(format!("Slot import {} begins: {}", job.name, job.slots.words()));
        self.jobs.add(job);
        self.out.wants.push(Want::Propagate(words.to_vec()));
        Ok(())
    }

    fn import_over(&self, conn: ConnId) -> Option<&Job> {
        self.jobs.iter().find(|job| job.conn == Some(conn) && !job.exports)
    }

    /// Returns true if a source may write to all of these keys over its connection.
    pub fn imports_keys<'a>(&self, conn: ConnId, keys: impl Iterator<Item = &'a [u8]>) -> bool {
        let receives = |job: &&Job| job.state != JobState::WaitingForAck;
        let Some(job) = self.import_over(conn).filter(receives) else { return false };
        let (mut keys, mut any) = (keys, false);
        keys.all(|key| {
            any = true;
            job.slots.has(key_slot(key))
        }) && any
    }

    /// Returns true if a key belongs to a slot that is being imported, so that commands about all
    /// keys leave it out and it does not expire.
    pub fn hides(&self, key: &[u8]) -> bool {
        self.jobs.any_import() && self.jobs.imports(key_slot(key))
    }

    /// Returns the number of keys that are left out.
    pub fn hidden(&self, around: &mut Around<'_>) -> usize {
        if !self.jobs.any_import() {
            return 0;
        }
        let keys = around.db.by_slot(key_slot);
        self.jobs.imported().map(|slot| keys.count(slot)).sum()
    }

    /// Returns the connections of all sources.
    pub fn sources(&self) -> Vec<ConnId> {
        self.jobs.iter().filter(|job| !job.exports).filter_map(|job| job.conn).collect()
    }

    /// Handles a later message of a source.
    pub fn hear_source(&mut self, env: &mut Env, around: &mut Around<'_>, conn: ConnId, words: &[Bytes]) {
        let Some(job) = self.jobs.of_mut(conn).filter(|job| !job.exports) else { return };
        let now_secs = around.now_secs();
        job.acked = now_secs;
        let name = job.name.clone();
        let (next, answer) = match (&words[2].to_ascii_uppercase()[..], job.state) {
            (b"ACK", JobState::WaitingForAck) => (Some(JobState::ReceivingSnapshot), None),
            (b"ACK", _) => (None, None),
            (b"SNAPSHOT-EOF", JobState::ReceivingSnapshot) => {
                (Some(JobState::WaitingForPaused), Some("REQUEST-PAUSE"))
            }
            (b"PAUSED", JobState::WaitingForPaused) => {
                (Some(JobState::FailoverRequested), Some("REQUEST-FAILOVER"))
            }
            (b"FAILOVER-GRANTED", JobState::FailoverRequested) => (Some(JobState::FailoverGranted), None),
            _ => return self.end_import(around, &name, JobState::Failed, REFUSED),
        };
        if let Some(next) = next {
            job.set(next, now_secs);
            self.out.wants.push(Want::Propagate(words.to_vec()));
        }
        if let Some(answer) = answer {
            self.tell_source(conn, answer);
        }
        if next == Some(JobState::FailoverGranted) {
            self.take_imported(env, around, &name);
        }
    }

    fn tell_source(&mut self, conn: ConnId, word: &str) {
        self.out.wants.push(Want::Tell { conn, bytes: message(&[word]) });
    }

    /// Takes the slots of a job without asking other nodes.
    fn take_imported(&mut self, env: &mut Env, around: &mut Around<'_>, name: &str) {
        self.check_imports(around);
        let Some(job) = self.jobs.iter().find(|job| job.name == name) else { return };
        let slots = job.slots.clone();
        self.bump_epoch();
        for slot in slots.iter() {
            self.unbind(slot);
            self.bind(slot, self.me);
        }
        // From here on the keys are this node's own.
        self.end_import(around, name, JobState::Success, "");
        self.tell_slots(&slots, self.me);
        self.changed();
        self.broadcast_pong(env, around, false);
    }

    /// Ends a job on the target or on one of its replicas. The keys of a failed one are deleted.
    fn end_import(&mut self, around: &mut Around<'_>, name: &str, state: JobState, message: &str) {
        let Some(job) = self.jobs.named_mut(name) else { return };
        let of_primary = job.state == JobState::OnPrimary;
        job.set(state, around.now_secs());
        message.clone_into(&mut job.message);
        let (conn, slots) = (job.conn.take(), job.slots.clone());
        self.jobs.recount();
        self.log(format!("Slot import {name} is over: {}. {message}", state.name()));
        if state != JobState::Success {
            let keys = around.db.by_slot(key_slot);
            let dirty: Vec<u16> = slots.iter().filter(|slot| keys.count(*slot) > 0).collect();
            self.out.wants.extend(dirty.into_iter().map(Want::DropKeys));
            self.tell("imported", format!("{}: {}", slots.words(), state.name()));
        }
        self.out.wants.extend(conn.map(Want::HangUp));
        if !of_primary || self.myself().is_master() {
            let state = state.name().to_ascii_uppercase();
            let words = ["CLUSTER", "SYNCSLOTS", "FINISH", "STATE", &state, "NAME", name, "MESSAGE", message];
            let words = words.map(|word| Bytes::copy_from_slice(word.as_bytes()));
            self.out.wants.push(Want::Propagate(words.to_vec()));
        }
    }

    /// Handles the end of the connection of a source; does nothing for any other connection.
    pub fn source_lost(&mut self, around: &mut Around<'_>, conn: ConnId) {
        let Some(job) = self.jobs.of_mut(conn).filter(|job| !job.exports) else { return };
        job.conn = None;
        let name = job.name.clone();
        self.end_import(around, &name, JobState::Failed, LOST);
    }

    /// Ends the job of a source whose command cannot be executed.
    pub fn refuse_source(&mut self, around: &mut Around<'_>, conn: ConnId) {
        let Some(name) = self.import_over(conn).map(|job| job.name.clone()) else { return };
        self.end_import(around, &name, JobState::Failed, REFUSED);
    }

    /// Ends all jobs because the data was flushed.
    pub fn fail_flushed_jobs(&mut self, around: &mut Around<'_>) {
        for name in self.names_of(|job| job.exports) {
            self.end_export(around, &name, JobState::Failed, FLUSHED);
        }
        for name in self.names_of(|job| job.imports() && job.state != JobState::OnPrimary) {
            self.end_import(around, &name, JobState::Failed, FLUSHED);
        }
    }

    /// Repeats a message of a migration to the master of this replica, or from the append-only
    /// file. `words` are all words of the command.
    pub fn repeat_message(&mut self, around: &mut Around<'_>, words: &[Bytes]) {
        match &words[2].to_ascii_uppercase()[..] {
            b"ESTABLISH" => {
                let Ok(asked) = request::establish(&words[3..], |_| Ok(())) else { return };
                let Some(source) = NodeId::parse(&asked.source) else { return };
                // Slots have one job at a time: a later one shows that the end of the earlier
                // one is missing.
                let is_older = |job: &Job| {
                    job.state == JobState::OnPrimary
                        && asked
                            .ranges
                            .iter()
                            .any(|(first, last)| (*first..=*last).any(|slot| job.slots.has(slot)))
                };
                for name in self.names_of(is_older) {
                    if let Some(job) = self.jobs.named_mut(&name) {
                        job.set(JobState::Failed, around.now_secs());
                    }
                }
                self.jobs.recount();
                let target = self.my_master().map_or(self.my_id(), |key| self.known(key).id);
                let draft = Draft { name: asked.name, exports: false, ranges: asked.ranges, source, target };
                self.jobs.add(Job::new(draft, JobState::OnPrimary, around.now_secs()));
            }
            b"FINISH" => {
                let word = |name: &[u8]| {
                    let found = words[3..].chunks_exact(2).find(|pair| pair[0].eq_ignore_ascii_case(name));
                    found.map(|pair| String::from_utf8_lossy(&pair[1]).into_owned()).unwrap_or_default()
                };
                let (name, why) = (word(b"name"), word(b"message"));
                let succeeded = word(b"state").eq_ignore_ascii_case("success");
                let state = if succeeded { JobState::Success } else { JobState::Failed };
                self.end_import(around, &name, state, &why);
            }
            _ => {}
        }
    }

    /// Ends the jobs of a master that this node has replaced, or of an earlier life of this node.
    pub(in crate::cluster) fn end_inherited(&mut self, around: &mut Around<'_>) {
        if !self.myself().is_master() {
            return;
        }
        for name in self.names_of(|job| job.state == JobState::OnPrimary) {
            let Some(job) = self.jobs.iter().find(|job| job.name == name) else { continue };
            // The end of the job may be missing in the stream, but the slots show how it ended.
            let is_mine = job.slots.iter().all(|slot| self.owner(slot) == Some(self.me));
            let (state, why) = match is_mine {
                true => (JobState::Success, ""),
                false => (JobState::Failed, "A failover occurred during slot import"),
            };
            self.end_import(around, &name, state, why);
        }
    }

    /// Does the periodic work of the target.
    pub(super) fn tick_imports(&mut self, around: &mut Around<'_>) {
        let (now, timeout) = (around.now_secs(), around.repl_timeout());
        let is_silent =
            |job: &Job| !job.exports && job.conn.is_some() && now.saturating_sub(job.acked) > timeout;
        for name in self.names_of(is_silent) {
            self.end_import(around, &name, JobState::Failed, TIMED_OUT);
        }
        if self.ticks.is_multiple_of(10) {
            let known = self.jobs.iter().filter(|job| !job.exports && job.state != JobState::WaitingForAck);
            for conn in known.filter_map(|job| job.conn).collect::<Vec<_>>() {
                self.tell_source(conn, "ACK");
            }
        }
    }

    /// Ends jobs whose slots the source does not have any more, or that came to a replica.
    pub(super) fn check_imports(&mut self, around: &mut Around<'_>) {
        for name in self.names_of(|job| job.imports() && job.state != JobState::OnPrimary) {
            let Some(job) = self.jobs.iter().find(|job| job.name == name) else { continue };
            let source = self.find(job.source);
            let is_source = source.is_some() && job.slots.iter().all(|slot| self.owner(slot) == source);
            if self.myself().is_replica() {
                self.end_import(around, &name, JobState::Failed, "A failover occurred during slot import");
            } else if !is_source {
                self.end_import(around, &name, JobState::Failed, "Slots are no longer owned by source node");
            }
        }
    }
}
