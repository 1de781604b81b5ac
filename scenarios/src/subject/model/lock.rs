//! The algorithm of every model, with its traits looked up wherever it could go wrong.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use lockstorm_client::Env;
use redis::{Cmd, Value};
use tokio::{sync::Notify, task::JoinSet};

use super::{
    Belief, Cleanup, Key, Quorum, Release, Renewal, Resend, Token, Traits, table,
    wire::{Silence, Wire},
};
use crate::{
    bridge::HostEnv,
    history::{Owner, Wake, Why},
    subject::{Ask, Failure, Held, Local, Patience, Seat, Subject},
};

/// KEYS: the lock. ARGV: the owner's token. Deletes the key if it holds the token; answers how many were deleted.
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// KEYS: the lock. ARGV: the token, the lease in ms. Sets the time to live if the key holds the token; 1 or 0.
const RENEW: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

/// KEYS: the lock. ARGV: the owner, the lease in ms. Adds a hold if the key is free or the owner's; 1 or 0.
const ACQUIRE_COUNTED: &str = "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then \
    redis.call('hincrby', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0";

/// KEYS: the lock. ARGV: the owner. Takes one hold away, and the key with the last one; holds left, or -1 if there was none.
const RELEASE_COUNTED: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return -1 end \
    local left = redis.call('hincrby', KEYS[1], ARGV[1], -1) if left <= 0 then redis.call('del', KEYS[1]) end return left";

/// KEYS: the lock. ARGV: the owner, the lease in ms. Sets the time to live if the owner holds the lock; 1 or 0.
const RENEW_COUNTED: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

/// The longest delay between two attempts, and the whole of it for a model that does not spread them.
const RETRY: Duration = Duration::from_millis(200);

/// How long a node of several may take, and a single one.
const NODE_TIMEOUT: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_millis(3000);

/// Makes the model that the scenario names.
pub(in crate::subject) fn make(seat: Seat) -> Local<'static, Result<Rc<dyn Subject>, Failure>> {
    Box::pin(async move {
        let lock = &seat.plan.scenario.lock;
        let Some(traits) = table::traits(lock.subject) else {
            return Err(Failure { definite: true, message: "not a model".to_owned() });
        };
        let wires: Vec<Rc<Wire>> = seat
            .groups
            .iter()
            .filter_map(|group| group.first())
            .map(|node| Rc::new(Wire::new(seat.ctx.clone(), node.clone())))
            .collect();
        let several = wires.len() > 1;
        let own = if several { lock.node_timeout } else { lock.response_timeout };
        let timeout = own.map_or(if several { NODE_TIMEOUT } else { TIMEOUT }, |span| span.0);
        let retry = lock.retry_delay.map_or(RETRY, |span| span.0);
        let env = HostEnv::new(seat.ctx.clone());
        let owner = seat.teller.owner();
        let shared = Rc::new(Shared {
            traits,
            env,
            wires,
            timeout,
            retry,
            owner,
            name: lock.name.clone(),
            watchdog: lock.watchdog.0,
            seat: seat.clone(),
        });
        Ok(Rc::new(Model(shared)) as Rc<dyn Subject>)
    })
}

struct Shared {
    traits: Traits,
    env: HostEnv,
    wires: Vec<Rc<Wire>>,
    timeout: Duration,
    retry: Duration,
    owner: Owner,
    name: String,
    watchdog: Duration,
    seat: Seat,
}

struct Model(Rc<Shared>);

/// How one attempt came out.
enum Attempt {
    Granted(Rc<Hold>),
    Refused,
    /// Too few nodes answered to know.
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
            let end = match ask.wait {
                Patience::None => Some(shared.env.now()),
                Patience::For(wait) => Some(shared.env.now() + wait),
                Patience::Unbounded => None,
            };
            loop {
                let attempt = shared.clone().attempt(ask.lease).await;
                let over = end.is_some_and(|end| shared.env.now() >= end);
                match attempt {
                    Attempt::Granted(hold) => return Ok(Some(hold as Rc<dyn Held>)),
                    Attempt::Refused if over => return Ok(None),
                    Attempt::Unknown(message) if over => return Err(Failure { definite: false, message }),
                    Attempt::Refused | Attempt::Unknown(_) => {}
                }
                shared.seat.teller.waits(shared.owner);
                shared.env.sleep_until(shared.env.now() + shared.delay()).await;
                shared.seat.teller.woken(shared.owner, Wake::Timer);
            }
        })
    }
}

impl Shared {
    fn delay(&self) -> Duration {
        if self.traits.jitter {
            self.retry.mul_f64((self.env.random() >> 11) as f64 / (1u64 << 53) as f64)
        } else {
            self.retry
        }
    }

    fn quorum(&self) -> usize {
        match self.traits.quorum {
            Quorum::Majority => self.wires.len() / 2 + 1,
            Quorum::Half => (self.wires.len() / 2).max(1),
        }
    }

