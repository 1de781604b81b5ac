//! A peer of `lockstorm trial` with `lockstorm-client`: the reentrant lock on one node, the Redlock
//! on several. With the argument `fenced`, the lock on one node is the one with fencing tokens.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::rc::{Rc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockstorm_client::{
    Client, Error, ErrorKind, FencedGuard, FencedLock, Guard, Handle, Lock, LockGuard, Object, Redlock,
};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// The interval of checks for the loss of the lock and for the watchdog's renewals.
const EVERY: Duration = Duration::from_millis(50);

enum Kind {
    One(Lock),
    Red(Redlock),
    Fenced(FencedLock),
}

enum Held {
    Plain(LockGuard),
    Fenced(FencedGuard),
}

impl Held {
    fn validity(&self) -> Duration {
        match self {
            Held::Plain(guard) => guard.validity(),
            Held::Fenced(guard) => guard.validity(),
        }
    }

    fn is_valid(&self) -> bool {
        match self {
            Held::Plain(guard) => guard.is_valid(),
            Held::Fenced(guard) => guard.is_valid(),
        }
    }

    fn owner(&self) -> &str {
        match self {
            Held::Plain(guard) => guard.owner(),
            Held::Fenced(guard) => guard.owner(),
        }
    }

    fn token(&self) -> Option<u64> {
        match self {
            Held::Plain(_) => None,
            Held::Fenced(guard) => Some(guard.token()),
        }
    }

    async fn extend(&self, lease: Duration) -> Result<(), Error> {
        match self {
            Held::Plain(guard) => guard.extend(lease).await,
            Held::Fenced(guard) => guard.extend(lease).await,
        }
    }

    async fn release(self) -> Result<(), Error> {
        match self {
            Held::Plain(guard) => guard.release().await,
            Held::Fenced(guard) => guard.release().await,
        }
    }
}

#[derive(Default)]
struct Peer {
    is_fenced: bool,
    locks: RefCell<BTreeMap<String, Rc<Kind>>>,
    holds: RefCell<BTreeMap<u64, Rc<Held>>>,
}

async fn asked<O: Object>(
    lock: &Handle<O>,
    wait: Option<Duration>,
    lease: Option<Duration>,
) -> Result<Option<Guard<O::Got>>, Error> {
    match (wait, lease) {
        (None, None) => lock.acquire().await.map(Some),
        (None, Some(lease)) => lock.acquire().lease(lease).await.map(Some),
        (Some(wait), None) => lock.try_acquire_for(wait).await,
        (Some(wait), Some(lease)) => lock.try_acquire_for(wait).lease(lease).await,
    }
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    // If the reader is gone, the input ends as well.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

/// The certain end of the hold, in milliseconds since the Unix epoch by the wall clock.
#[expect(clippy::disallowed_methods, reason = "a process of its own, in real time")]
fn until_ms(guard: &Held) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from((now + guard.validity()).as_millis()).unwrap_or(u64::MAX)
}

/// Reports renewals and the loss, while the guard exists.
#[expect(clippy::disallowed_methods, reason = "a process of its own, in real time")]
async fn watch(hold: u64, guard: Weak<Held>, mut told: u64) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(guard) = guard.upgrade() else { return };
        if !guard.is_valid() {
            return say(&json!({ "type": "lost", "hold": hold }));
        }
        let until = until_ms(&guard);
        // Two readings of the clocks differ by less than 10 ms.
        if until > told + 10 {
            told = until;
            say(&json!({ "type": "renewed", "hold": hold, "until_ms": until }));
        }
    }
}

