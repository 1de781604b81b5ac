//! The algorithm of every model. It consults the model's traits at each point where an algorithm
//! can go wrong.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use lockstorm_client::{Env, wire};
use redis::{Cmd, Value};
use tokio::task::{AbortHandle, JoinSet};

use super::{
    commands::{Commands, Names, granted},
    hold::Hold,
    wire::{Failed, Messages, Wire},
};
use crate::{
    file::{
        plan::{LockEntry, PlannedLock},
        scenario::traits::{
            Belief, Cleanup, Fencing, Grant, Key, Pace, Quorum, Replicas, Resend, Time, Token, Traits,
        },
    },
    judge::{
        history::{Mode, Owner, Wake},
        object::faster_multi,
    },
    run::{
        bridge::HostEnv,
        recorder::{HistoryWriter, Line},
        subject::{Ask, Counting, Failure, Held, Local, Patience, Subject, SubjectContext},
    },
};

/// The longest delay between two attempts, and the fixed delay of a model that does not spread its
/// attempts.
const RETRY: Duration = Duration::from_millis(200);

/// The delay of a model that retries almost immediately. It is not zero, because with a node that
/// refuses at once the time would stand still.
pub(super) const AT_ONCE: Duration = Duration::from_millis(1);

/// The highest number of doublings of a delay. By then the delay is longer than any run.
const DOUBLED_MAX: u32 = 24;

/// The timeout of a replica's acknowledgement.
const REPLICA_TIMEOUT: Duration = Duration::from_millis(100);

/// The longest wait for a sync. With `appendfsync everysec` one comes each second.
const SYNC_TIMEOUT: Duration = Duration::from_secs(3);

/// The timeout of a node of several. `TIMEOUT` is that of a single node.
const NODE_TIMEOUT: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_millis(3000);

/// Creates the model that the scenario names, for one line of work and one lock.
pub(in crate::run::subject) fn make(
    context: &SubjectContext,
    entry: LockEntry,
    line: Line,
) -> Rc<dyn Subject> {
    let PlannedLock { number, written: lock, key, .. } = context.lock(entry);
    let history = context.history.on(line).about(*number);
    let traits = lock.all_traits();
    let wires: Vec<Rc<Wire>> = context
        .groups_of(entry)
        .iter()
        .filter_map(|group| group.first())
        .map(|node| Rc::new(Wire::new(context, history.clone(), node.clone(), traits.scripts)))
        .collect();
    let several = wires.len() > 1;
    let own = if several { lock.node_timeout } else { lock.response_timeout };
    let timeout = own.map_or(if several { NODE_TIMEOUT } else { TIMEOUT }, |span| span.0);
    let retry = lock.retry_delay.map_or(RETRY, |span| span.0);
    let env = HostEnv::new(context.ctx.clone());
    let owner = history.owner();
    let mut id = String::new();
    if traits.token == Token::OfClient {
        // Each process takes a new name, and the history learns it before the first hold: the
        // process may wait in a queue.
        id = format!("{}:{:016x}", history.client_id(), env.random());
        history.asks_as(&id);
        history.owner_named(&id);
    }
    let commands = Commands {
        traits,
        names: Names::of(key, traits.key),
        number: lock.permits.or(lock.count).unwrap_or(1),
        window: lock.window(),
        counted_apart: lock.is_counted_apart(),
        delay: lock.delay.map_or(Duration::ZERO, |span| span.0),
        script_time: lock.script_time.map_or(Duration::ZERO, |span| span.0),
        replica_timeout: REPLICA_TIMEOUT,
        values: faster_multi::fields_of(faster_multi::values_of(context.ctx.name())),
    };
    let shared = Rc::new(Shared {
        traits,
        commands,
        env,
        wires,
        timeout,
        retry,
        owner,
        id,
        holds: Cell::default(),
        renewals: RefCell::default(),
        watchdog: lock.watchdog.0,
        history,
    });
    Rc::new(Model(shared))
}

pub(super) struct Shared {
    pub(super) traits: Traits,
    pub(super) commands: Commands,
    pub(super) env: HostEnv,
    pub(super) wires: Vec<Rc<Wire>>,
    pub(super) timeout: Duration,
    retry: Duration,
    owner: Owner,
    /// The client's name in Redis, for a model with one name per client.
    id: String,
    /// The number of this client's holds of the lock.
    pub(super) holds: Cell<u32>,
    /// The watchdogs of all its holds.
    pub(super) renewals: RefCell<Vec<AbortHandle>>,
    watchdog: Duration,
    pub(super) history: HistoryWriter,
}

struct Model(Rc<Shared>);