    /// How long an owner may believe in a lease, in nanoseconds: of a quorum's, less the allowance for drift.
    fn length(&self, lease: Duration) -> i64 {
        let allowed = self.traits.drift && self.wires.len() > 1;
        let drift = if allowed { lease / 100 + Duration::from_millis(2) } else { Duration::ZERO };
        i64::try_from(lease.saturating_sub(drift).as_nanos()).unwrap_or(i64::MAX)
    }

    fn fresh_token(&self) -> String {
        match self.traits.token {
            Token::Unique => format!("{:016x}", self.env.random()),
            Token::Shared => "token".to_owned(),
        }
    }

    fn acquire_command(&self, token: &str, lease: Duration) -> Cmd {
        match self.traits.key {
            Key::Token => {
                let mut command = redis::cmd("SET");
                command.arg(&self.name).arg(token).arg("NX").arg("PX").arg(lease.as_millis() as u64);
                command
            }
            Key::Count => self.script(ACQUIRE_COUNTED, token, Some(lease)),
        }
    }

    fn script(&self, source: &str, token: &str, lease: Option<Duration>) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(source).arg(1).arg(&self.name).arg(token);
        if let Some(lease) = lease {
            command.arg(lease.as_millis() as u64);
        }
        command
    }

    fn release_command(&self, token: &str) -> Cmd {
        match (self.traits.release, self.traits.key) {
            (Release::Delete, _) => {
                let mut command = redis::cmd("DEL");
                command.arg(&self.name);
                command
            }
            (Release::Compare, Key::Token) => self.script(RELEASE, token, None),
            (Release::Compare, Key::Count) => self.script(RELEASE_COUNTED, token, None),
        }
    }

    fn renew_command(&self, token: &str, lease: Duration) -> Cmd {
        match self.traits.renewal {
            Renewal::Anybody => {
                let mut command = redis::cmd("PEXPIRE");
                command.arg(&self.name).arg(lease.as_millis() as u64);
                command
            }
            Renewal::Recreate => {
                let mut command = redis::cmd("SET");
                command.arg(&self.name).arg(token).arg("PX").arg(lease.as_millis() as u64);
                command
            }
            _ if self.traits.key == Key::Count => self.script(RENEW_COUNTED, token, Some(lease)),
            _ => self.script(RENEW, token, Some(lease)),
        }
    }

    /// Asks every node; the answers in the order of the nodes.
    async fn ask_all(self: &Rc<Self>, command: &Cmd) -> Vec<Result<Value, Silence>> {
        let mut answers: Vec<Result<Value, Silence>> = Vec::new();
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

    async fn attempt(self: Rc<Self>, asked_lease: Option<Duration>) -> Attempt {
        let lease = asked_lease.unwrap_or(self.watchdog);
        let mut token = self.fresh_token();
        let mut asked_at = self.traits.clock.now(&self.env);
        let mut answers = self.ask_all(&self.acquire_command(&token, lease)).await;
        if self.traits.resend != Resend::Never && answers.iter().any(Result::is_err) {
            self.wires.iter().for_each(|wire| wire.hang_up());
            if self.traits.resend == Resend::Fresh {
                token = self.fresh_token();
            }
            asked_at = self.traits.clock.now(&self.env);
            answers = self.ask_all(&self.acquire_command(&token, lease)).await;
        }
        let granted = answers.iter().filter(|answer| answer.as_ref().is_ok_and(is_grant)).count();
        let now = self.traits.clock.now(&self.env);
        let length = self.length(lease);
        let until = match self.traits.belief {
            Belief::FromRequest => Some(asked_at.saturating_add(length)),
            Belief::FromReply => Some(now.saturating_add(length)),
            Belief::UntilTold => None,
        };
        if granted >= self.quorum() && until.is_none_or(|until| now < until) {
            let hold = Rc::new(Hold {
                shared: self.clone(),
                token,
                lease,
                length,
                until: Cell::new(until),
                over: Cell::default(),
                ended: Notify::new(),
                renewal: RefCell::default(),
            });
            self.seat.teller.believes(hold.owner(), hold.deadline(), None, 1);
            if asked_lease.is_none() && self.traits.renewal != Renewal::Never {
                let task = tokio::task::spawn_local(renew(hold.clone()));
                hold.renewal.replace(Some(task.abort_handle()));
            }
            return Attempt::Granted(hold);
        }
        self.clean_up(&token, &answers).await;
        let silent = answers.iter().filter_map(|answer| answer.as_ref().err()).next();
        match silent {
            Some(Silence(message))
                if granted + answers.iter().filter(|answer| answer.is_err()).count() >= self.quorum() =>
            {
                Attempt::Unknown(message.clone())
            }
            _ => Attempt::Refused,
        }
    }

    async fn clean_up(self: &Rc<Self>, token: &str, answers: &[Result<Value, Silence>]) {
        let release = self.release_command(token);
        for (wire, answer) in self.wires.iter().zip(answers) {
            let acknowledged = answer.as_ref().is_ok_and(is_grant);
            let wanted = match self.traits.cleanup {
                // On the same connection, and so behind the request that may still be on its way.
                Cleanup::All => acknowledged || answer.is_err(),
                Cleanup::Acknowledged => acknowledged,
                Cleanup::None => false,
            };
            if wanted {
                let (wire, release, timeout) = (wire.clone(), release.clone(), self.timeout);
                tokio::task::spawn_local(async move {
                    let _ = wire.ask(&release, timeout).await;
                });
            }
        }
    }
}

