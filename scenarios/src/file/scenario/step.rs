//! What a client does, one step after the other.
//!
//! A step is a type with its parameters and its [`StepKind`], a line in the table below, and what
//! it does in `run/script.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Algorithm, Lock,
    limits::{self, Wrong},
};
use crate::{
    file::{name::Name, one_of::one_of},
    units::{Draw, Span},
};

/// The script of a client.
pub type Steps = Vec<StepEntry>;

one_of! {
    /// One step: exactly one action, and perhaps the time of it; or a time alone, which it waits
    /// for.
    pub struct StepEntry {
        /// Not before this time after the start, in true time; as soon as the step before it is
        /// done if left out.
        pub at: Option<Draw<Span>>,
        /// Which lock it is about, by the name of its table; the only one, or of several the one
        /// that was acquired last, if left out. Of several an acquisition must say it, and what is
        /// done with a latch or a rate limiter.
        pub of: Option<Name>,
    }

    /// What a step does.
    pub enum Step: StepKind {
        /// Wait for the lock as long as it takes, or no longer than `wait`.
        acquire: Acquire,
        /// Ask for the lock once.
        try_acquire: TryAcquire,
        /// Ask for the lock again and again, `every` so often, until it is granted.
        poll: Poll,
        /// Give the lock back; of several holds, the latest, or the first.
        release: Release,
        /// Hold the lock for longer.
        extend: Extend,
        /// Keep permits by their ids alone: they are not renewed, and are extended and released by
        /// the ids.
        forget: Forget,
        /// Work inside the critical section for a time, writing to the resource now and then.
        work: Work,
        /// Write to the resource once.
        write: Write,
        /// Ask whether the lock is still held, and end the script if it is not.
        check: Check,
        /// Set a latch to its count, if it is open.
        set: Set,
        /// Count a latch down by one.
        count_down: CountDown,
        /// Wait until a latch is open, as long as it takes or no longer than `for`, and end the
        /// script if it is not.
        wait: Wait,
        /// Open a latch by deleting it.
        delete: Delete,
        /// Take permits of a rate limiter, as long as it takes or no longer than `wait`.
        take: Take,
        /// Do nothing for a time.
        sleep: Sleep,
        /// Keep the processor busy for a time without letting any other task of the client run.
        block: Block,
        /// Run the whole script again, so many times more.
        repeat: Repeat,
    }
}

/// What there is to say of a step before it runs.
pub trait StepKind {
    /// What it does, in words, for a printed plan.
    fn words(&self) -> String;
    /// Draws each range among its times, by a fraction from 0 to 1 each.
    fn draw(&mut self, _fraction: &mut dyn FnMut() -> f64) {}
    /// Whether it can be done with this lock.
    ///
    /// # Errors
    /// The key that is mistaken.
    fn check(&self, _lock: &Lock) -> Result<(), Wrong> {
        Ok(())
    }
    /// Whether it asks for the lock.
    fn is_acquisition(&self) -> bool {
        false
    }
    /// Whether it has to say which of several locks it is about.
    fn must_say_lock(&self) -> bool {
        self.is_acquisition()
    }
    /// Whether it is about a lock at all.
    fn has_lock(&self) -> bool {
        true
    }
    /// What a lock library must be able to do for it.
    fn asks(&self) -> Asks {
        // What is neither acquired nor held has a kind of its own.
        if self.must_say_lock() { Asks::More } else { Asks::Nothing }
    }
}

/// What a step or a workload asks of a lock library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// No more than to release what it has granted.
    Nothing,
    /// A lock for one owner alone; whether with a lease of its own, and whether a watchdog must
    /// renew that of the lock.
    Lock {
        /// It says the lease.
        lease: bool,
        /// It asks for the watchdog.
        watchdog: bool,
    },
    /// A new lease on a lock that it has.
    Extension,
    /// More than that.
    More,
}

impl Asks {
    /// Of an acquisition, unless that is shared or of several permits.
    fn of_acquisition(lease: Option<Span>, watchdog: bool, shared: bool, permits: Option<u32>) -> Asks {
        match shared || permits.is_some() {
            true => Asks::More,
            false => Asks::Lock { lease: lease.is_some(), watchdog },
        }
    }
}

/// That a lock has holders.
pub(super) fn check_held(lock: &Lock) -> Result<(), Wrong> {
    if lock.kind.is_latch() {
        return Err(Wrong::at("", "a latch has no holder: it is set, counted down and waited for"));
    }
    if lock.kind.is_rate() {
        return Err(Wrong::at(
            "",
            "a rate limiter has no holder: its permits are taken, and end with the window",
        ));
    }
    Ok(())
}

