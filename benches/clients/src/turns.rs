//! Measures clients that repeatedly want one lock, each on its own connection: the evenness of
//! their grants, and their waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::{Failure, LEASE, Subject, quantile};

/// The grants and waits of one client.
#[derive(Default)]
struct Share {
    grants: u64,
    /// The time that it waited for each grant, and for the last try in vain.
    waits: Vec<Duration>,
}

/// The client that had the lock last, and the number of changes.
#[derive(Default)]
struct HandOffs {
    last: Option<usize>,
    count: u64,
}

struct Contest {
    until: Instant,
    hold: Duration,
    think: Duration,
    hand_offs: Mutex<HandOffs>,
}

impl Contest {
    /// Counts the grant to `client`, which began to acquire at `begun`; returns false if it is
    /// after the end. A wait beyond the end counts up to the end.
    async fn granted(&self, client: usize, begun: Instant, share: &mut Share) -> bool {
        let now = Instant::now();
        share.waits.push(now.min(self.until).saturating_duration_since(begun));
        if now >= self.until {
            return false;
        }
        share.grants += 1;
        let mut hand_offs = self.hand_offs.lock().await;
        if hand_offs.last.replace(client) != Some(client) {
            hand_offs.count += 1;
        }
        true
    }

    /// Passes this time. Tokio's timers tick once a millisecond: a hold would be up to twice as
    /// long, and the holds and pauses of all clients would end together.
    async fn pass(&self, time: Duration) -> Result<(), Failure> {
        if !time.is_zero() {
            tokio::task::spawn_blocking(move || std::thread::sleep(time)).await?;
        }
        Ok(())
    }

    async fn contend(&self, client: usize, subject: Subject) -> Result<Share, Failure> {
        let mut share = Share::default();
        while Instant::now() < self.until {
            let begun = Instant::now();
            match &subject {
                Subject::Lockstorm(ours) => {
                    let guard = ours.lock("turns").acquire().await?;
                    if self.granted(client, begun, &mut share).await {
                        self.pass(self.hold).await?;
                    }
                    guard.release().await?;
                }
                Subject::Strings(ours) => {
                    let guard = ours.string_lock("turns").acquire().await?;
                    if self.granted(client, begun, &mut share).await {
                        self.pass(self.hold).await?;
                    }
                    guard.release().await?;
                }
                Subject::Rslock(manager) => {
                    let guard = manager.acquire(b"turns".as_slice(), LEASE).await?;
                    if self.granted(client, begun, &mut share).await {
                        self.pass(self.hold).await?;
                    }
                    guard.release().await;
                }
                Subject::Redlock(_) => return Err("redlock blocks its thread: it takes no turns".into()),
            }
            self.pass(self.think).await?;
        }
        Ok(share)
    }
}

/// Executes `CLIENTS MILLISECONDS HOLD THINK`, the last two in microseconds. Returns grants,
/// hand-offs, the median, the 99th percentile and the longest wait in microseconds, Jain's index of
/// the grants, and the number of clients without a grant.
pub(crate) async fn measure(client: &str, url: &str, words: &[&str]) -> Result<String, Failure> {
    let &[clients, millis, hold, think] = words else {
        return Err("not `turns CLIENTS MILLISECONDS HOLD THINK`".into());
    };
    let mut subjects = Vec::new();
    for _ in 0..clients.parse::<usize>()? {
        subjects.push(Subject::connect(client, url).await?);
    }
    let contest = Arc::new(Contest {
        until: Instant::now() + Duration::from_millis(millis.parse()?),
        hold: Duration::from_micros(hold.parse()?),
        think: Duration::from_micros(think.parse()?),
        hand_offs: Mutex::default(),
    });
    let mut running = JoinSet::new();
    for (number, subject) in subjects.into_iter().enumerate() {
        let contest = contest.clone();
        running.spawn(async move { contest.contend(number, subject).await });
    }
    let (mut grants, mut waits) = (Vec::new(), Vec::new());
    while let Some(done) = running.join_next().await {
        let share = done??;
        grants.push(share.grants as f64);
        waits.extend(share.waits);
    }
    waits.sort_unstable();
    let (all, squares) = (grants.iter().sum::<f64>(), grants.iter().map(|one| one * one).sum::<f64>());
    let jain = all * all / (grants.len() as f64 * squares);
    let starved = grants.iter().filter(|one| **one == 0.0).count();
    let hand_offs = contest.hand_offs.lock().await.count;
    let [p50, p99, longest] = [0.5, 0.99, 1.0].map(|share| quantile(&waits, share));
    Ok(format!("{all} {hand_offs} {p50:.1} {p99:.1} {longest:.1} {jain:.4} {starved}"))
}
