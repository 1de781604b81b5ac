//! Measures one lock client in its own process: `lockstorm-bench-clients CLIENT THREADS PORT`.
//!
//! It reads lines `WORKLOAD TASKS MILLISECONDS` from standard input, runs each workload for that
//! time, and replies with a line of numbers: grants, hand-offs, and the median and the 99th
//! percentile of the acquisition times in microseconds. `Redisson.java` understands the same words,
//! and `run.py` sends them to both. `turns.rs` executes the lines `turns CLIENTS MILLISECONDS HOLD
//! THINK` of `turns.py`.

mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lockstorm_client::{Client, Lock};
use redlock::RedLock;
use rslock::LockManager;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The lease for clients without a watchdog: longer than any workload.
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone)]
enum Subject {
    Lockstorm(Client),
    /// Our client with its string lock, whose requests are those of rslock.
    Strings(Client),
    Rslock(LockManager),
    Redlock(Arc<RedLock>),
}

impl Subject {
    async fn connect(client: &str, url: &str) -> Result<Self, Failure> {
        Ok(match client {
            "lockstorm" => Self::Lockstorm(Client::connect(url).await?),
            "strings" => Self::Strings(Client::connect(url).await?),
            "rslock" => Self::Rslock(LockManager::new(vec![url])),
            "redlock" => Self::Redlock(Arc::new(RedLock::new(vec![url]))),
            _ => {
                return Err(
                    format!("no client {client}; there are lockstorm, strings, rslock, redlock").into()
                );
            }
        })
    }
}

#[derive(Clone, Copy)]
enum Workload {
    /// Each task acquires and releases a lock of its own.
    Cycles,
    /// All tasks acquire and release one lock.
    HandOffs,
    /// All tasks acquire and release one fair lock.
    FairHandOffs,
}

impl Workload {
    fn named(name: &str) -> Result<Self, Failure> {
        Ok(match name {
            "cycles" => Self::Cycles,
            "plain" => Self::HandOffs,
            "fair" => Self::FairHandOffs,
            _ => return Err(format!("no workload {name}; there are cycles, plain, fair").into()),
        })
    }
}

/// The shared counters of a workload's tasks.
struct Board {
    until: Instant,
    /// The task that held the shared lock last. Only the holder writes it.
    last: AtomicUsize,
    hand_offs: AtomicU64,
}

impl Board {
    fn is_open(&self) -> bool {
        Instant::now() < self.until
    }

    /// Counts a grant to `task`, which began to acquire at `begun`. Grants after the end do not
    /// count.
    fn granted(&self, task: usize, begun: Instant, waits: &mut Vec<Duration>) {
        let now = Instant::now();
        if now < self.until {
            waits.push(now - begun);
            if self.last.swap(task, Ordering::Relaxed) != task {
                self.hand_offs.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

async fn lockstorm(lock: Lock, task: usize, board: Arc<Board>) -> Result<Vec<Duration>, Failure> {
    let mut waits = Vec::new();
    while board.is_open() {
        let begun = Instant::now();
        let guard = lock.acquire().await?;
        board.granted(task, begun, &mut waits);
        guard.release().await?;
    }
    Ok(waits)
}

/// The lock of this task, of the kind that the workload wants.
fn lock_of(client: &Client, workload: Workload, task: usize) -> Lock {
    match workload {
        Workload::Cycles => client.lock(&format!("own:{task}")),
        Workload::HandOffs => client.lock("plain"),
        Workload::FairHandOffs => client.fair_lock("fair"),
    }
}

/// The key's name for clients without kinds of locks.
fn name(workload: Workload, task: usize) -> Result<String, Failure> {
    match workload {
        Workload::Cycles => Ok(format!("value:{task}")),
        Workload::HandOffs => Ok("value".to_owned()),
        Workload::FairHandOffs => Err("this client has no fair lock".into()),
    }
}

async fn rslock(
    manager: LockManager,
    workload: Workload,
    task: usize,
    board: Arc<Board>,
) -> Result<Vec<Duration>, Failure> {
    let name = name(workload, task)?;
    let mut waits = Vec::new();
    while board.is_open() {
        let begun = Instant::now();
        let guard = manager.acquire(name.as_bytes(), LEASE).await?;
        board.granted(task, begun, &mut waits);
        guard.release().await;
    }
    Ok(waits)
}

/// This client blocks its thread, and opens a connection for each request.
fn redlock(
    manager: &RedLock,
    workload: Workload,
    task: usize,
    board: &Board,
) -> Result<Vec<Duration>, Failure> {
    let name = name(workload, task)?;
    let lease_ms = usize::try_from(LEASE.as_millis())?;
    let mut waits = Vec::new();
    while board.is_open() {
        let begun = Instant::now();
        let guard = manager.acquire(name.as_bytes(), lease_ms)?;
        board.granted(task, begun, &mut waits);
        drop(guard);
    }
    Ok(waits)
}

/// The value of sorted waits at this share, in microseconds.
fn quantile(sorted: &[Duration], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e6)
}

async fn measure(
    subject: &Subject,
    workload: Workload,
    tasks: usize,
    time: Duration,
) -> Result<String, Failure> {
    let until = Instant::now() + time;
    let board = Arc::new(Board { until, last: AtomicUsize::new(usize::MAX), hand_offs: AtomicU64::new(0) });
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let board = board.clone();
        match subject.clone() {
            Subject::Lockstorm(client) => {
                running.spawn(lockstorm(lock_of(&client, workload, task), task, board))
            }
            Subject::Strings(client) => {
                running.spawn(lockstorm(client.string_lock(&name(workload, task)?), task, board))
            }
            Subject::Rslock(manager) => running.spawn(rslock(manager, workload, task, board)),
            Subject::Redlock(manager) => {
                running.spawn_blocking(move || redlock(&manager, workload, task, &board))
            }
        };
    }
    let mut waits = Vec::new();
    while let Some(done) = running.join_next().await {
        waits.extend(done??);
    }
    waits.sort_unstable();
    let hand_offs = board.hand_offs.load(Ordering::Relaxed);
    Ok(format!("{} {hand_offs} {:.1} {:.1}", waits.len(), quantile(&waits, 0.5), quantile(&waits, 0.99)))
}

async fn serve(client: &str, port: &str) -> Result<(), Failure> {
    let url = format!("redis://127.0.0.1:{port}");
    let subject = Subject::connect(client, &url).await?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if let ["turns", rest @ ..] = &*line.split(' ').collect::<Vec<_>>() {
            println!("{}", turns::measure(client, &url, rest).await?);
            continue;
        }
        let &[workload, tasks, millis] = &*line.split(' ').collect::<Vec<_>>() else {
            return Err(format!("not `WORKLOAD TASKS MILLISECONDS`: {line}").into());
        };
        let time = Duration::from_millis(millis.parse()?);
        println!("{}", measure(&subject, Workload::named(workload)?, tasks.parse()?, time).await?);
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [client, threads, port] = &arguments[..] else {
        return Err("wanted: CLIENT THREADS PORT".into());
    };
    let runtime = match threads.parse()? {
        1 => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        threads => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?
        }
    };
    runtime.block_on(async {
        // In a task, so that with several threads none of the client's work is on the main thread.
        let (client, port) = (client.clone(), port.clone());
        tokio::spawn(async move { serve(&client, &port).await }).await?
    })
}