/// That a lock has so many permits, and that its subject takes several at once.
pub(super) fn check_permits(permits: Option<u32>, lock: &Lock) -> Result<(), Wrong> {
    let Some(permits) = permits else { return Ok(()) };
    let most = lock.permits.unwrap_or(1).min(limits::PERMITS_AT_ONCE_MAX);
    if !lock.kind.has_permits() || lock.subject.algorithm != Algorithm::Client {
        return Err(Wrong::at(
            "permits",
            "only the production client's semaphores are asked for several permits",
        ));
    }
    if !(1..=most).contains(&permits) {
        return Err(Wrong::at(
            "permits",
            format!("from one to {most} permits can be had at once, not {permits}"),
        ));
    }
    Ok(())
}

/// That permits of a lock end with a window, and that there ever are so many.
pub(super) fn check_rate(permits: u32, lock: &Lock) -> Result<(), Wrong> {
    if !lock.kind.is_rate() {
        return Err(Wrong::at("", "only permits of a rate limiter are taken: lock.kind = \"rate\""));
    }
    let most = lock.permits.unwrap_or(1);
    if !(1..=most).contains(&permits) {
        return Err(Wrong::at(
            "permits",
            format!("from one to {most} permits can be taken at once, not {permits}"),
        ));
    }
    Ok(())
}

/// That a lock is counted down.
pub(super) fn check_latch(lock: &Lock) -> Result<(), Wrong> {
    if !lock.kind.is_latch() {
        return Err(Wrong::at("", "only a latch is counted down and waited for: lock.kind = \"latch\""));
    }
    Ok(())
}

/// That only a lock that can be shared is asked for so.
fn check_shared(shared: bool, lock: &Lock) -> Result<(), Wrong> {
    if shared && !lock.kind.can_be_shared() {
        return Err(Wrong::at("shared", "only a read-write lock can be shared: lock.kind = \"read-write\""));
    }
    Ok(())
}

/// Waiting for the lock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Acquire {
    /// The lease; the lock's own, or the watchdog, if left out.
    pub lease: Option<Span>,
    /// How long to wait at most; as long as it takes if left out.
    pub wait: Option<Span>,
    /// Ask for the watchdog even though the lock has a lease.
    pub watchdog: bool,
    /// Ask again when the outcome of an attempt is unknown.
    pub retry: bool,
    /// Hold it together with others that ask so: the read half of a read-write lock.
    pub shared: bool,
    /// How many permits of a semaphore; one if left out.
    pub permits: Option<u32>,
}

impl StepKind for Acquire {
    fn words(&self) -> String {
        "acquire".to_owned()
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_held(lock)?;
        limits::asked_lease(self.lease, lock)?;
        check_permits(self.permits, lock)?;
        check_shared(self.shared, lock)
    }

    fn asks(&self) -> Asks {
        Asks::of_acquisition(self.lease, self.watchdog, self.shared, self.permits)
    }

    fn is_acquisition(&self) -> bool {
        true
    }
}

/// Asking for the lock once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TryAcquire {
    /// The lease; the lock's own, or the watchdog, if left out.
    pub lease: Option<Span>,
    /// Ask for the watchdog even though the lock has a lease.
    pub watchdog: bool,
    /// Hold it together with others that ask so: the read half of a read-write lock.
    pub shared: bool,
    /// How many permits of a semaphore; one if left out.
    pub permits: Option<u32>,
}

impl StepKind for TryAcquire {
    fn words(&self) -> String {
        "try to acquire".to_owned()
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_held(lock)?;
        limits::asked_lease(self.lease, lock)?;
        check_permits(self.permits, lock)?;
        check_shared(self.shared, lock)
    }

    fn asks(&self) -> Asks {
        Asks::of_acquisition(self.lease, self.watchdog, self.shared, self.permits)
    }

    fn is_acquisition(&self) -> bool {
        true
    }
}

/// Asking for the lock again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// From one attempt's end to the next one's begin.
    pub every: Span,
    /// The lease; the lock's own, or the watchdog, if left out.
    #[serde(default)]
    pub lease: Option<Span>,
    /// When to give up; never if left out.
    #[serde(default)]
    pub until: Option<Span>,
    /// Hold it together with others that ask so: the read half of a read-write lock.
    #[serde(default)]
    pub shared: bool,
}

impl StepKind for Poll {
    fn words(&self) -> String {
        format!("try to acquire every {}", self.every)
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        limits::period("every", Some(self.every))?;
        check_held(lock)?;
        limits::asked_lease(self.lease, lock)?;
        check_shared(self.shared, lock)
    }

    fn asks(&self) -> Asks {
        Asks::of_acquisition(self.lease, false, self.shared, None)
    }

    fn is_acquisition(&self) -> bool {
        true
    }
}

/// Giving the lock back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Release {
    /// Ask again when the outcome is unknown, after this long; never if left out.
    pub retry_after: Option<Span>,
    /// Of several holds give the first back, not the latest: a writer that reads as well goes on as
    /// a reader so.
    pub first: bool,
}

