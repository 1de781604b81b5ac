//! Atomic slot migration (Valkey 9): a node copies whole slots to another node, streams later
//! writes to it, holds writes back for the last of them, and then the other node takes the slots.
//!
//! Each migration is a job on both sides. The source dials the client port of the target and sends
//! `CLUSTER SYNCSLOTS` messages, the keys as commands that create them, and its later writes. The
//! target answers with messages of the same command. Neither side asks other nodes: the target
//! takes a new config epoch, and the bus spreads its claim.

mod export;
mod import;
mod request;
mod show;

use std::collections::VecDeque;

use bytes::Bytes;

use super::{Around, Cluster, id::NodeId, slot_set::SlotSet};
use crate::{env::Env, event::ConnId, replication::encode, resp::Decoder, time::Monotonic};

/// The maximum number of finished jobs that a node remembers.
const LOG_MAX: usize = 1000;

/// The maximum length of a message from the target, and of its answer to the first one.
const MESSAGE_LEN_MAX: usize = 64 << 10;

/// The state of a job. Its name is the one in CLUSTER GETSLOTMIGRATIONS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobState {
    /// Source: it dials the target.
    Connecting,
    /// Source: it waits for the answer to AUTH.
    ReadingAuth,
    /// Source: it waits for the answer to ESTABLISH.
    ReadingEstablish,
    /// Source: the copy of the slots begins with the next periodic work.
    WaitingToSnapshot,
    /// Source: it has sent the copy, and streams later writes.
    Replicating,
    /// Source: it holds writes back as soon as the network has taken the stream so far.
    WaitingToPause,
    /// Source: it holds writes back, and waits for the target to ask for the slots.
    FailoverPaused,
    /// Source: the target may take the slots. Target: it takes them.
    FailoverGranted,
    /// Target: no copy is sent before the source has seen the answer to ESTABLISH.
    WaitingForAck,
    /// Target: it receives the copy.
    ReceivingSnapshot,
    /// Target: it has the copy, and waits for the source to hold back writes.
    WaitingForPaused,
    /// Target: it has all writes, and has asked for the slots.
    FailoverRequested,
    /// Replica of the target: the job belongs to its master.
    OnPrimary,
    /// The target has the slots.
    Success,
    /// The slots stay where they were.
    Failed,
    /// CLUSTER CANCELSLOTMIGRATIONS at the source has ended it.
    Cancelled,
}

impl JobState {
    fn name(self) -> &'static str {
        match self {
            JobState::Connecting => "connecting",
            JobState::ReadingAuth => "reading-auth-response",
            JobState::ReadingEstablish => "reading-establish-response",
            JobState::WaitingToSnapshot => "waiting-to-snapshot",
            JobState::Replicating => "replicating",
            JobState::WaitingToPause => "waiting-to-pause",
            JobState::FailoverPaused => "failover-paused",
            JobState::FailoverGranted => "failover-granted",
            JobState::WaitingForAck => "waiting-for-ack",
            JobState::ReceivingSnapshot => "receiving-snapshot",
            JobState::WaitingForPaused => "waiting-for-paused",
            JobState::FailoverRequested => "failover-requested",
            JobState::OnPrimary => "occurring-on-primary",
            JobState::Success => "success",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        }
    }

    fn is_over(self) -> bool {
        matches!(self, JobState::Success | JobState::Failed | JobState::Cancelled)
    }

    /// Returns true while a source sends its writes to the target.
    fn streams(self) -> bool {
        matches!(
            self,
            JobState::Replicating
                | JobState::WaitingToPause
                | JobState::FailoverPaused
                | JobState::FailoverGranted
        )
    }
}

/// The migration of some slots, on one of its two sides. Times are seconds of the wall clock.
#[derive(Debug)]
struct Job {
    /// 40 hex digits, the same on both sides.
    name: String,
    /// True on the source.
    exports: bool,
    /// The slots in the order in which they were given.
    ranges: Vec<(u16, u16)>,
    slots: SlotSet,
    source: NodeId,
    target: NodeId,
    state: JobState,
    message: String,
    /// The connection between the two; `None` once it is lost, and on a replica.
    conn: Option<ConnId>,
    created: i64,
    updated: i64,
    /// The time of the last message from the other side.
    acked: i64,
    /// On the source: bytes of an answer that is incomplete.
    answer: Vec<u8>,
    /// On the source: the messages of the target.
    decoder: Decoder,
    /// On the source: sent bytes that the network has not taken yet.
    unsent: usize,
    /// On the source: writes wait until then.
    paused_until: Option<Monotonic>,
}