/// The outcome of one attempt.
enum Attempt {
    Granted(Rc<Hold>),
    Refused,
    /// Too few nodes answered without an error to decide.
    Unknown(String),
}

impl Subject for Model {
    fn warm_up(&self) -> Local<'static, ()> {
        let shared = self.0.clone();
        Box::pin(async move {
            for wire in shared.wires.clone() {
                let timeout = shared.timeout;
                tokio::task::spawn_local(async move {
                    let _ = wire.ask(&redis::cmd("PING"), timeout).await;
                });
            }
        })
    }

    fn acquire(&self, ask: Ask) -> Local<'_, Result<Option<Rc<dyn Held>>, Failure>> {
        Box::pin(async move {
            let shared = &self.0;
            let end = shared.end(ask.wait);
            let (mut messages, mut tries) = (None, 0);
            loop {
                let attempt = shared.clone().attempt(ask).await;
                let over = end.is_some_and(|end| shared.env.now() >= end);
                match attempt {
                    Attempt::Granted(hold) => return Ok(Some(hold as Rc<dyn Held>)),
                    Attempt::Refused if over => {
                        shared.leave(ask).await;
                        return Ok(None);
                    }
                    Attempt::Unknown(message) if over => return Err(Failure { definite: false, message }),
                    Attempt::Refused | Attempt::Unknown(_) => {}
                }
                shared.history.waits(shared.owner);
                let woken = shared.wait(&mut messages, tries, end).await;
                tries += 1;
                shared.history.woken(shared.owner, woken);
            }
        })
    }

    fn count(&self, _latch: LockEntry, counting: Counting) -> Local<'_, Result<bool, Failure>> {
        Box::pin(self.0.count(counting))
    }
}

impl Shared {
    /// Waits after the given number of earlier waits, until it is time for another attempt or the
    /// wait is over.
    async fn wait(
        &self,
        messages: &mut Option<Messages>,
        waits: u32,
        end: Option<lockstorm_client::Monotonic>,
    ) -> Wake {
        let delay = match self.traits.pace {
            Pace::Spread => self.spread(),
            Pace::Fixed => self.retry,
            Pace::Doubling => {
                let delay = self.retry.saturating_mul(1 << waits.min(DOUBLED_MAX));
                end.map_or(delay, |end| delay.min(end - self.env.now()))
            }
            Pace::AtOnce => AT_ONCE,
            Pace::Message => return self.message(messages, true, end).await,
            Pace::MessageWithoutRecheck => return self.message(messages, false, end).await,
            Pace::KeyEvent => return self.key_event(messages, end).await,
        };
        self.env.sleep_until(self.env.now() + delay).await;
        Wake::Timer
    }

    /// Returns the client's time in milliseconds for a model that uses the client's clock,
    /// otherwise an empty string.
    pub(super) fn time(&self) -> String {
        match self.traits.time {
            Time::OfServer => String::new(),
            Time::OfClient => self.env.wall().0.as_millis().to_string(),
        }
    }

    /// Returns the end of a wait that begins now.
    pub(super) fn end(&self, patience: Patience) -> Option<lockstorm_client::Monotonic> {
        match patience {
            Patience::None => Some(self.env.now()),
            Patience::For(wait) => Some(self.env.now() + wait),
            Patience::Unbounded => None,
        }
    }