impl StepKind for Release {
    fn words(&self) -> String {
        "release".to_owned()
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_held(lock)
    }
}

/// Holding the lock for longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// The new lease, from now.
    pub lease: Span,
}

impl StepKind for Extend {
    fn words(&self) -> String {
        format!("extend to {}", self.lease)
    }

    fn asks(&self) -> Asks {
        Asks::Extension
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_held(lock)?;
        limits::asked_lease(Some(self.lease), lock)
    }
}

/// Keeping permits by their ids alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Forget {}

impl StepKind for Forget {
    fn words(&self) -> String {
        "forget".to_owned()
    }

    fn asks(&self) -> Asks {
        Asks::More
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        if !lock.kind.has_ids() || lock.subject.algorithm != Algorithm::Client {
            return Err(Wrong::at(
                "",
                "only permits with ids can be kept by them: lock.kind = \"permit-semaphore\"",
            ));
        }
        Ok(())
    }
}

/// Working inside the critical section.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// How long; until the time in `until` if left out.
    #[serde(rename = "for")]
    pub length: Option<Draw<Span>>,
    /// Until this time after the start, in true time, where `for` does not say how long; no time at
    /// all if left out.
    pub until: Option<Span>,
    /// How often to write to the resource meanwhile; never if left out.
    pub write_every: Option<Span>,
    /// Stop when the client learns that the lock is lost.
    pub until_lost: bool,
}

impl StepKind for Work {
    fn words(&self) -> String {
        match (self.length, self.until) {
            (Some(length), _) => format!("work for {length}"),
            (None, Some(until)) => format!("work until {until}"),
            (None, None) => "work".to_owned(),
        }
    }

    fn draw(&mut self, fraction: &mut dyn FnMut() -> f64) {
        self.length.iter_mut().for_each(|length| length.draw(fraction()));
    }

    fn check(&self, _lock: &Lock) -> Result<(), Wrong> {
        limits::period("write_every", self.write_every)
    }
}

/// Writing to the resource once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Write {
    /// Do not write when the client knows that the lock is lost.
    pub if_held: bool,
}

impl StepKind for Write {
    fn words(&self) -> String {
        "write".to_owned()
    }
}

/// Asking whether the lock is still held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Check {}

impl StepKind for Check {
    fn words(&self) -> String {
        "check".to_owned()
    }
}

/// Setting a latch to its count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Set {}

impl StepKind for Set {
    fn words(&self) -> String {
        "set".to_owned()
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_latch(lock)
    }

    fn must_say_lock(&self) -> bool {
        true
    }
}

/// Counting a latch down by one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CountDown {}

impl StepKind for CountDown {
    fn words(&self) -> String {
        "count down".to_owned()
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_latch(lock)
    }

    fn must_say_lock(&self) -> bool {
        true
    }
}

/// Waiting until a latch is open.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wait {
    /// How long at most; as long as it takes if left out.
    #[serde(rename = "for")]
    pub limit: Option<Span>,
}

impl StepKind for Wait {
    fn words(&self) -> String {
        match self.limit {
            Some(limit) => format!("wait for {limit} at most"),
            None => "wait".to_owned(),
        }
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_latch(lock)
    }

    fn must_say_lock(&self) -> bool {
        true
    }
}

/// Opening a latch by deleting it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Delete {}

impl StepKind for Delete {
    fn words(&self) -> String {
        "delete".to_owned()
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_latch(lock)
    }

    fn must_say_lock(&self) -> bool {
        true
    }
}

/// Taking permits of a rate limiter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Take {
    /// How many.
    pub permits: u32,
    /// How long to wait at most; as long as it takes if left out.
    pub wait: Option<Span>,
}

impl Default for Take {
    fn default() -> Take {
        Take { permits: 1, wait: None }
    }
}

impl StepKind for Take {
    fn words(&self) -> String {
        format!("take {} permits", self.permits)
    }

    fn check(&self, lock: &Lock) -> Result<(), Wrong> {
        check_rate(self.permits, lock)
    }

    fn must_say_lock(&self) -> bool {
        true
    }
}

/// Doing nothing for a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Sleep(pub Draw<Span>);

impl StepKind for Sleep {
    fn words(&self) -> String {
        format!("sleep {}", self.0)
    }

    fn draw(&mut self, fraction: &mut dyn FnMut() -> f64) {
        self.0.draw(fraction());
    }

    fn has_lock(&self) -> bool {
        false
    }
}

/// Keeping the processor busy for a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Block(pub Span);

impl StepKind for Block {
    fn words(&self) -> String {
        format!("block for {}", self.0)
    }

    fn has_lock(&self) -> bool {
        false
    }
}

/// Running the script so many times more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Repeat(pub u32);

impl StepKind for Repeat {
    fn words(&self) -> String {
        format!("repeat {} times", self.0)
    }

    fn has_lock(&self) -> bool {
        false
    }
}
