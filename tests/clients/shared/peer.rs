//! A process that shares locks with others: `lockstorm-client`, with one command per line of its
//! input.
//!
//! `peer WATCHDOG_MS URL...` reads `ID<tab>THREAD<tab>VERB<tab>ARGUMENT...` from standard input,
//! executes the commands of each thread one after another, and replies `ID<tab>OUTCOME`.
//! `Peer.java` in the folder of the JVM's clients understands the same words, and `suite.py` sends
//! them to both. A thread is an owner. The locks are on the first server or group of servers, a
//! Redlock on all of them, and `KIND@2` is a lock on the second.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::rc::Rc;
use std::time::Duration;

use lockstorm_client::{
    Client, Error, ErrorKind, FencedGuard, FencedLock, Guard, Handle, Lock, LockGuard, MultiGuard, MultiLock,
    Object, OwnerId, RateMode, Redlock,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The reason of a failed command, for the reader of the replies.
type Failure = Box<dyn std::error::Error>;

struct Peer {
    clients: Vec<Client>,
    first_url: String,
}

enum Kind {
    Plain(Lock),
    Fenced(FencedLock),
    Red(Redlock),
    Multi(MultiLock),
}

/// The holds of an owner.
enum Held {
    Plain(LockGuard),
    Fenced(FencedGuard),
    Multi(MultiGuard),
}

impl Held {
    async fn release(self) -> Result<(), Error> {
        match self {
            Self::Plain(guard) => guard.release().await,
            Self::Fenced(guard) => guard.release().await,
            Self::Multi(guard) => guard.release().await,
        }
    }
}

/// The parameters of an acquisition.
#[derive(Clone, Copy)]
struct Ask {
    /// `None` waits without a limit.
    wait: Option<Duration>,
    owner: Option<OwnerId>,
    lease: Option<Duration>,
}

async fn asked<O: Object>(lock: &Handle<O>, ask: Ask) -> Result<Option<Guard<O::Got>>, Error> {
    let Some(wait) = ask.wait else {
        let mut asked = lock.acquire();
        if let Some(owner) = ask.owner {
            asked = asked.owner(owner);
        }
        if let Some(lease) = ask.lease {
            asked = asked.lease(lease);
        }
        return asked.await.map(Some);
    };
    let mut asked = if wait.is_zero() { lock.try_acquire() } else { lock.try_acquire_for(wait) };
    if let Some(owner) = ask.owner {
        asked = asked.owner(owner);
    }
    if let Some(lease) = ask.lease {
        asked = asked.lease(lease);
    }
    asked.await
}

/// Acquires a multi lock in the same way as its members.
async fn asked_together(lock: &MultiLock, ask: Ask) -> Result<Option<MultiGuard>, Error> {
    let owner = ask.owner.unwrap_or_else(|| OwnerId::new(0));
    match ask.wait {
        None => {
            let asked = lock.acquire().owner(owner);
            match ask.lease {
                Some(lease) => asked.lease(lease).await.map(Some),
                None => asked.await.map(Some),
            }
        }
        Some(wait) => {
            let asked = if wait.is_zero() { lock.try_acquire() } else { lock.try_acquire_for(wait) };
            let asked = asked.owner(owner);
            match ask.lease {
                Some(lease) => asked.lease(lease).await,
                None => asked.await,
            }
        }
    }
}

impl Kind {
    async fn acquire(&self, ask: Ask) -> Result<Option<Held>, Error> {
        Ok(match self {
            Self::Multi(lock) => asked_together(lock, ask).await?.map(Held::Multi),
            Self::Plain(lock) => asked(lock, ask).await?.map(Held::Plain),
            Self::Fenced(lock) => asked(lock, ask).await?.map(Held::Fenced),
            Self::Red(lock) => asked(lock, ask).await?.map(Held::Plain),
        })
    }

    async fn is_locked(&self) -> Result<bool, Failure> {
        Ok(match self {
            Self::Plain(lock) => lock.is_locked().await?,
            Self::Fenced(lock) => lock.is_locked().await?,
            Self::Red(lock) => lock.is_locked().await?,
            Self::Multi(_) => return Err(not_of_all()),
        })
    }

    async fn force_release(&self) -> Result<bool, Failure> {
        Ok(match self {
            Self::Plain(lock) => lock.force_release().await?,
            Self::Fenced(lock) => lock.force_release().await?,
            Self::Red(lock) => lock.force_release().await?,
            Self::Multi(_) => return Err(not_of_all()),
        })
    }

    async fn hold_count(&self, owner: OwnerId) -> Result<u64, Failure> {
        Ok(match self {
            Self::Plain(lock) => lock.hold_count(owner).await?,
            Self::Fenced(lock) => lock.hold_count(owner).await?,
            Self::Red(lock) => lock.hold_count(owner).await?,
            Self::Multi(_) => return Err(not_of_all()),
        })
    }
}

/// The error for a command that only single locks support.
fn not_of_all() -> Failure {
    "a multi lock is not asked that".into()
}

impl Peer {
    fn lock(&self, kind: &str, name: &str) -> Result<Kind, Failure> {
        let (kind, server) = match kind.split_once('@') {
            Some((kind, server)) => (kind, server.parse::<usize>()? - 1),
            None => (kind, 0),
        };
        let client = self.clients.get(server).ok_or("no such server")?;
        Ok(match kind {
            "lock" => Kind::Plain(client.lock(name)),
            "fair" => Kind::Plain(client.fair_lock(name)),
            "fenced" => Kind::Fenced(client.fenced_lock(name)),
            "read" => Kind::Plain(client.rw_lock(name).read()),
            "write" => Kind::Plain(client.rw_lock(name).write()),
            "spin" => Kind::Plain(client.spin_lock(name)),
            "non-reentrant" => Kind::Plain(client.non_reentrant_lock(name)),
            "non-reentrant fair" => Kind::Plain(client.non_reentrant_fair_lock(name)),
            "multi" => {
                let members = self.clients.iter();
                let lock = members.fold(MultiLock::builder(), |lock, client| lock.member(&client.lock(name)));
                Kind::Multi(lock.build()?)
            }
            "red" => {
                // Generous, because a first use also connects, on a busy machine.
                let lock =
                    Redlock::builder(self.clients.iter().cloned()).node_timeout(Duration::from_secs(2));
                Kind::Red(lock.build(name)?)
            }
            _ => match kind.strip_prefix("values ") {
                // One value per letter.
                Some(values) => Kind::Plain(client.faster_multi_lock(name, values.chars().map(String::from))),
                None => return Err(format!("no kind {kind}").into()),
            },
        })
    }

    /// Executes commands on permits, which have no owner: they are taken here, and any process may
    /// give them back.
    async fn permits(&self, words: &[&str]) -> Result<String, Failure> {
        let client = &self.clients[0];
        let counted = |name| client.semaphore(name);
        let named = |name| client.permit_semaphore(name);
        Ok(match *words {
            ["permits", name, permits] => counted(name).set_permits(permits.parse()?).await?.to_string(),
            ["left", name] => counted(name).available().await?.to_string(),
            ["take", name, permits] => {
                let _ = counted(name).acquire(permits.parse()?).await?.forget();
                "taken".to_owned()
            }
            ["try to take", name, permits, wait] => {
                let wait = millis(wait)?.unwrap_or_default();
                let taken = counted(name).try_acquire_for(permits.parse()?, wait).await?;
                taken
                    .map_or("refused", |permits| if permits.forget() > 0 { "taken" } else { "none" })
                    .to_owned()
            }
            ["give", name, permits] => {
                counted(name).release(permits.parse()?).await?;
                "given".to_owned()
            }
            ["ids", name, permits] => named(name).set_permits(permits.parse()?).await?.to_string(),
            ["ids left", name] => named(name).available().await?.to_string(),
            ["take id", name, lease] => {
                let lease = millis(lease)?.ok_or("for how long?")?;
                let ids = named(name).acquire(1).lease(lease).await?.forget();
                ids.first().ok_or("no id")?.to_string()
            }
            ["try to take id", name, wait, lease] => {
                let (wait, lease) =
                    (millis(wait)?.unwrap_or_default(), millis(lease)?.ok_or("for how long?")?);
                let taken = named(name).try_acquire_for(1, wait).lease(lease).await?;
                taken
                    .and_then(|guard| guard.forget().pop())
                    .map_or_else(|| "refused".to_owned(), |id| id.to_string())
            }
            ["give id", name, id] => {
                if named(name).release(&[id.parse()?]).await? { "given" } else { "not out" }.to_owned()
            }
            _ => return Err(format!("no verb {words:?}").into()),
        })
    }

    /// Increments a number `turns` times by reading and writing it under the lock, without any
    /// atomic command.
    async fn count_up(&self, kind: &str, name: &str, counter: &str, turns: u32) -> Result<(), Failure> {
        let mut connection =
            redis::Client::open(self.first_url.as_str())?.get_multiplexed_async_connection().await?;
        let lock = self.lock(kind, name)?;
        for _ in 0..turns {
            let ask = Ask { wait: None, owner: None, lease: None };
            let held = lock.acquire(ask).await?.ok_or("waited in vain")?;
            let count: Option<u64> = redis::cmd("GET").arg(counter).query_async(&mut connection).await?;
            let more = count.unwrap_or(0) + 1;
            redis::cmd("SET").arg(counter).arg(more).query_async::<()>(&mut connection).await?;
            held.release().await?;
        }
        Ok(())
    }
}

/// A thread with its holds.
struct Thread {
    peer: Rc<Peer>,
    owner: OwnerId,
    held: BTreeMap<(String, String), Vec<Held>>,
}

impl Thread {
    async fn obey(&mut self, words: &[&str]) -> Result<String, Failure> {
        Ok(match *words {
            ["owner"] => format!("{}:{}", self.peer.clients[0].id(), self.owner),
            ["acquire", kind, name, lease] => {
                let ask = Ask { wait: None, owner: Some(self.owner), lease: millis(lease)? };
                let held = self.peer.lock(kind, name)?.acquire(ask).await;
                if let Err(error) = &held
                    && matches!(error.kind(), ErrorKind::AlreadyHeld)
                {
                    return Ok("held already".to_owned());
                }
                let held = held?;
                self.keep(kind, name, held.ok_or("waited in vain")?)
            }
            ["try", kind, name, wait, lease] => {
                let wait = Some(millis(wait)?.unwrap_or_default());
                let ask = Ask { wait, owner: Some(self.owner), lease: millis(lease)? };
                match self.peer.lock(kind, name)?.acquire(ask).await? {
                    Some(held) => self.keep(kind, name, held),
                    None => "refused".to_owned(),
                }
            }
            ["release", kind, name] => {
                let held = self.held.get_mut(&(kind.to_owned(), name.to_owned())).and_then(Vec::pop);
                match held {
                    Some(guard) => released(guard.release().await)?,
                    None => "not held".to_owned(),
                }
            }
            ["force", kind, name] => {
                let forced = self.peer.lock(kind, name)?.force_release().await?;
                if forced { "freed" } else { "was free" }.to_owned()
            }
            ["locked", kind, name] => self.peer.lock(kind, name)?.is_locked().await?.to_string(),
            ["levels", kind, name] => self.peer.lock(kind, name)?.hold_count(self.owner).await?.to_string(),
            ["token", name] => {
                let Kind::Fenced(lock) = self.peer.lock("fenced", name)? else {
                    return Err("not fenced".into());
                };
                lock.last_token().await?.map_or_else(|| "none".to_owned(), |token| token.to_string())
            }
            ["count up", kind, name, counter, turns] => {
                self.peer.count_up(kind, name, counter, turns.parse()?).await?;
                "counted".to_owned()
            }
            _ => return self.obey_without_owner(words).await,
        })
    }

    /// Executes commands on objects without owners: a latch, a rate limiter, semaphores.
    async fn obey_without_owner(&self, words: &[&str]) -> Result<String, Failure> {
        let client = &self.peer.clients[0];
        Ok(match *words {
            ["set", name, count] => client.latch(name).try_set(count.parse()?).await?.to_string(),
            ["count down", name] => {
                client.latch(name).count_down().await?;
                "counted".to_owned()
            }
            ["await", name] => {
                client.latch(name).wait().await?;
                "open".to_owned()
            }
            ["delete latch", name] => client.latch(name).delete().await?.to_string(),
            ["set rate", name, mode, rate, interval] => {
                let mode = if mode == "OVERALL" { RateMode::Overall } else { RateMode::PerClient };
                let interval = millis(interval)?.ok_or("which interval?")?;
                client.rate_limiter(name).try_set_rate(mode, rate.parse()?, interval).await?.to_string()
            }
            ["rate", name] => {
                let config = client.rate_limiter(name).config().await?.ok_or("no rate")?;
                let mode = match config.mode {
                    RateMode::Overall => "OVERALL",
                    RateMode::PerClient => "PER_CLIENT",
                };
                format!("{} in {} ms, {mode}", config.rate, config.interval.as_millis())
            }
            ["permits left", name] => client.rate_limiter(name).available().await?.to_string(),
            ["limited", name, permits, wait] => {
                let (limiter, permits) = (client.rate_limiter(name), permits.parse()?);
                let granted = match millis(wait)? {
                    Some(Duration::ZERO) => limiter.try_acquire(permits).await?,
                    Some(wait) => limiter.try_acquire_for(permits, wait).await?,
                    None => limiter.acquire(permits).await.map(|()| true)?,
                };
                if granted { "granted" } else { "refused" }.to_owned()
            }
            _ => return self.peer.permits(words).await,
        })
    }

    fn keep(&mut self, kind: &str, name: &str, held: Held) -> String {
        let said = match &held {
            Held::Fenced(guard) => format!("granted {}", guard.token()),
            Held::Plain(_) | Held::Multi(_) => "granted".to_owned(),
        };
        self.held.entry((kind.to_owned(), name.to_owned())).or_default().push(held);
        said
    }
}

fn released(done: Result<(), Error>) -> Result<String, Error> {
    match done {
        Ok(()) => Ok("released".to_owned()),
        Err(error) if matches!(error.kind(), ErrorKind::NotHeld { .. }) => Ok("not held".to_owned()),
        Err(error) => Err(error),
    }
}

/// Parses milliseconds; `-` is `None`.
fn millis(text: &str) -> Result<Option<Duration>, Failure> {
    Ok(if text == "-" { None } else { Some(Duration::from_millis(text.parse()?)) })
}

async fn serve(mut thread: Thread, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        let words: Vec<_> = line.split('\t').collect();
        let outcome = thread.obey(&words[2..]).await.unwrap_or_else(|error| format!("error: {error}"));
        let mut out = std::io::stdout().lock();
        // The reader is gone: stop.
        if writeln!(out, "{}\t{outcome}", words[0]).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let watchdog = arguments.next().as_deref().map(millis).transpose()?.flatten().ok_or("which time-out?")?;
    let urls: Vec<_> = arguments.collect();
    let mut clients = Vec::new();
    for url in &urls {
        clients.push(Client::builder().endpoint(url).watchdog_timeout(watchdog).connect().await?);
    }
    let first_url = urls.into_iter().next().ok_or("which server?")?;
    let peer = Rc::new(Peer { clients, first_url });

    let (line, mut lines) = mpsc::unbounded_channel();
    // Only a thread can wait for standard input.
    std::thread::spawn(move || {
        for read in std::io::stdin().lock().lines() {
            let Ok(read) = read else { return };
            if line.send(read).is_err() {
                return;
            }
        }
    });
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            let mut threads = BTreeMap::new();
            let mut serving = JoinSet::new();
            while let Some(line) = lines.recv().await {
                let [_, name, _verb, ..] = line.split('\t').collect::<Vec<_>>()[..] else {
                    return Err(format!("not a command: {line}").into());
                };
                let owner = OwnerId::new(name.parse()?);
                let thread = threads.entry(owner).or_insert_with(|| {
                    let (line, lines) = mpsc::unbounded_channel();
                    let thread = Thread { peer: peer.clone(), owner, held: BTreeMap::new() };
                    serving.spawn_local(serve(thread, lines));
                    line
                });
                thread.send(line)?;
            }
            Ok(())
        })
        .await
}