    /// Draws a random delay.
    pub(super) fn spread(&self) -> Duration {
        self.retry.mul_f64((self.env.random() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Waits for the message of a release, at most until the end of the holder's lease.
    async fn message(
        &self,
        messages: &mut Option<Messages>,
        rechecks: bool,
        end: Option<lockstorm_client::Monotonic>,
    ) -> Wake {
        let (wire, asked) = (&self.wires[0], self.env.now());
        let rest = wire.ask(&self.commands.rest(), self.timeout).await;
        let Ok(Value::Int(rest @ 0..)) = rest else {
            // The lock is free, or the node is silent.
            self.env.sleep_until(self.env.now() + AT_ONCE).await;
            return Wake::Timer;
        };
        if messages.is_none() {
            *messages = wire.subscribe(&self.commands.names.channel, self.timeout).await.ok();
            if rechecks {
                return Wake::Timer;
            }
        }
        let lease_over = asked + Duration::from_millis(rest.unsigned_abs().saturating_add(1));
        let until = end.map_or(lease_over, |end| lease_over.min(end));
        let message = async {
            match messages {
                Some(messages) => messages.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = message => Wake::Message,
            () = self.env.sleep_until(until) => Wake::Timer,
        }
    }

    /// Waits for a keyspace notification about the lock. Asks once more after subscribing.
    async fn key_event(
        &self,
        messages: &mut Option<Messages>,
        end: Option<lockstorm_client::Monotonic>,
    ) -> Wake {
        let Some(messages) = messages else {
            let channel = format!("__keyspace@0__:{}", self.commands.names.lock);
            *messages = self.wires[0].subscribe(&channel, self.timeout).await.ok();
            if messages.is_none() {
                self.env.sleep_until(self.env.now() + AT_ONCE).await;
            }
            return Wake::Timer;
        };
        let over = async {
            match end {
                Some(end) => self.env.sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = messages.next() => Wake::Message,
            () = over => Wake::Timer,
        }
    }

    /// Gives up waiting. Leaves the queue, if the model has one.
    async fn leave(&self, ask: Ask) {
        if self.traits.key == Key::Queue && ask.wait != Patience::None {
            let leave = self.commands.leave(&self.fresh_token());
            // A node that does not answer keeps the entry in the queue.
            let _ = self.wires[0].ask(&leave, self.timeout).await;
        }
    }

    pub(super) fn quorum(&self) -> usize {
        match self.traits.quorum {
            Quorum::Majority => self.wires.len() / 2 + 1,
            Quorum::Half => (self.wires.len() / 2).max(1),
        }
    }

    /// Returns the time in nanoseconds for which an owner may rely on a lease. For a quorum that is
    /// the lease less the allowance for drift.
    pub(super) fn length(&self, lease: Duration) -> i64 {
        let allowed = self.traits.drift && self.wires.len() > 1;
        let drift = if allowed { wire::drift_margin(lease) } else { Duration::ZERO };
        i64::try_from(lease.saturating_sub(drift).as_nanos()).unwrap_or(i64::MAX)
    }

    fn fresh_token(&self) -> String {
        match self.traits.token {
            Token::Unique => format!("{:016x}", self.env.random()),
            Token::OfClient => self.id.clone(),
            Token::Shared => "token".to_owned(),
        }
    }

    /// Sends a command to every node. Returns the answers in the order of the nodes.
    pub(super) async fn ask_all(self: &Rc<Self>, command: &Cmd) -> Vec<Result<Value, Failed>> {
        let mut answers: Vec<Result<Value, Failed>> = Vec::new();
        if !self.traits.at_once {
            for wire in &self.wires {
                answers.push(wire.ask(command, self.timeout).await);
            }
            return answers;
        }
        let mut asked = JoinSet::new();
        for (at, wire) in self.wires.iter().enumerate() {
            let (wire, command, timeout) = (wire.clone(), command.clone(), self.timeout);
            asked.spawn_local(async move { (at, wire.ask(&command, timeout).await) });
        }
        let mut answered = asked.join_all().await;
        answered.sort_by_key(|(at, _)| *at);
        answers.extend(answered.into_iter().map(|(_, answer)| answer));
        answers
    }

    /// Asks every node for the lock. Returns the answers, and true unless a transaction with the
    /// request counts no replica; one node is asked in that way.
    async fn ask_for_grant(self: &Rc<Self>, command: Cmd) -> (Vec<Result<Value, Failed>>, bool) {
        if self.traits.replicas != Replicas::InTransaction {
            return (self.ask_all(&command).await, true);
        }
        match self.wires[0].ask_in_transaction([command, wait_for_replica()], self.timeout).await {
            Ok([answer, count]) => (vec![Ok(answer)], granted(&count).is_some()),
            Err(failed) => (vec![Err(failed)], true),
        }
    }

    async fn attempt(self: Rc<Self>, ask: Ask) -> Attempt {
        let lease = ask.lease.unwrap_or(self.watchdog);
        let waits = ask.wait != Patience::None;
        let acquire = |token: &str| self.commands.acquire(token, lease, ask.mode, waits, &self.time());
        let mut token = self.fresh_token();
        self.history.asks_as(&token);
        let mut asked_at = self.traits.clock.now(&self.env);
        let (mut answers, mut is_copied) = self.ask_for_grant(acquire(&token)).await;
        let has_no_reply = |answer: &Result<Value, Failed>| matches!(answer, Err(failed) if !failed.replied);
        if self.traits.resend != Resend::Never && answers.iter().any(has_no_reply) {
            self.wires.iter().for_each(|wire| wire.hang_up());
            if self.traits.resend == Resend::Fresh {
                token = self.fresh_token();
                self.history.asks_as(&token);
            }
            asked_at = self.traits.clock.now(&self.env);
            (answers, is_copied) = self.ask_for_grant(acquire(&token)).await;
        }
        if !is_copied && answers.iter().any(is_grant) {
            self.clean_up(&token, ask.mode, &answers).await;
            return Attempt::Unknown("no replica has acknowledged it".to_owned());
        }
        if self.traits.grant == Grant::TwoSteps && answers.iter().any(is_grant) {
            self.ask_all(&self.commands.expire(lease)).await;
        }
        let of_all = self.traits.replicas == Replicas::RequiredOfAll;
        let asks =
            matches!(self.traits.replicas, Replicas::Required | Replicas::Ignored | Replicas::RequiredOfAll);
        if asks && (of_all || answers.iter().any(is_grant)) {
            let acknowledged = self.acknowledged().await;
            if of_all && !acknowledged {
                self.ask_all(&self.commands.release(&token, ask.mode)).await;
                return Attempt::Unknown("no replica has acknowledged it".to_owned());
            }
            if self.traits.replicas == Replicas::Required && !acknowledged {
                self.clean_up(&token, ask.mode, &answers).await;
                return Attempt::Unknown("no replica has acknowledged it".to_owned());
            }
        }
        if self.traits.synced && answers.iter().any(is_grant) && !self.is_synced().await {
            self.clean_up(&token, ask.mode, &answers).await;
            return Attempt::Unknown("the node has not synced it".to_owned());
        }
        let granted_by = answers.iter().filter(|answer| is_grant(answer)).count();
        let now = self.traits.clock.now(&self.env);
        let length = self.length(lease);
        let until = match self.traits.belief {
            Belief::FromRequest => Some(asked_at.saturating_add(length)),
            Belief::FromReply => Some(now.saturating_add(length)),
            Belief::UntilTold => None,
        };
        if granted_by >= self.quorum() && until.is_none_or(|until| now < until) {
            let fence = match self.traits.fence {
                Fencing::None => None,
                // Take the highest of several nodes' counters: two majorities have a node in
                // common.
                Fencing::WithGrant => answers.iter().flatten().filter_map(granted).max(),
                Fencing::ClientClock => u64::try_from(self.env.wall().0.as_millis()).ok(),
                Fencing::Afterwards => {
                    let counted = self.wires[0].ask(&self.commands.fence(), self.timeout).await;
                    counted.ok().as_ref().and_then(granted)
                }
            };
            return Attempt::Granted(Hold::begin(&self, token, fence, ask, lease, until));
        }
        self.clean_up(&token, ask.mode, &answers).await;
        let failed = answers.iter().filter_map(|answer| answer.as_ref().err()).next();
        match failed {
            Some(Failed { message, .. })
                if granted_by + answers.iter().filter(|answer| answer.is_err()).count() >= self.quorum() =>
            {
                Attempt::Unknown(message.clone())
            }
            _ => Attempt::Refused,
        }
    }

    /// Returns true if a replica has acknowledged the grant.
    async fn acknowledged(&self) -> bool {
        let answer = self.wires[0].ask(&wait_for_replica(), self.timeout).await;
        answer.is_ok_and(|answer| granted(&answer).is_some())
    }

    /// Returns true if the node says that the grant is synced to its disk.
    async fn is_synced(&self) -> bool {
        let mut wait = redis::cmd("WAITAOF");
        wait.arg(1).arg(0).arg(SYNC_TIMEOUT.as_millis() as u64);
        let answer = self.wires[0].ask(&wait, SYNC_TIMEOUT + self.timeout).await;
        matches!(answer, Ok(Value::Array(counts)) if counts.first() == Some(&Value::Int(1)))
    }

    async fn clean_up(self: &Rc<Self>, token: &str, mode: Mode, answers: &[Result<Value, Failed>]) {
        let release = self.commands.release(token, mode);
        for (wire, answer) in self.wires.iter().zip(answers) {
            let acknowledged = is_grant(answer);
            let wanted = match self.traits.cleanup {
                // On the same connection, and so behind the request that may still be in transit.
                Cleanup::All | Cleanup::NewConnection => acknowledged || answer.is_err(),
                Cleanup::Acknowledged => acknowledged,
                Cleanup::None => false,
            };
            if self.traits.cleanup == Cleanup::NewConnection && answer.is_err() {
                wire.hang_up();
            }
            if wanted {
                let (wire, release, timeout) = (wire.clone(), release.clone(), self.timeout);
                tokio::task::spawn_local(async move {
                    let _ = wire.ask(&release, timeout).await;
                });
            }
        }
    }
}

/// Returns true if a node granted the lock.
fn is_grant(answer: &Result<Value, Failed>) -> bool {
    answer.as_ref().is_ok_and(|answer| granted(answer).is_some())
}

/// Returns the command that waits until a replica has acknowledged the previous write.
fn wait_for_replica() -> Cmd {
    let mut wait = redis::cmd("WAIT");
    wait.arg(1).arg(REPLICA_TIMEOUT.as_millis() as u64);
    wait
}
