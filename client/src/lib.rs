//! Redis locks for production, wire-compatible with Redisson.
//!
//! ```
//! use lockstorm_client::Client;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> lockstorm_client::Result<()> {
//! # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
//! # let url = server.url();
//! let client = Client::connect(&url).await?; // such as redis://127.0.0.1:6379
//! let guard = client.lock("stock").acquire().await?;
//! // The watchdog renews the lock every 10 s until it is released.
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! A lease is a promise about time, and no client can keep it while it stands still.
//! [`Guard::lost`] and [`Guard::validity`] say when the promise ends by this client's clock; what
//! must be right even then needs a [fencing token](FencedGuard::token) that the guarded resource
//! checks.
//!
//! # Where this differs from Redisson
//!
//! Keys, fields, channels and messages are the same, so that both can share a lock.
//! `tests/clients/shared` has processes of both do so: they exclude, wake, outlive and queue behind
//! each other as their own kind. On purpose different:
//!
//! * A lease is never shortened: neither by a nested acquisition with a shorter one nor by a
//!   renewal.
//! * An acquisition without an owner never nests; owners are named, not implied by a thread.
//! * A request whose reply was lost is not sent again blindly. The client ends the old connection
//!   on the server, looks at its own count, and goes on from what it finds. Where the user may not
//!   do that (`+client|kill`, `+client|info`), an acquisition or forced release whose reply was
//!   lost is an error, and a release relies on the server to remember it.
//! * Giving one level back leaves the lease of the others as it is; Redisson sets it anew.
//! * A call ends with an error when no server answers within [`Builder::call_timeout`]; `None`
//!   always means another owner.
//! * A caller that gives up leaves nothing behind: what was granted too late is given back, a place
//!   in a queue is left.
//! * The holder is notified when its lease has run out by its own clock.
//! * The fair lock: the wait is in milliseconds whatever the lease, a waiter that gives up gives
//!   back the wait it asked with, a place without a deadline counts as dead, and releasing a free
//!   lock is an error.
//! * The fair lock, again: a head that asks has its wait anew, so that no live waiter loses its
//!   place to the clock, and those behind it, Redisson's among them, get theirs later by as much.
//!   Redisson's waiters do not do so: as the head each of them loses its place as among its own
//!   kind.
//! * An owner of a [non-reentrant lock](Client::non_reentrant_lock) whose first reply was lost gets
//!   its lock, and no error.
//! * A waiter of a [spin lock](Client::spin_lock) ends with its limit, not after one more delay.
//! * The [read-write lock](Client::rw_lock): a nested write hold keeps the longer lease, where
//!   Redisson adds the two; a read hold that is given back never shortens the writer's lease, and
//!   ends the renewal of no write hold; each level of a read hold keeps its own lease, in whichever
//!   order they are given back; a downgrade and a shortened lease wake waiters; a plain lock of the
//!   same name excludes readers and writers; releasing a free lock publishes nothing.
//! * A [`MultiLock`] gives back what it got before it waits for what it did not get, notices that a
//!   member is lost, and releases all members even if one of them fails.
//! * A [faster multi-lock](Client::faster_multi_lock): the server's clock says until when a value
//!   is held, where each of Redisson's clients goes by its own, and a value that is lost all the
//!   same makes its guard lost. An owner holds its values or does not; Redisson leaves the first of
//!   them out of the question, and releases a value that was taken from its owner. A release of
//!   what is partly lost gives the rest back, once. All waiters look at a message.
//! * A [semaphore](Client::semaphore) publishes no total without permits, at which Redisson's
//!   listeners fail or wake no waiter, and its waiters look at any message. Waiters of one client
//!   for several permits keep none from those that one permit serves. No change of it drops the
//!   time to live of its key.
//! * An [expirable semaphore](Client::permit_semaphore): the server's clock says when a permit
//!   expires, where each of Redisson's clients goes by its own. A permit without a lease is renewed
//!   by the watchdog, where Redisson's never ends. Permits are given back by their ids all or none,
//!   be they one or several, and expired ones are not given back.
//! * A [count-down latch](Client::latch) that vanishes, by its deletion, expiry or FLUSHALL, lets
//!   its waiters go; Redisson's wait on. Its deletion is published as an opening, so that
//!   Redisson's waiters, too, go on. Its channel is no key of the scripts: of a name with braces it
//!   has another slot, at which Redisson's fail in a cluster.
//! * A [rate limiter](Client::rate_limiter) goes by the server's clock, where each of Redisson's
//!   clients goes by its own. A new rate does not forget what was granted in the window, and a
//!   waiter asks again when there will be enough permits.
//! * [`Redlock`] is the published one: a value on each server, where Redisson's is one of its plain
//!   locks. The two exclude each other, but neither receives the other's release messages: its
//!   waiters ask again and again.
//!
//! What its users know by other names:
//!
//! * `getLock`, `getFairLock`, `getFencedLock`: [`Client::lock`], [`Client::fair_lock`],
//!   [`Client::fenced_lock`];
//! * `getNonReentrantLock`, `getNonReentrantFairLock`: [`Client::non_reentrant_lock`],
//!   [`Client::non_reentrant_fair_lock`];
//! * `getReadWriteLock(name)`: [`Client::rw_lock`], with `readLock()` and `writeLock()` as
//!   [`read`](ReadWriteLock::read) and [`write`](ReadWriteLock::write);
//! * `getSpinLock(name, backOff)`: [`Client::spin_lock`], [`Client::spin_lock_with`];
//! * `getMultiLock(locks)`: [`MultiLock::builder`];
//! * `getMultiLock(group, values)`: [`Client::faster_multi_lock`];
//! * `getSemaphore`: [`Client::semaphore`], with `trySetPermits`, `addPermits`, `drainPermits` and
//!   `availablePermits` as [`set_permits`](Semaphore::set_permits),
//!   [`add_permits`](Semaphore::add_permits), [`drain`](Semaphore::drain) and
//!   [`available`](Semaphore::available); `acquire(n)`, `tryAcquire(n)`, `tryAcquire(n, wait)`,
//!   `release(n)` as [`acquire`](Semaphore::acquire), [`try_acquire`](Semaphore::try_acquire),
//!   [`try_acquire_for`](Semaphore::try_acquire_for) and [`release`](Semaphore::release), or the
//!   guard's;
//! * `getPermitExpirableSemaphore`: [`Client::permit_semaphore`], with `updateLeaseTime` and
//!   `acquiredPermits` as [`update_lease`](PermitSemaphore::update_lease) and
//!   [`acquired`](PermitSemaphore::acquired), and `release(id)`, `release(ids)` and `tryRelease` as
//!   [`release`](PermitSemaphore::release);
//! * `getCountDownLatch`: [`Client::latch`], with `trySetCount`, `countDown`, `getCount` and
//!   `delete` as [`try_set`](Latch::try_set), [`count_down`](Latch::count_down),
//!   [`count`](Latch::count) and [`delete`](Latch::delete); `await()`, `await(time)` as
//!   [`wait`](Latch::wait), [`wait_for`](Latch::wait_for);
//! * `getRateLimiter`: [`Client::rate_limiter`], with `trySetRate`, `setRate`, `getConfig` and
//!   `availablePermits` as [`try_set_rate`](RateLimiter::try_set_rate),
//!   [`set_rate`](RateLimiter::set_rate), [`config`](RateLimiter::config) and
//!   [`available`](RateLimiter::available); `acquire(n)`, `tryAcquire(n)`, `tryAcquire(n, wait)` as
//!   [`acquire`](RateLimiter::acquire), [`try_acquire`](RateLimiter::try_acquire),
//!   [`try_acquire_for`](RateLimiter::try_acquire_for);
//! * `lock()`, `lock(lease, unit)`: [`acquire()`](Handle::acquire),
//!   [`acquire().lease(..)`](Acquire::lease);
//! * `tryLock()`, `tryLock(wait, lease, unit)`: [`try_acquire`](Handle::try_acquire),
//!   [`try_acquire_for`](Handle::try_acquire_for);
//! * `lockAsync(threadId)`: [`acquire().owner(..)`](Acquire::owner);
//! * `unlock()`, `forceUnlock()`: [`Guard::release`], [`Handle::force_release`];
//! * `isHeldByCurrentThread()`, `isLocked()`: [`Guard::is_valid`], [`Handle::is_locked`];
//! * without a counterpart: [`Guard::forget`] and [`adopt`](Handle::adopt) hand a hold over to
//!   another process, [`with`](Handle::with) releases whatever happens;
//! * `getHoldCount()`, `remainTimeToLive()`: [`Handle::hold_count`], [`Handle::remaining`];
//! * `lockAndGetToken()`: [`FencedGuard::token`];
//! * `lockWatchdogTimeout`, `fairLockWaitTimeout`: [`Builder::watchdog_timeout`],
//!   [`Builder::fair_wait_timeout`].
//!
#![doc = include_str!("rights.md")]
//!
#![doc = include_str!("refusals.md")]
//!
//! # Topologies
//!
//! | deployment | its URL | how the master of a lock is found |
//! | --- | --- | --- |
//! | one server | `redis://host:6379` | |
//! | a replicated set | several [endpoints](Builder::endpoint) | all are asked for their roles, whenever a connection is made |
//! | Sentinel | `redis+sentinel://h1:26379,h2:26379/mymaster` | all Sentinels are asked, when they announce another master, when a request fails, and once a second; the newest configuration counts, and the server must say itself that it is a master |
//! | Redis Cluster | `redis+cluster://h1:7000,h2:7001` | CLUSTER SLOTS of a few nodes, when a request is sent elsewhere (MOVED, ASK) or fails, every 0.1 to 0.5 s while a call waits for a new master, and every five seconds; the newest configuration counts |
//!
//! [`Address`] has the URLs in full. All objects are there on all of them. What is acquired,
//! renewed, waited for and given back follows its master: after each change of a master all locks
//! are renewed at once, so that the loss of one is noticed, and all waiters look. A reply of a
//! server that another one has replaced meanwhile counts as lost. Sentinels and nodes that know an
//! older configuration than this client are not believed, unless a majority of them has known
//! nothing newer for 30 s.
//!
//! Replication is asynchronous, so that no topology keeps what it has acknowledged. A lock is in
//! danger of two owners where one server goes on granting after another has been promoted. With *D*
//! for `down-after-milliseconds`, *NT* for `cluster-node-timeout`:
//!
//! | what happens | acknowledged changes that are lost | two servers grant |
//! | --- | --- | --- |
//! | the master crashes, on any topology with replicas | those of the last moments that the promoted replica has not received | no |
//! | the master crashes, and is back before *D* or *NT* is over | those that its disk has not kept (`appendfsync`); without persistence all | no; but what it has forgotten it grants again, though the old lease runs |
//! | Sentinel: the master is cut off together with clients | all from the cut until about 11 s after it heals | from about *D* + 1 s after the cut until then; with `min-replicas-to-write` from 1 on until 12 s after the cut at most |
//! | Sentinel: the master freezes, and goes on after the failover | all from then on for about 11 s | the same time |
//! | Sentinel: the master is cut off from the Sentinels only | those on the old master from the promotion until 10 to 12 s after a Sentinel reaches it | the same time, for clients that do not leave; this one leaves when the first Sentinel tells |
//! | SENTINEL FAILOVER | those on the old master for 10 to 12 s; with `min-replicas-to-write` hardly any | the same time, for clients that do not leave; this one leaves when the first Sentinel tells |
//! | Cluster: the master is cut off together with clients and a minority | all until it stops, 1 to 1.5 *NT* after the cut | half of *NT* at most |
//! | Cluster: the master freezes, and goes on after the failover | what waits in its sockets | for milliseconds |
//! | Cluster: a master sees the majority but not its replica, and crashes later | all since the link to the replica broke, which may be about 10 s + 11 *NT*; after that the replica is not elected, and nothing grants (`cluster-replica-validity-factor`) | no |
//! | Cluster: CLUSTER FAILOVER | none | no |
//! | Cluster: CLUSTER FAILOVER with FORCE or TAKEOVER | those of a moment; if the old master is cut off, all until it stops, 1 to 1.5 *NT* after the cut | for milliseconds; if the old master is cut off, until it stops |
//! | Cluster: a slot moves | none; those still at the old node if the slot is handed over before they have moved | no; if the node it leaves fails over meanwhile, until that is mended |
//!
//! [`ReplicaWait`] has each change confirmed by replicas before it counts: with
//! [`All`](ReplicaWait::All) a grant survives any one failover, with
//! [`Majority`](ReplicaWait::Majority) one in which the promoted replica is among those that have
//! confirmed, which Sentinel and Cluster prefer and do not promise. How many replicas there are the
//! servers say: the endpoints of a replicated set, the Sentinels, which forget none that is down,
//! or the nodes of the cluster. None of this helps against a server that grants although it has
//! been replaced. Only a [fencing token](FencedGuard::token) does, as long as the counter is not
//! lost in the same way.
//!
//! A cluster keeps the keys of a lock in the slot of its name, which is a hash tag in the names of
//! its other keys. A name with a brace but without a tag (`a{b`) divides them; the kinds of locks
//! with several keys then refuse it. While a slot is being moved, what needs several keys is
//! refused by the nodes (TRYAGAIN): locks are acquired and renewed, but releases wait until the
//! slot has moved, and are repeated [as all releases are](#what-servers-refuse). From Redis 7 on
//! messages are published within the node of the lock's slot (SPUBLISH), as Redisson chooses by the
//! same test, since waiters of the one kind do not hear the other; before, to all nodes.
//!
//! # Features
//!
//! None is on by default.
//!
//! | what it adds | feature | with it |
//! | --- | --- | --- |
//! | TLS, by rustls: authorities, client certificates, names of servers | `tls` | `rediss://`, [`Tls`] |
//! | locks as spans and events of the crate tracing | `tracing` | [`TracingObserver`] |
//! | counters and histograms of the facade metrics | `metrics` | [`MetricsObserver`] |
//! | a client for programs without a runtime | `blocking` | [`blocking::Client`] |
//!
//! # Connections
//!
//! A client has one connection for requests and, while it waits for locks, one for messages, to
//! each master whose locks it uses; and one to each Sentinel, or to a few nodes of a cluster. It
//! makes them itself, and does not take a connection that an application has, such as a
//! `MultiplexedConnection` or a `ConnectionManager`. Its promises need a connection of its own:
//! when a reply does not come it ends the connection on the server (CLIENT KILL), which would end
//! the application's requests as well, and a connection that reconnects by itself, or that others
//! select a database on, is not the one that the request went over. An application's own settings
//! serve for both: [`Client::connect`] takes its [`redis::ConnectionInfo`].
//!
//! Passwords that change are asked for whenever a connection is made: [`Builder::credentials`].
//!
//! # Servers
//!
//! | server | tested with | what is different there |
//! | --- | --- | --- |
//! | Redis 7.0 | all tests, always | |
//! | Redis 6.2 | 6.2.5 and 6.2.14, waiting and connecting | |
//! | Valkey 9 | 9.1.2, waiting and connecting | |
//! | Redis 6.0 | nothing | it has no CLIENT INFO: what is said above of users without it holds for all |
//! | Redis 5 | 5.0.7, waiting | it has no RESP3: an acquisition that would have to wait for a message gets an error that says so. A [spin lock](Client::spin_lock), a [rate limiter](Client::rate_limiter) and a [`Redlock`] wait without messages |
//!
//! The tests of this crate run on another server when `LOCKSTORM_REDIS_SERVER` names one:
//! `LOCKSTORM_REDIS_SERVER=/opt/valkey/bin/valkey-server cargo test -p lockstorm-client --test
//! client -- waiting:: connections::`.
//!
//! # What goes on in the background
//!
//! An acquisition whose caller is gone sends nothing more. What it has sent is followed up until
//! its outcome is known, and what was granted is given back. At most 1,024 acquisitions of a client
//! are on the wire at a time, with its looks at latches and its requests to rate limiters; others
//! wait for their turn. Places in queues are given back 200 to a script, of 16 locks at a time, and
//! again until that has worked; a client remembers 50,000 of them, beyond which places end with
//! their deadlines. A node of a Redlock that leaves 1,024 requests unanswered counts as silent
//! until some of them are settled.
//!
//! All of it ends with the runtime. [`Client::close`], awaited before, releases what is held and
//! waits for the rest.
//!
//! # Map of the code
//!
//! In reading order; a module imports only those above it.
//!
//! | module | what it does |
//! | --- | --- |
//! | `refusal` | what servers refuse with, and which of that passes |
//! | `error`, `mutex`, [`limits`], `env` | what fails, how mutexes are locked, what is taken of each quantity, the seam to the world |
//! | `tls/` | TLS between the client and its servers |
//! | `endpoint`, `address` | where a server is, and how to log in there; what an application calls a deployment |
//! | [`wire`] | keys, channels and slots as all processes that share a lock write them, the allowance for drift |
//! | `rights` | what each object needs the user of the server to be allowed |
//! | `config`, `owner` | the settings, the fields of owners |
//! | `observer/` | the events of locks, and their way into `tracing` and `metrics` |
//! | `key`, `script` | keys and their slots, Lua scripts and calls of them |
//! | `work` | what a client has under way |
//! | `hold/` | what this client believes of each granted lock, and the one ledger of them |
//! | `task`, `progress` | work that goes on without its caller, and the caller's answer |
//! | `route/` | connections, which node has a key (the topologies), redirections, WAIT, safe repetition |
//! | `wake/` | subscriptions that wake waiters |
//! | `renew/` | the watchdog |
//! | `spin` | the delays of waiters that no message wakes |
//! | `attempt` | what a kind of lock says about itself: how it is asked for, kept and given back |
//! | `departures` | leaving the queues of fair locks |
//! | `latches` | the latches of earlier releases, which the next release deletes |
//! | `session` | what all locks of a client share |
//! | `explain` | which right it is that the user lacks |
//! | `wait` | the wait loop, which knows no lock |
//! | `recover` | what became of a request whose reply is lost |
//! | `guard`, `keeper` | a held lock, and giving it back |
//! | `acquire` | getting a lock on one master |
//! | `lock`, `client`, `close` | the handles, and their end |
//! | `blocking` | the client for programs without a runtime |
//! | `locks/` | one folder per kind: Rust and Lua side by side |
//!
//! To add a lock, add a folder under `locks/` that implements `attempt::Attempt`, `attempt::Lease`
//! and `attempt::ForceRelease`, and a constructor on [`Client`].