impl Peer {
    async fn answer(&self, asked_for: &Value) -> Result<Value, Failure> {
        let number = |name: &str| asked_for[name].as_u64();
        let millis = |name: &str| number(name).map(Duration::from_millis);
        Ok(match asked_for["type"].as_str().unwrap_or_default() {
            "init" => {
                for lock in asked_for["locks"].as_array().ok_or("no locks")? {
                    let name = lock["name"].as_str().ok_or("no name")?;
                    let mut clients = Vec::new();
                    for node in lock["nodes"].as_array().ok_or("no nodes")? {
                        let url = format!("redis://{}", node.as_str().ok_or("no address")?);
                        let mut client = Client::builder().endpoint(&url);
                        client =
                            client.watchdog_timeout(millis("watchdog_ms").ok_or("no lease of the watchdog")?);
                        if let Some(timeout) = millis("timeout_ms") {
                            client = client.response_timeout(timeout);
                        }
                        clients.push(client.connect().await?);
                    }
                    let kind = match &clients[..] {
                        [one] if self.is_fenced => Kind::Fenced(one.fenced_lock(name)),
                        [one] => Kind::One(one.lock(name)),
                        _ => Kind::Red(Redlock::builder(clients).build(name)?),
                    };
                    let called = lock["lock"].as_str().ok_or("no lock")?;
                    self.locks.borrow_mut().insert(called.to_owned(), Rc::new(kind));
                }
                json!({ "type": "ready" })
            }
            "acquire" => {
                let id = number("id").ok_or("no id")?;
                let name = asked_for["lock"].as_str().ok_or("no lock")?;
                let lock = self.locks.borrow().get(name).cloned().ok_or("no such lock")?;
                let (wait, lease) = (millis("wait_ms"), millis("lease_ms"));
                let granted = match &*lock {
                    Kind::One(lock) => asked(lock, wait, lease).await?.map(Held::Plain),
                    Kind::Red(lock) => asked(lock, wait, lease).await?.map(Held::Plain),
                    Kind::Fenced(lock) => asked(lock, wait, lease).await?.map(Held::Fenced),
                };
                let Some(guard) = granted else { return Ok(json!({ "type": "refused" })) };
                let (owner, guard) = (Value::from(guard.owner()), Rc::new(guard));
                let (until, token) = (until_ms(&guard), guard.token());
                tokio::task::spawn_local(watch(id, Rc::downgrade(&guard), until));
                self.holds.borrow_mut().insert(id, guard);
                json!({ "type": "granted", "owner": owner, "until_ms": until, "token": token })
            }
            "release" => {
                let hold = number("hold").ok_or("no hold")?;
                let guard = self.holds.borrow_mut().remove(&hold).ok_or("no such hold")?;
                // `watch` has it only for the length of a poll, and a hold gets one command at a
                // time.
                let guard = Rc::into_inner(guard).ok_or("it is being extended")?;
                guard.release().await?;
                json!({ "type": "released" })
            }
            "extend" => {
                let hold = number("hold").ok_or("no hold")?;
                let guard = self.holds.borrow().get(&hold).cloned().ok_or("no such hold")?;
                guard.extend(millis("lease_ms").ok_or("no lease")?).await?;
                json!({ "type": "extended", "until_ms": until_ms(&guard) })
            }
            other => return Err(format!("no request of type {other}").into()),
        })
    }

    async fn obey(&self, asked_for: Value) {
        let mut said = self.answer(&asked_for).await.unwrap_or_else(|error| {
            let of_client = error.downcast_ref::<Error>();
            let definite = of_client.is_some_and(|error| {
                error.is_definite() || matches!(error.kind(), ErrorKind::NotHeld { .. })
            });
            json!({ "type": "error", "text": error.to_string(), "definite": definite })
        });
        said["id"] = asked_for["id"].clone();
        say(&said);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let (line, mut lines) = tokio::sync::mpsc::unbounded_channel();
    // Only a thread can wait for standard input.
    std::thread::spawn(move || {
        for read in std::io::stdin().lock().lines().map_while(Result::ok) {
            if line.send(read).is_err() {
                return;
            }
        }
    });
    let is_fenced = std::env::args().any(|argument| argument == "fenced");
    let mut can = vec!["wait", "extend", "watchdog"];
    can.push(if is_fenced { "token" } else { "quorum" });
    say(&json!({
        "type": "hello", "protocol": 1, "library": "lockstorm-client", "version": env!("CARGO_PKG_VERSION"), "can": can,
    }));
    let peer = Rc::new(Peer { is_fenced, ..Peer::default() });
    tokio::task::LocalSet::new()
        .run_until(async {
            while let Some(line) = lines.recv().await {
                let asked_for = serde_json::from_str(&line)?;
                let peer = peer.clone();
                tokio::task::spawn_local(async move { peer.obey(asked_for).await });
            }
            Ok(())
        })
        .await
}
