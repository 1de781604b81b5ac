//! A process that shares locks with others: `lockstorm-client`, with one command per line of its input.
//!
//! `peer WATCHDOG_MS PORT...` reads `ID<tab>THREAD<tab>VERB<tab>ARGUMENT...` from standard input, does in each thread
//! one thing after another, and answers `ID<tab>OUTCOME`. `Peer.java` in the folder of the JVM's clients understands the
//! same words, and `suite.py` gives them to both. A thread is an owner; the locks stand on the first server, a RedLock on
//! all of them, and `KIND@2` is a lock on the second.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::rc::Rc;
use std::time::Duration;

use lockstorm_client::{Acquire, Client, Error, ErrorKind, Guard, Lock, OwnerId, RedLock, TryAcquire};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Why a command failed, for the reader of the answers.
type Failure = Box<dyn std::error::Error>;

struct Peer {
    clients: Vec<Client>,
    first_url: String,
}

enum Kind {
    Single(Lock),
    Red(RedLock),
}

impl Kind {
    fn acquire(&self) -> Acquire {
        match self {
            Self::Single(lock) => lock.acquire(),
            Self::Red(lock) => lock.acquire(),
        }
    }

    fn try_acquire(&self, wait: Duration) -> TryAcquire {
        match self {
            Self::Single(lock) if wait.is_zero() => lock.try_acquire(),
            Self::Single(lock) => lock.try_acquire_for(wait),
            Self::Red(lock) if wait.is_zero() => lock.try_acquire(),
            Self::Red(lock) => lock.try_acquire_for(wait),
        }
    }

    async fn is_locked(&self) -> lockstorm_client::Result<bool> {
        match self {
            Self::Single(lock) => lock.is_locked().await,
            Self::Red(lock) => lock.is_locked().await,
        }
    }
}

impl Peer {
    fn lock(&self, kind: &str, name: &str) -> Result<Kind, Failure> {
        let (kind, server) = match kind.split_once('@') {
            Some((kind, server)) => (kind, server.parse::<usize>()? - 1),
            None => (kind, 0),
        };
        let client = self.clients.get(server).ok_or("no such server")?;
        Ok(match kind {
            "lock" => Kind::Single(client.lock(name)),
            "fair" => Kind::Single(client.fair_lock(name)),
            "fenced" => Kind::Single(client.fenced_lock(name)),
            "red" => {
                let lock = RedLock::new(self.clients.iter().cloned(), name)?;
                // Generous, because a first use also connects, on a machine that does other things.
                Kind::Red(lock.node_timeout(Duration::from_secs(2)))
            }
            _ => return Err(format!("no kind {kind}").into()),
        })
    }

    fn single(&self, kind: &str, name: &str) -> Result<Lock, Failure> {
        match self.lock(kind, name)? {
            Kind::Single(lock) => Ok(lock),
            Kind::Red(_) => Err("not of a RedLock".into()),
        }
    }

    /// Adds one to a number without any help of the server, once for each turn with the lock.
    async fn count_up(&self, kind: &str, name: &str, counter: &str, turns: u32) -> Result<(), Failure> {
        let mut connection =
            redis::Client::open(self.first_url.as_str())?.get_multiplexed_async_connection().await?;
        let lock = self.lock(kind, name)?;
        for _ in 0..turns {
            let guard = lock.acquire().await?;
            let count: Option<u64> = redis::cmd("GET").arg(counter).query_async(&mut connection).await?;
            let more = count.unwrap_or(0) + 1;
            redis::cmd("SET").arg(counter).arg(more).query_async::<()>(&mut connection).await?;
            guard.release().await?;
        }
        Ok(())
    }
}

/// What one thread holds.
struct Thread {
    peer: Rc<Peer>,
    owner: OwnerId,
    held: BTreeMap<(String, String), Vec<Guard>>,
}

impl Thread {
    async fn obey(&mut self, words: &[&str]) -> Result<String, Failure> {
        Ok(match *words {
            ["owner"] => format!("{}:{}", self.peer.clients[0].id(), self.owner),
            ["acquire", kind, name, lease] => {
                let mut asked = self.peer.lock(kind, name)?.acquire().owner(self.owner);
                if let Some(lease) = millis(lease)? {
                    asked = asked.lease(lease);
                }
                self.keep(kind, name, asked.await?)
            }
            ["try", kind, name, wait, lease] => {
                let wait = millis(wait)?.unwrap_or_default();
                let mut asked = self.peer.lock(kind, name)?.try_acquire(wait).owner(self.owner);
                if let Some(lease) = millis(lease)? {
                    asked = asked.lease(lease);
                }
                match asked.await? {
                    Some(guard) => self.keep(kind, name, guard),
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
                let forced = self.peer.single(kind, name)?.force_release().await?;
                if forced { "freed" } else { "was free" }.to_owned()
            }
            ["locked", kind, name] => self.peer.lock(kind, name)?.is_locked().await?.to_string(),
            ["levels", kind, name] => self.peer.single(kind, name)?.hold_count(self.owner).await?.to_string(),
            ["token", name] => {
                let token = self.peer.single("fenced", name)?.last_token().await?;
                token.map_or_else(|| "none".to_owned(), |token| token.to_string())
            }
            ["count up", kind, name, counter, turns] => {
                self.peer.count_up(kind, name, counter, turns.parse()?).await?;
                "counted".to_owned()
            }
            _ => return Err(format!("no verb {words:?}").into()),
        })
    }

    fn keep(&mut self, kind: &str, name: &str, guard: Guard) -> String {
        let said = match guard.fencing_token() {
            Some(token) => format!("granted {token}"),
            None => "granted".to_owned(),
        };
        self.held.entry((kind.to_owned(), name.to_owned())).or_default().push(guard);
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

/// `-` is none.
fn millis(text: &str) -> Result<Option<Duration>, Failure> {
    Ok(if text == "-" { None } else { Some(Duration::from_millis(text.parse()?)) })
}

async fn serve(mut thread: Thread, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        let words: Vec<_> = line.split('\t').collect();
        let outcome = thread.obey(&words[2..]).await.unwrap_or_else(|error| format!("error: {error}"));
        let mut out = std::io::stdout().lock();
        // The reader is gone: nothing to do.
        if writeln!(out, "{}\t{outcome}", words[0]).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let watchdog = arguments.next().as_deref().map(millis).transpose()?.flatten().ok_or("which time-out?")?;
    let urls: Vec<_> = arguments.map(|port| format!("redis://127.0.0.1:{port}")).collect();
    let mut clients = Vec::new();
    for url in &urls {
        clients.push(Client::builder().endpoint(url).watchdog_timeout(watchdog).connect().await?);
    }
    let first_url = urls.into_iter().next().ok_or("which port?")?;
    let peer = Rc::new(Peer { clients, first_url });

    let (line, mut lines) = mpsc::unbounded_channel();
    // Standard input has no other way to be waited for.
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