// Says on docs.rs which items need which feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod refusal;
mod error;
mod mutex;
pub mod limits;
mod env;
mod tls;
mod endpoint;
mod address;
pub mod wire;
mod rights;
mod config;
mod owner;
mod observer;
mod key;
mod script;
mod work;
mod hold;
mod task;
mod progress;
mod route;
mod wake;
mod renew;
mod spin;
mod attempt;
mod departures;
mod latches;
mod session;
mod explain;
mod wait;
mod recover;
mod guard;
mod keeper;
mod acquire;
mod lock;
mod client;
mod close;
#[cfg(feature = "blocking")]
pub mod blocking;
mod locks;

pub use address::{Address, Sentinels};
pub use client::{Builder, Client};
pub use close::Unfinished;
pub use config::ReplicaWait;
pub use endpoint::Credentials;
pub use env::{Boottime, BoxStream, Env, Monotonic, Stream, TokioEnv, Wall};
pub use error::{Error, ErrorKind, Result};
pub use futures_util::future::BoxFuture;
pub use guard::{FencedGuard, Got, Guard, LockGuard, OfLock, Token};
pub use lock::{Acquire, Done, FencedLock, Handle, Lock, Object, OnMaster, TryAcquire};
pub use locks::latch::Latch;
pub use locks::multi::{AcquireAll, HeldMember, MultiGuard, MultiLock, MultiLockBuilder, TryAcquireAll};
pub use locks::permit_semaphore::{
    AcquirePermits, PermitGuard, PermitId, PermitIds, PermitSemaphore, TryAcquirePermits,
};
pub use locks::rate_limiter::{RateConfig, RateLimiter, RateMode};
pub use locks::read_write::ReadWriteLock;
pub use locks::redlock::{OnMajority, Redlock, RedlockBuilder};
pub use locks::semaphore::{Semaphore, SemaphorePermits};
#[cfg(feature = "metrics")]
pub use observer::MetricsObserver;
#[cfg(feature = "tracing")]
pub use observer::TracingObserver;
pub use observer::{Event, EventKind, LossCause, Observer, Outcome, WokenBy};
pub use owner::OwnerId;
pub use spin::SpinBackoff;
#[cfg(feature = "tls")]
pub use tls::Tls;

/// The examples of the README work.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
