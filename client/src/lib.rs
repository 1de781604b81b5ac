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
//! A lease is a promise about time, and no client can keep it while it is paused. [`Guard::lost`]
//! and [`Guard::validity`] report the end of the promise by this client's clock. Data that must
//! stay correct even then needs a [fencing token](FencedGuard::token) that the guarded resource
//! checks.
//!
//! # Differences from Redisson
//!
//! Keys, fields, channels and messages are the same, so that both can share a lock. The tests in
//! `tests/clients/shared` run processes of both kinds: they exclude each other, wake each other,
//! outlive each other and share queues as if they were of one kind. These differences are
//! intentional:
//!
//! * A lease is never shortened, neither by a nested acquisition with a shorter lease nor by a
//!   renewal.
//! * An acquisition without an owner never nests; owners are named, not implied by a thread.
//! * A request whose reply was lost is not blindly sent again. The client ends the old connection
//!   on the server, looks at the owner's level count, and continues from there. Where the user may
//!   not do that (`+client|kill`, `+client|info`), an acquisition or forced release whose reply was
//!   lost returns an error, and a release relies on the server to remember the request.
//! * Releasing one level does not change the lease of the others; Redisson sets a new lease.
//! * A call returns an error if no server answers within [`Builder::call_timeout`]; `None` always
//!   means another owner.
//! * A caller that gives up leaves nothing behind: the client releases a late grant, and leaves the
//!   queue.
//! * The holder is notified when its lease has run out by its own clock.
//! * The fair lock: the wait is in milliseconds, independent of the lease. A waiter that gives up
//!   shortens the deadlines behind it by its own wait. A place without a deadline counts as
//!   dead. Releasing a free lock is an error.
//! * The fair lock, queue: a head that asks gets its full wait again, so no live waiter loses its
//!   place to the clock. The waiters behind it, Redisson's included, get the lock later by the same
//!   time. Redisson's waiters do not renew their deadlines: as the head, such a waiter loses its
//!   place as it would among its own kind.
//! * The owner of a [non-reentrant lock](Client::non_reentrant_lock) whose first reply was lost
//!   gets its lock instead of an error.
//! * A waiter of a [spin lock](Client::spin_lock) ends at its limit, not after one more delay.
//! * The [read-write lock](Client::rw_lock): a nested write hold keeps the longer lease, where
//!   Redisson adds the two. Releasing a read hold never shortens the writer's lease, and ends the
//!   renewal of no write hold. Each level of a read hold keeps its own lease, in whatever order the
//!   levels are released. A downgrade and a shortened lease wake waiters. A plain lock of the
//!   same name excludes readers and writers. Releasing a free lock publishes nothing.
//! * A [`MultiLock`] releases its granted members before it waits for the rest, notices the loss
//!   of a member, and releases all members even if one release fails.
//! * A [faster multi-lock](Client::faster_multi_lock): the server's clock decides how long a value
//!   is held, where each Redisson client uses its own. If a value is lost all the same, its guard
//!   is lost. An owner holds either all of its values or none; Redisson does not check the first of
//!   them, and releases a value that was taken from its owner. Releasing a partly lost hold gives
//!   the rest back, once. A message makes all waiters look.
//! * A [semaphore](Client::semaphore) never publishes a total without permits, on which Redisson's
//!   listeners fail or wake no waiter; and its waiters look at any message. Of the waiters of one
//!   client, those that want several permits do not block those that one permit serves. No change
//!   removes the TTL of its key.
//! * An [expirable semaphore](Client::permit_semaphore): the server's clock decides when a permit
//!   expires, where each Redisson client uses its own. The watchdog renews a permit without a
//!   lease, where Redisson's never ends. Permits are released by their ids all or none, for one id
//!   as for several, and expired ones are not released.
//! * A [count-down latch](Client::latch) that vanishes, by deletion, expiry or FLUSHALL, lets its
//!   waiters continue; Redisson's keep waiting. Its deletion is published as an opening, so that
//!   Redisson's waiters continue, too. Its channel is not declared as a key of the scripts: for a
//!   name with braces it is in another slot, which makes Redisson's scripts fail in a cluster.
//! * A [rate limiter](Client::rate_limiter) uses the server's clock, where each Redisson client
//!   uses its own. A new rate does not forget the grants of the window, and a waiter asks again
//!   when enough permits will be available.
//! * [`Redlock`] is the published algorithm, with a value on each server; Redisson's consists of
//!   its plain locks. The two exclude each other, but neither receives the other's release
//!   messages: waiters of this one poll.
//!
//! Redisson's names and their counterparts here:
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
//! * without a counterpart in Redisson: [`Guard::forget`] and [`adopt`](Handle::adopt) hand a hold
//!   over to another process, [`with`](Handle::with) releases the lock in any case, and a
//!   [string lock](Client::string_lock) costs the server least;
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
//! | deployment | its URL | search for the master of a lock |
//! | --- | --- | --- |
//! | one server | `redis://host:6379` | follows a Valkey that has become a replica, where [`Redirects`] allow it |
//! | a replicated set | several [endpoints](Builder::endpoint) | asks all for their roles whenever a connection is made |
//! | Sentinel | `redis+sentinel://h1:26379,h2:26379/mymaster` | asks all Sentinels when they announce another master, when a request fails, and once a second; the newest configuration counts, and the server must itself report to be a master |
//! | Redis Cluster | `redis+cluster://h1:7000,h2:7001` | asks a few nodes for CLUSTER SLOTS: when a request is redirected (MOVED, ASK) or fails, every 0.1 to 0.5 s while a call waits for a new master, and every five seconds; the newest configuration counts |
//!
//! [`Address`] documents the URLs in full. All objects are available in all topologies.
//! Acquisitions, renewals, waits and releases follow their master. After each change of a master
//! all locks are renewed immediately, so that a loss is noticed, and all waiters look. A reply of a
//! server that was replaced before it arrived counts as lost. Sentinels and nodes with an older
//! configuration than this client's are not believed, unless a majority of them has reported
//! nothing newer for 30 s.
//!
//! Replication is asynchronous, so no topology keeps all acknowledged changes. A lock may get two
//! owners if one server continues to grant after another has been promoted. In this table *D*
//! stands for `down-after-milliseconds` and *NT* for `cluster-node-timeout`:
//!
//! | what happens | acknowledged changes that are lost | two servers grant |
//! | --- | --- | --- |
//! | the master crashes, on any topology with replicas | those of the last moments that the promoted replica has not received | no |
//! | the master crashes, and is back before *D* or *NT* is over | those that its disk has not kept (`appendfsync`); without persistence all | no; but it grants forgotten locks again, although their old leases still run |
//! | Sentinel: the master is cut off together with clients | all from the cut until about 11 s after it heals | from about *D* + 1 s after the cut until then; with `min-replicas-to-write` of 1 or more, until at most 12 s after the cut |
//! | Sentinel: the master freezes, and goes on after the failover | all from then on for about 11 s | the same time |
//! | Sentinel: the master is cut off from the Sentinels only | those on the old master from the promotion until 10 to 12 s after a Sentinel reaches it | the same time, for clients that stay with it; this one leaves at the first report of a Sentinel |
//! | SENTINEL FAILOVER | those on the old master for 10 to 12 s; with `min-replicas-to-write` hardly any | the same time, for clients that stay with it; this one leaves at the first report of a Sentinel |
//! | Cluster: the master is cut off together with clients and a minority | all until it stops, 1 to 1.5 *NT* after the cut | at most half of *NT* |
//! | Cluster: the master freezes, and goes on after the failover | requests that wait in its sockets | for milliseconds |
//! | Cluster: a master sees the majority but not its replica, and crashes later | all since the link to the replica broke, which may be about 10 s + 11 *NT*; after that the replica is not elected, and nothing grants (`cluster-replica-validity-factor`) | no |
//! | Cluster: CLUSTER FAILOVER | none | no |
//! | Cluster: CLUSTER FAILOVER with FORCE or TAKEOVER | those of a moment; if the old master is cut off, all until it stops, 1 to 1.5 *NT* after the cut | for milliseconds; if the old master is cut off, until it stops |
//! | Cluster: a slot moves | none; if the slot is handed over before all keys have moved, those still at the old node | no; if the old node fails over during the move, until that is repaired |
//!
//! [`ReplicaWait`] makes replicas confirm each change before it counts. With
//! [`All`](ReplicaWait::All) a grant survives any single failover. With
//! [`Majority`](ReplicaWait::Majority) it survives a failover that promotes one of the replicas
//! that have confirmed; Sentinel and Cluster prefer those but do not promise it. [`Durability`]
//! makes disks confirm as well, so that a grant survives a restart. The number of
//! replicas is taken from the endpoints of a replicated set, from the Sentinels (which also count
//! those that are down), or from the nodes of the cluster. None of this helps against a server that
//! grants although it has been replaced. Only a [fencing token](FencedGuard::token) does, as long
//! as its counter is not lost in the same way.
//!
//! A cluster keeps the keys of a lock in the slot of its name, which is the hash tag in the names
//! of its other keys. A name with a brace but without a tag (`a{b`) puts its keys into different
//! slots; kinds of locks with several keys refuse it. While a slot is being moved, nodes refuse
//! requests with several keys (TRYAGAIN). Locks can then be acquired and renewed, but releases wait
//! until the slot has moved, and are retried [as all releases are](#what-servers-refuse). From
//! Redis 7 on messages stay within the node of the lock's slot (SPUBLISH); before, they go to all
//! nodes. Redisson decides by the same test, which matters because a waiter of the one kind does
//! not receive messages of the other.
//!
//! # Features
//!
//! No feature is on by default.
//!
//! | what it adds | feature | items |
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
//! makes them itself, and does not accept an application's connection, such as a
//! `MultiplexedConnection` or a `ConnectionManager`. Its promises need a connection of its own.
//! When a reply does not come it ends the connection on the server (CLIENT KILL), which would also
//! end the application's requests. Besides, a connection that reconnects by itself, or on which
//! others select a database, may not be the one that carried the request. The application's
//! settings can be reused: [`Client::connect`] accepts its [`redis::ConnectionInfo`].
//!
//! For passwords that change, [`Builder::credentials`] provides one whenever a connection is made.
//!
//! # Servers
//!
//! | server | tested with | differences |
//! | --- | --- | --- |
//! | Redis 7.0 | all tests, always, on 7.0.15 | it cannot confirm syncs: [`Durability`] is an error |
//! | Redis 6.2 | every object on every topology on 6.2.5; waiting and connecting on 6.2.14 | as 7.0; in a cluster messages go to all nodes |
//! | Redis 8.2 | every object on every topology, durability and evicted scripts on 8.2.3 | it evicts scripts beyond 500: the client sends their text again |
//! | Valkey 8.1 | as Redis 8.2, redirections too, on 8.1.8 | as Redis 8.2; a replica refuses to read for the client, and names its master ([`Redirects`]); with `appendfsync everysec` it confirms syncs early |
//! | Valkey 9.1 | as Valkey 8.1, on 9.1.2 | as Valkey 8.1; DELIFEQ frees the nodes of a [`Redlock`] and a [string lock](Client::string_lock) |
//! | Redis 6.0 | nothing | it has no CLIENT INFO: the statements above about users without that right apply to all users |
//! | Redis 5 | 5.0.7, waiting | it has no RESP3: an acquisition that would have to wait for a message returns an error that says so. A [spin lock](Client::spin_lock), a [rate limiter](Client::rate_limiter) and a [`Redlock`] wait without messages |
//!
//! The client needs none of these differences. It learns what a server has once per connection:
//!
//! * Every connection for requests begins with CLIENT INFO. Only a Valkey from 8.1 on lists the
//!   capabilities of the client there. To such a server the client sends CLIENT CAPA redirect. A
//!   Redlock then tries DELIFEQ, and uses its script if the server does not know it or the user may
//!   not use it.
//! * If [`Durability`] is set, WAITAOF is tried before the first change. A server without it is an
//!   [error](ErrorKind::NoAppendOnlyFile) before anything is changed, and no weaker promise takes
//!   its place.
//! * Scripts are sent by their hash, and once more by their text after NOSCRIPT: at first use,
//!   after SCRIPT FLUSH, a restart, a failover, or an eviction. This also holds for a script in a
//!   pipeline with ASKING, WAIT or WAITAOF; no request is in a transaction.
//! * The other locks do not compare strings. Theirs are hashes, as Redisson's are, and no command
//!   compares a field. The extension of a Redlock remains a script: SET with IFEQ would shorten a
//!   longer lease, and would not distinguish a node that has lost the lock.
//!
//! The tests of this crate run against another server if `LOCKSTORM_REDIS_SERVER` names one:
//! `LOCKSTORM_REDIS_SERVER=/opt/valkey/bin/valkey-server cargo test -p lockstorm-client --test
//! client -- waiting:: connections::`. `LOCKSTORM_SERVERS` names a folder with a server for each
//! generation, such as `valkey-9.1`, which some tests run in addition to simulated ones;
//! `LOCKSTORM_EVERY_TOPOLOGY=1` runs every object of each on every topology.
//!
//! # Background work
//!
//! An acquisition whose caller is gone sends no new requests. Requests that were sent are followed
//! up until their outcome is known, and a late grant is released. At most 1,024 acquisitions of a
//! client are on the wire at a time, including its queries of latches and requests to rate
//! limiters; others wait for their turn. Places in queues are given up 200 per script, for 16 locks
//! in parallel, with retries until that succeeds. A client remembers 50,000 such places; further
//! places end with their deadlines. A node with 1,024 unanswered Redlock requests counts as silent
//! until some of them are settled.
//!
//! All of this ends with the runtime. Await [`Client::close`] before: it releases all holds and
//! waits for the rest.
//!
//! # Map of the code
//!
//! In reading order; a module imports only those above it.
//!
//! | module | contents |
//! | --- | --- |
//! | `refusal` | the error replies of servers, and which of them are transient |
//! | `error`, `mutex`, [`limits`], `env` | errors, locking of mutexes, the accepted range of each quantity, the interface to the outside |
//! | `tls/` | TLS between the client and its servers |
//! | `endpoint`, `address` | the address of a server and its login; an application's name for a deployment |
//! | [`wire`] | keys, channels and slots as all processes that share a lock write them, the allowance for drift |
//! | `rights` | the rights that the user of the server needs for each object |
//! | `config`, `owner` | the settings, the fields of owners |
//! | `observer/` | the events of locks, and their report to `tracing` and `metrics` |
//! | `key`, `script` | keys and their slots, Lua scripts and calls of them |
//! | `work` | the background work of a client |
//! | `hold/` | the client's belief in each granted lock, and the ledger of all of them |
//! | `task`, `progress` | work that continues without its caller, and the caller's answer |
//! | `route/` | connections, the node of each key (the topologies), redirections, WAIT and WAITAOF, safe retries |
//! | `wake/` | subscriptions that wake waiters |
//! | `renew/` | the watchdog |
//! | `spin` | the backoff of waiters that no message wakes |
//! | `attempt` | the traits of a kind of lock: how it is acquired, kept and released |
//! | `queue_leave` | leaving the queues of fair locks |
//! | `latches` | the latches of earlier releases, which the next release deletes |
//! | `session` | the state that all locks of a client share |
//! | `explain` | names the right that the user lacks |
//! | `wait` | the wait loop, independent of the kind of lock |
//! | `recover` | the outcome of a request whose reply is lost |
//! | `guard`, `keeper` | a held lock, and its release |
//! | `acquire` | acquiring a lock on one master |
//! | `acquire_options` | an acquisition as the application configures it |
//! | `lock`, `client`, `close` | the handles, the client and its end |
//! | `blocking` | the client for programs without a runtime |
//! | `locks/` | one folder per kind: Rust and Lua side by side |
//!
//! To add a lock, add a folder under `locks/` that implements `attempt::Attempt`, `attempt::Lease`
//! and `attempt::ForceRelease`, and a constructor on [`Client`].