/// The slots of a new job, and its two nodes.
#[derive(Debug)]
struct Draft {
    name: String,
    exports: bool,
    ranges: Vec<(u16, u16)>,
    source: NodeId,
    target: NodeId,
}

impl Job {
    fn new(draft: Draft, state: JobState, now_secs: i64) -> Job {
        let Draft { name, exports, ranges, source, target } = draft;
        let mut slots = SlotSet::default();
        for slot in ranges.iter().flat_map(|(first, last)| *first..=*last) {
            slots.add(slot);
        }
        Job {
            name,
            exports,
            ranges,
            slots,
            source,
            target,
            state,
            message: String::new(),
            conn: None,
            created: now_secs,
            updated: now_secs,
            acked: now_secs,
            answer: Vec::new(),
            decoder: Decoder::default(),
            unsent: 0,
            paused_until: None,
        }
    }

    fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Returns true on a target that does not have the slots yet.
    fn imports(&self) -> bool {
        !self.exports && !self.is_over()
    }

    fn set(&mut self, state: JobState, now_secs: i64) {
        self.state = state;
        self.updated = now_secs;
    }
}

/// The jobs of a node, the newest first.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    list: VecDeque<Job>,
    /// Number of jobs that are not over.
    active: usize,
    /// True if slots or roles have changed since the jobs were compared with them.
    pub(super) outdated: bool,
}

impl Jobs {
    fn add(&mut self, job: Job) {
        self.active += usize::from(!job.is_over());
        self.list.push_front(job);
        let mut over = self.list.len() - self.active;
        while over > LOG_MAX
            && let Some(oldest) = self.list.iter().rposition(Job::is_over)
        {
            self.list.remove(oldest);
            over -= 1;
        }
    }

    /// Counts again the jobs that are not over.
    fn recount(&mut self) {
        self.active = self.list.iter().filter(|job| !job.is_over()).count();
    }

    fn iter(&self) -> impl Iterator<Item = &Job> {
        self.list.iter().filter(|job| !job.is_over())
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        self.list.iter_mut().filter(|job| !job.is_over())
    }

    fn of_mut(&mut self, conn: ConnId) -> Option<&mut Job> {
        self.iter_mut().find(|job| job.conn == Some(conn))
    }

    fn named_mut(&mut self, name: &str) -> Option<&mut Job> {
        self.iter_mut().find(|job| job.name == name)
    }

    /// Returns true if no job is under way.
    pub(super) fn are_over(&self) -> bool {
        self.active == 0
    }

    /// Returns the end of the first pause of writes.
    pub(super) fn pause_ends(&self) -> Option<Monotonic> {
        if self.are_over() { None } else { self.iter().filter_map(|job| job.paused_until).min() }
    }

    /// Returns true if a job moves this slot away.
    pub(super) fn exports(&self, slot: u16) -> bool {
        self.iter().any(|job| job.exports && job.slots.has(slot))
    }

    /// Returns true if a job brings this slot here, or to the master of this replica.
    pub(super) fn imports(&self, slot: u16) -> bool {
        self.iter().any(|job| job.imports() && job.slots.has(slot))
    }

    /// Returns true if a job brings slots here, or to the master of this replica.
    pub(super) fn any_import(&self) -> bool {
        !self.are_over() && self.iter().any(Job::imports)
    }

    /// Returns the slots that jobs bring here, or to the master of this replica.
    pub(super) fn imported(&self) -> impl Iterator<Item = u16> {
        self.iter().filter(|job| job.imports()).flat_map(|job| job.slots.iter())
    }
}

impl Cluster {
    /// Does the work of the jobs at the end of a step. A source handles no message of its target in
    /// the middle of a script, whose writes are not in the stream yet.
    pub(super) fn run_jobs(&mut self, env: &mut Env, around: &mut Around<'_>) {
        if self.jobs.are_over() {
            return;
        }
        if !around.busy {
            self.run_exports(env, around);
        }
        if std::mem::take(&mut self.jobs.outdated) {
            self.end_inherited(around);
            self.check_exports(around);
            self.check_imports(around);
        }
    }

    /// Does the periodic work of the jobs.
    pub(super) fn tick_jobs(&mut self, env: &Env, around: &mut Around<'_>) {
        if !self.jobs.are_over() {
            self.tick_exports(env, around);
            self.tick_imports(around);
        }
    }
}

/// Returns a message of `CLUSTER SYNCSLOTS`.
fn message(words: &[&str]) -> Bytes {
    let all: Vec<&str> = ["CLUSTER", "SYNCSLOTS"].into_iter().chain(words.iter().copied()).collect();
    let mut bytes = Vec::new();
    encode(&all, &mut bytes);
    bytes.into()
}
