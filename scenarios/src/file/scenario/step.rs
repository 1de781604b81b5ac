//! The steps of a client, which run one after the other.
//!
//! To add a step, write a type with its parameters and its [`StepKind`], add its line to the table
//! below, and implement it in `run/script.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::step_kind::{Asks, StepKind};
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
    /// One step: exactly one action, with or without the time at which it begins; or a time alone,
    /// for which the step waits.
    pub struct StepEntry {
        /// The earliest start of the step, in true time after the start of the run. Default: as
        /// soon as the previous step is done.
        pub at: Option<Draw<Span>>,
        /// The lock of the step, by the name of its table. Default: the only lock; of several, the
        /// one that was acquired last. With several locks, acquisitions and the steps for latches
        /// and rate limiters must give it.
        pub of: Option<Name>,
    }

    /// The action of a step.
    pub enum Step: StepKind {
        /// Wait for the lock without a limit, or no longer than `wait`.
        acquire: Acquire,
        /// Ask for the lock once.
        try_acquire: TryAcquire,
        /// Ask for the lock again and again, at intervals of `every`, until it is granted.
        poll: Poll,
        /// Release the lock; of several holds, the latest, or the first.
        release: Release,
        /// Set a new lease for the lock.
        extend: Extend,
        /// Keep permits by their ids alone. The client no longer renews them, and uses the ids to
        /// extend and release them.
        forget: Forget,
        /// Work inside the critical section for a time, writing to the resource now and then.
        work: Work,
        /// Write to the resource once.
        write: Write,
        /// Ask if the lock is still held, and end the script if it is not.
        check: Check,
        /// Set a latch to its count, if it is open.
        set: Set,
        /// Count a latch down by one.
        count_down: CountDown,
        /// Wait until a latch is open, without a limit or no longer than `for`, and end the script
        /// if it is not open then.
        wait: Wait,
        /// Open a latch by deleting it.
        delete: Delete,
        /// Take permits of a rate limiter, and wait for them without a limit or no longer than
        /// `wait`.
        take: Take,
        /// Do nothing for a time.
        sleep: Sleep,
        /// Keep the processor busy for a time, so that no other task of the client runs.
        block: Block,
        /// Run the whole script again, this many times.
        repeat: Repeat,
    }
}

impl Asks {
    /// Returns the ability for an acquisition: [`Asks::More`] if it is shared or names a number of
    /// permits.
    fn of_acquisition(lease: Option<Span>, watchdog: bool, shared: bool, permits: Option<u32>) -> Asks {
        match shared || permits.is_some() {
            true => Asks::More,
            false => Asks::Lock { lease: lease.is_some(), watchdog },
        }
    }
}

/// Checks that a lock of this kind has holders.
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

/// Checks that the lock has this number of permits, and that its subject can acquire several at a
/// time.
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

/// Checks that the lock is a rate limiter, and that a window has this number of permits.
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

/// Checks that the lock is a latch.
pub(super) fn check_latch(lock: &Lock) -> Result<(), Wrong> {
    if !lock.kind.is_latch() {
        return Err(Wrong::at("", "only a latch is counted down and waited for: lock.kind = \"latch\""));
    }
    Ok(())
}

/// Checks that a shared acquisition asks for a lock that can be shared.
fn check_shared(shared: bool, lock: &Lock) -> Result<(), Wrong> {
    if shared && !lock.kind.can_be_shared() {
        return Err(Wrong::at("shared", "only a read-write lock can be shared: lock.kind = \"read-write\""));
    }
    Ok(())
}

/// Waits for the lock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Acquire {
    /// The lease. Default: the lock's own, or that of the watchdog.
    pub lease: Option<Span>,
    /// The longest time to wait. Default: no limit.
    pub wait: Option<Span>,
    /// Ask for the watchdog even though the lock has a lease.
    pub watchdog: bool,
    /// Ask again if the outcome of an attempt is unknown.
    pub retry: bool,
    /// Acquire the read half of a read-write lock, which several owners can hold at the same time.
    pub shared: bool,
    /// The number of permits of a semaphore. Default: one.
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

/// Asks for the lock once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TryAcquire {
    /// The lease. Default: the lock's own, or that of the watchdog.
    pub lease: Option<Span>,
    /// Ask for the watchdog even though the lock has a lease.
    pub watchdog: bool,
    /// Acquire the read half of a read-write lock, which several owners can hold at the same time.
    pub shared: bool,
    /// The number of permits of a semaphore. Default: one.
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

/// Asks for the lock again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poll {
    /// The time from the end of an attempt to the start of the next.
    pub every: Span,
    /// The lease. Default: the lock's own, or that of the watchdog.
    #[serde(default)]
    pub lease: Option<Span>,
    /// The time after the start of the run, in true time, at which it gives up. Default: never.
    #[serde(default)]
    pub until: Option<Span>,
    /// Acquire the read half of a read-write lock, which several owners can hold at the same time.
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

/// Releases one hold of the lock: the latest, unless `first` is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Release {
    /// Release once more, after this time, if the outcome is unknown. Default: never.
    pub retry_after: Option<Span>,
    /// Release the first of several holds, not the latest. A writer that also reads becomes a
    /// reader in this way.
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

/// Sets a new lease for the lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// The new lease, counted from the execution of the step.
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

/// Keeps permits by their ids alone.
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

/// Works inside the critical section.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// The time that the work takes. Default: until the time in `until`.
    #[serde(rename = "for")]
    pub length: Option<Draw<Span>>,
    /// The time after the start of the run, in true time, at which the work ends, if `for` is left
    /// out. Default: the work takes no time.
    pub until: Option<Span>,
    /// The interval between two writes to the resource during the work. Default: no writes.
    pub write_every: Option<Span>,
    /// Stop as soon as the client learns that it lost the lock.
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

/// Writes to the resource once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Write {
    /// Write only if the client does not know that it lost the lock.
    pub if_held: bool,
}

impl StepKind for Write {
    fn words(&self) -> String {
        "write".to_owned()
    }
}

/// Asks if the lock is still held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Check {}

impl StepKind for Check {
    fn words(&self) -> String {
        "check".to_owned()
    }
}

/// Sets a latch to its count.
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

/// Counts a latch down by one.
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

/// Waits until a latch is open.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wait {
    /// The longest time to wait. Default: no limit.
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

/// Opens a latch by deleting it.
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

/// Takes permits of a rate limiter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Take {
    /// The number of permits to take together.
    pub permits: u32,
    /// The longest time to wait. Default: no limit.
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

/// Does nothing for a time.
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

/// Keeps the processor busy for a time.
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

/// Runs the script this many more times.
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