// Makes docs.rs show the feature that an item needs.
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
mod queue_leave;
mod latches;
mod session;
mod explain;
mod wait;
mod recover;
mod guard;
mod keeper;
mod acquire;
mod acquire_options;
mod lock;
mod client;
mod close;
#[cfg(feature = "blocking")]
pub mod blocking;
mod locks;

pub use acquire_options::{Acquire, Done};
pub use address::{Address, Sentinels};
pub use client::{Builder, Client};
pub use close::Unfinished;
pub use config::{Durability, Redirects, ReplicaWait};
pub use endpoint::Credentials;
pub use env::{Boottime, BoxStream, Env, Monotonic, Stream, TokioEnv, Wall};
pub use error::{Error, ErrorKind, Result};
pub use futures_util::future::BoxFuture;
pub use guard::{FencedGuard, Got, Guard, LockGuard, OfLock, Token};
pub use lock::{FencedLock, Handle, Lock, Lockable, Object, OnMaster};
pub use locks::latch::Latch;
pub use locks::multi::{HeldMember, MultiGuard, MultiLock, MultiLockBuilder, OnAll};
pub use locks::permit_semaphore::{PermitGuard, PermitId, PermitIds, PermitSemaphore};
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
pub use route::{Deployment, Master};
pub use spin::SpinBackoff;
#[cfg(feature = "tls")]
pub use tls::Tls;

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