/// Whether a node granted what it was asked.
fn is_grant(answer: &Value) -> bool {
    matches!(answer, Value::Okay | Value::Int(1))
}

/// A lock that the model thinks it holds.
struct Hold {
    shared: Rc<Shared>,
    token: String,
    lease: Duration,
    length: i64,
    until: Cell<Option<i64>>,
    over: Cell<bool>,
    ended: Notify,
    renewal: RefCell<Option<tokio::task::AbortHandle>>,
}

impl Hold {
    fn owner(&self) -> Owner {
        self.shared.seat.teller.owner_named(&self.token)
    }

    fn deadline(&self) -> Option<crate::history::Deadline> {
        self.until.get().map(|until| self.shared.traits.clock.deadline(until))
    }

    fn end(&self, why: Why) {
        if !self.over.replace(true) {
            self.shared.seat.teller.disbelieves(self.owner(), why);
            self.ended.notify_waiters();
        }
    }
}

/// The watchdog of one hold.
async fn renew(hold: Rc<Hold>) {
    let shared = &hold.shared;
    loop {
        shared.env.sleep_until(shared.env.now() + hold.lease / 3).await;
        if hold.over.get() {
            return;
        }
        let asked_at = shared.traits.clock.now(&shared.env);
        let answers = shared.ask_all(&shared.renew_command(&hold.token, hold.lease)).await;
        let renewed = answers.iter().filter(|answer| answer.as_ref().is_ok_and(is_grant)).count();
        let refused =
            answers.iter().filter(|answer| answer.as_ref().is_ok_and(|answer| !is_grant(answer))).count();
        let quorum = shared.quorum();
        match shared.traits.renewal {
            // As long as somebody renews, the model thinks that all is well.
            Renewal::EachNode | Renewal::Anybody | Renewal::Recreate if renewed > 0 => {}
            Renewal::UntilFailure if renewed < quorum => return,
            _ if renewed >= quorum => {}
            // So many have said no that those who were silent cannot make up for them.
            _ if shared.wires.len() - refused < quorum => return hold.end(Why::Lost),
            _ => continue,
        }
        if hold.until.get().is_some() {
            hold.until.set(Some(asked_at.saturating_add(hold.length)));
        }
        if !hold.over.get() {
            shared.seat.teller.believes(hold.owner(), hold.deadline(), None, 1);
        }
    }
}

impl Held for Hold {
    fn release(&self) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            if let Some(renewal) = self.renewal.take() {
                renewal.abort();
            }
            self.end(Why::Released);
            let answers = self.shared.ask_all(&self.shared.release_command(&self.token)).await;
            match answers.into_iter().find_map(Result::err) {
                Some(Silence(message)) if self.shared.wires.len() == 1 => {
                    // The next try must not wait behind the silence of this connection.
                    self.shared.wires.iter().for_each(|wire| wire.hang_up());
                    Err(Failure { definite: false, message })
                }
                _ => Ok(()),
            }
        })
    }

    fn extend(&self, lease: Duration) -> Local<'_, Result<(), Failure>> {
        Box::pin(async move {
            let shared = &self.shared;
            let asked_at = shared.traits.clock.now(&shared.env);
            let answers = shared.ask_all(&shared.renew_command(&self.token, lease)).await;
            let extended = answers.iter().filter(|answer| answer.as_ref().is_ok_and(is_grant)).count();
            if extended < shared.quorum() {
                return Err(Failure { definite: false, message: format!("{extended} nodes extended") });
            }
            if self.until.get().is_some() {
                self.until.set(Some(asked_at.saturating_add(shared.length(lease))));
            }
            shared.seat.teller.believes(self.owner(), self.deadline(), None, 1);
            Ok(())
        })
    }

    fn is_held(&self) -> bool {
        let now = self.shared.traits.clock.now(&self.shared.env);
        !self.over.get() && self.until.get().is_none_or(|until| now < until)
    }

    fn lost(&self) -> Local<'_, ()> {
        Box::pin(async move {
            while self.is_held() {
                let Some(until) = self.until.get() else {
                    self.ended.notified().await;
                    continue;
                };
                let left = u64::try_from(until - self.shared.traits.clock.now(&self.shared.env)).unwrap_or(0);
                tokio::select! {
                    biased;
                    () = self.ended.notified() => {}
                    () = self.shared.env.sleep_until(self.shared.env.now() + Duration::from_nanos(left.max(1))) => {}
                }
            }
        })
    }

    fn owner(&self) -> Option<String> {
        Some(self.token.clone())
    }

    fn token(&self) -> Option<u64> {
        None
    }
}
