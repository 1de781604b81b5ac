//! The scenarios that reveal broken locks.

/// The owner stands still until its lease is over, and releases when another owner has the lock.
pub(crate) const LATE_RELEASE: &str = r#"
[node.m]
[lock]
lease = "1s"
[client.c1]
steps = [{ at = "10s", try_acquire = {} }, { at = "10.05s", sleep = "10ms" }, { release = {} }]
[client.c2]
steps = [{ at = "11.005s", try_acquire = {} }, { work = { until = "13s" } }]
[fault.pause]
pause = "c1"
at = "10.055s"
for = "1.2s..1.8s"
"#;

/// The owner works until it learns that it has lost the lock; another client polls.
pub(crate) const LONG_WORK: &str = r#"
[node.m]
[lock]
lease = "1s"
[client.c1]
steps = [{ at = "10s..10.3s", try_acquire = {} }, { work = { until = "14s", until_lost = true } }]
[client.c2]
steps = [{ at = "10.5s", poll = { every = "10ms", until = "14s" } }, { work = { until = "14s", until_lost = true } }]
"#;

/// Of five nodes the owner reaches a, b and c, and the other client c, d and e: c decides, and its
/// clock may be wrong.
pub(crate) const ONE_NODE_IN_COMMON: &str = r#"
[node.a]
[node.b]
[node.c]
[node.d]
[node.e]
[lock]
kind = "redlock"
[client.c1]
[client.c2]
[fault.c1-reaches-abc]
cut = { from = "c1", to = ["d", "e"] }
at = "5s"
[fault.c2-reaches-cde]
cut = { from = "c2", to = ["a", "b"] }
at = "5s"
"#;

/// The replies of two nodes do not reach the client and a third node is down, so its attempts fail
/// and leave keys behind.
pub(crate) const LOST_REPLIES: &str = r#"
[node.a]
[node.b]
[node.c]
[node.d]
[node.e]
[lock]
kind = "redlock"
lease = "10s"
[client.c1]
steps = [{ at = "9.6s", try_acquire = {} }]
[client.c2]
steps = [{ at = "11.5s", poll = { every = "10ms", until = "30s" } }]
[fault.replies]
cut = { from = ["c", "d"], to = "c1", one_way = true }
at = "9.5s"
[fault.down]
crash = "e"
at = "9s"
[run]
storm = "9.8s"
calm = "30s"
"#;

/// A request is delayed for so long that its client gives up and cleans up before it arrives.
pub(crate) const LATE_REQUEST: &str = r#"
[node.m]
[lock]
lease = "30s"
response_timeout = "1.5s"
[client.c1]
steps = [{ at = "10s", try_acquire = {} }]
[client.c2]
steps = [{ at = "17s", poll = { every = "100ms", until = "60s" } }]
[fault.late]
delay = { of = { client = "c1", contains = "lock" }, request = "4s..6s" }
at = "9s"
[run]
storm = "9.5s"
calm = "60s"
"#;

/// The node executes the request and its reply is lost, so the client must find out if it has the
/// lock.
pub(crate) const LOST_REPLY: &str = r#"
[node.m]
[lock]
lease = "30s"
response_timeout = "500ms"
[client.c1]
steps = [{ at = "10s", acquire = { wait = "40s" } }, { work = { for = "1s..2s" } }, { release = {} }]
[client.c2]
steps = [{ at = "14s", poll = { every = "100ms", until = "60s" } }]
[fault.lost]
lose_reply = { contains = "lock", client = "c1" }
at = "9s"
[run]
storm = "60s"
"#;

/// The watchdog's renewals do not arrive for longer than a lease, and another client gets the lock.
pub(crate) const CUT_OFF_WATCHDOG: &str = r#"
[node.m]
[lock]
watchdog = "3s"
response_timeout = "500ms"
[client.c1]
steps = [{ at = "10s", try_acquire = { watchdog = true } }, { work = { until = "40s", until_lost = true } }]
[client.c2]
steps = [{ at = "12s", poll = { every = "20ms", lease = "20s", until = "40s" } }, { work = { until = "40s", until_lost = true } }]
[fault.cut]
cut = { from = "c1", to = "m" }
at = "10.5s..11.5s"
for = "5s..8s"
[run]
storm = "40s"
"#;

/// Three clients ask at one moment, each nearest to other nodes, so that none gets a majority at
/// first.
pub(crate) const SPLIT_VOTE: &str = r#"
[node.n]
count = 5
[lock]
kind = "redlock"
lease = "10s"
[client.c1]
steps = [{ at = "10s", acquire = {} }, { work = { for = "100ms" } }, { release = {} }]
[client.c2]
steps = [{ at = "10s", acquire = {} }, { work = { for = "100ms" } }, { release = {} }]
[client.c3]
steps = [{ at = "10s", acquire = {} }, { work = { for = "100ms" } }, { release = {} }]
[link.c1]
from = "c1"
to = ["n3", "n4", "n5"]
latency = "2ms"
[link.c2]
from = "c2"
to = ["n1", "n2", "n5"]
latency = "2ms"
[link.c3]
from = "c3"
to = ["n1", "n2", "n3", "n4"]
latency = "2ms"
[run]
storm = "9.9s"
calm = "65s"
"#;

/// The reply to the request for the lock's owner comes in time; later replies are delayed.
pub(crate) const LATE_DELETION: &str = r#"
[node.m]
[lock]
lease = "1s"
[client.c1]
steps = [{ at = "10s", try_acquire = {} }, { at = "10.9s", release = {} }]
[client.c2]
steps = [{ at = "11.005s", try_acquire = {} }, { work = { until = "13s" } }]
[fault.late]
delay = { of = { client = "c1", command = "DEL" }, request = "200ms..400ms" }
at = "9s"
"#;

/// The owner writes long after its lease is over, when the write of another owner has arrived.
pub(crate) const LATE_WRITE: &str = r#"
[node.m]
[lock]
lease = "1s"
[resource]
fence = ">"
[client.c1]
steps = [{ at = "10s", try_acquire = {} }, { sleep = "1.2s..1.6s" }, { write = {} }]
[client.c2]
steps = [{ at = "11.01s", try_acquire = {} }, { write = {} }]
[fault.late]
delay = { of = { client = "c1", command = "INCR" }, request = "1.2s..1.6s" }
at = "9s"
"#;

/// Four clients ask one after the other for a lock that one of them has.
pub(crate) const LINE: &str = r#"
[node.m]
[lock]
kind = "fair"
lease = "20s"
[client.holder]
steps = [{ at = "10s", acquire = {} }, { at = "13s", release = {} }]
[client.c]
count = 3
steps = [{ at = "11s..12s", acquire = {} }, { work = { for = "1s" } }, { release = {} }]
"#;

/// One client holds the lock twice, and the reply to one of its requests is lost.
pub(crate) const NESTED: &str = r#"
[node.m]
[lock]
lease = "60s"
response_timeout = "500ms"
[client.c1]
steps = [
    { at = "10s", acquire = {} },
    { at = "15s", acquire = {} },
    { at = "20s", release = {} },
    { at = "25s", release = {} },
]
[fault.lost]
lose_reply = { contains = "lock", client = "c1" }
at = "9s"
"#;

/// The lock is released while a waiter is about to subscribe.
pub(crate) const RACE: &str = r#"
[node.m]
[lock]
lease = "30s"
[client.c1]
steps = [{ at = "10s", try_acquire = {} }, { at = "10.5012s..10.508s", release = {} }]
[client.c2]
steps = [{ at = "10.5s", acquire = {} }, { release = {} }]
"#;

/// A client waits for a lock that another client holds for some time.
pub(crate) const PATIENCE: &str = r#"
[node.m]
[lock]
lease = "30s"
[client.c1]
steps = [{ at = "10s", try_acquire = {} }, { at = "13s..15s", release = {} }]
[client.c2]
steps = [{ at = "11s", acquire = {} }, { release = {} }]
"#;

/// The reply to the only request is lost, and the key still exists when the run ends.
pub(crate) const LEFT_BEHIND: &str = r#"
[node.m]
[lock]
lease = "60s"
response_timeout = "500ms"
[client.c1]
steps = [{ at = "10s", try_acquire = {} }]
[fault.lost]
lose_reply = { contains = "lock", client = "c1" }
at = "9s"
[run]
storm = "9.5s"
calm = "10s"
"#;

/// The watchdog's lock is released, and then taken for one second only.
pub(crate) const SHORT_AFTER_LONG: &str = r#"
[node.m]
[lock]
watchdog = "3s"
[client.c1]
steps = [
    { at = "10s", try_acquire = { watchdog = true } },
    { at = "10.1s", release = {} },
    { at = "10.2s..10.9s", try_acquire = { lease = "1s" } },
]
[run]
storm = "30s"
"#;

/// The owner crashes right after its request.
pub(crate) const SUDDEN_DEATH: &str = r#"
[node.m]
[lock]
lease = "1s"
[client.c1]
steps = [{ at = "10s", try_acquire = {} }]
[client.c2]
steps = [{ at = "13s", acquire = {} }]
[fault.death]
crash = "c1"
at = "10s..10.004s"
[run]
storm = "12s"
calm = "90s"
"#;

/// The master crashes before its replica has received the grant, and the replica is promoted.
pub(crate) const LATE_REPLICA: &str = r#"
[node.m]
[node.r]
replica_of = "m"
[lock]
lease = "30s"
[client.c1]
nodes = ["m"]
steps = [{ at = "10s", try_acquire = {} }, { work = { until = "20s", until_lost = true } }]
[client.c2]
nodes = ["r"]
steps = [{ at = "12.5s", poll = { every = "50ms", until = "14s" } }, { work = { until = "20s" } }]
[fault.slow]
slow = { from = "m", to = "r", by = "1h" }
at = "9s"
[fault.crash]
crash = "m"
at = "10.5s..11.5s"
[fault.failover]
promote = "r"
at = "12s"
[run]
storm = "30s"
"#;

/// Owner and master crash together, and the replica is promoted with the data it has received.
pub(crate) const DEATH_OF_BOTH: &str = r#"
[node.m]
[node.r]
replica_of = "m"
[lock]
lease = "5s"
[client.c1]
nodes = ["m"]
steps = [{ at = "10s..10.5s", try_acquire = {} }]
[client.c2]
nodes = ["r"]
steps = [{ at = "12.5s", acquire = { retry = true } }]
[fault.owner]
crash = "c1"
at = "11s"
[fault.master]
crash = "m"
at = "11s"
[fault.failover]
promote = "r"
at = "12s"
[run]
storm = "13s"
calm = "90s"
"#;

/// A client polls without pause around the end of a lease that began in the middle of a
/// millisecond.
pub(crate) const LAST_MILLISECOND: &str = r#"
[node.m]
[lock]
lease = "1s"
[client.c1]
steps = [{ at = "10.0002s..10.0009s", try_acquire = {} }, { work = { until = "12s", until_lost = true } }]
[client.c2]
steps = [{ at = "10.99s", poll = { every = "50us", until = "11.1s" } }, { work = { until = "12s" } }]
"#;

/// More clients than permits.
pub(crate) const PERMITS: &str = r#"
[node.m]
[lock]
kind = "semaphore"
permits = 2
[client.c]
count = 4
steps = [{ at = "10s..10.5s", acquire = {} }, { work = { for = "1s..2s" } }, { release = {} }]
"#;

/// One permit is given back, and the reply is lost.
pub(crate) const PERMIT: &str = r#"
[node.m]
[lock]
kind = "semaphore"
response_timeout = "500ms"
[client.c1]
steps = [{ at = "10s", acquire = {} }, { work = { for = "1s" } }, { release = {} }]
[client.w]
count = 2
steps = [{ at = "20s..20.1s", acquire = { wait = "60s" } }, { work = { for = "5s" } }, { release = {} }]
[fault.lost]
lose_reply = { client = "c1", contains = "lock" }
at = "10.5s"
[run]
storm = "12s"
calm = "90s"
"#;

/// An object with a lease, taken by one client and then by another client whose clock is ahead.
macro_rules! taken_by_a_clock_ahead {
    ($kind:literal) => {
        concat!(
            "[node.m]\n[lock]\nkind = \"",
            $kind,
            r#""
lease = "20s"
[client.c]
steps = [{ at = "10s..11s", try_acquire = {} }, { work = { until = "14s" } }, { release = {} }]
[client.ahead]
clock = { offset = "+1m" }
steps = [{ at = "12s..13s", try_acquire = {} }, { work = { until = "20s" } }]
[client.third]
steps = [{ sleep = "1s" }]
[run]
storm = "15s"
calm = "30s"
"#
        )
    };
}

/// One permit.
pub(crate) const LEASES: &str = taken_by_a_clock_ahead!("permit-semaphore");

/// Two of three values: the second client wants one of the first client's values.
pub(crate) const VALUES: &str = taken_by_a_clock_ahead!("faster-multi");

/// A client counts a latch down twice, with a lost first reply, and another client waits for it.
pub(crate) const LATCH: &str = r#"
[node.m]
[lock]
kind = "latch"
count = 2
response_timeout = "500ms"
[client.first]
steps = [{ at = "5s", set = {} }, { at = "10s..10.01s", count_down = {} }]
[client.second]
steps = [{ at = "20s..20.01s", count_down = {} }]
[client.waiter]
steps = [{ at = "6s", wait = {} }]
[fault.lost]
lose_reply = { client = "first", contains = "lock" }
at = "9s"
[run]
storm = "21s"
calm = "90s"
"#;

/// Two clients want the permits of a limiter at the same time; the clock of the second is ahead.
pub(crate) const RATE: &str = r#"
[node.m]
[lock]
kind = "rate"
permits = 3
window = "10s"
[client.c1]
steps = [{ at = "19s..19.9s", take = { permits = 3 } }]
[client.c2]
clock = { offset = "+1m" }
steps = [{ at = "20s..21s", take = { permits = 3 } }]
[run]
storm = "22s"
calm = "20s"
"#;

/// Readers and a writer at the same time.
pub(crate) const READERS_AND_WRITER: &str = r#"
[node.m]
[lock]
kind = "read-write"
lease = "10s"
[client.r]
count = 2
steps = [{ at = "10s..11s", acquire = { shared = true } }, { work = { for = "500ms" } }, { release = {} }]
[client.w]
steps = [{ at = "10s..11s", acquire = {} }, { work = { for = "500ms" } }, { release = {} }]
"#;

/// A writer reads what it writes, with leases much shorter than its own, and gives one of them
/// back; another writer waits.
pub(crate) const WRITER_THAT_READS: &str = r#"
[node.m]
[lock]
kind = "read-write"
watchdog = "2s"
[client.c]
steps = [{ at = "10s..11s", acquire = { lease = "8s" } }, { acquire = { lease = "1s", shared = true } }, { acquire = { lease = "1s", shared = true } }, { release = {} }, { work = { for = "6s" } }, { release = {} }, { release = {} }]
[client.other]
steps = [{ at = "11.1s", acquire = {} }, { work = { for = "500ms" } }, { release = {} }]
"#;

/// One client has the only permit, and another client asks for it while the replica is down.
pub(crate) const REPLICA_DOWN: &str = r#"
[node.m]
[node.r]
replica_of = "m"
[lock]
kind = "semaphore"
[client.c1]
nodes = ["m"]
steps = [{ at = "10s", acquire = {} }, { work = { for = "12s" } }, { release = {} }]
[client.c2]
nodes = ["m"]
steps = [{ at = "15s", acquire = {} }, { work = { for = "1s" } }, { release = {} }]
[fault.death]
crash = "r"
at = "12s"
for = "4s"
[run]
storm = "30s"
"#;

/// One client takes two locks together, on different nodes; another client takes the second one in
/// turn.
pub(crate) const TOGETHER: &str = r#"
[node.m]
[node.n]
[lock]
watchdog = "2s"
response_timeout = "500ms"
[lock.cash]
nodes = ["m"]
[lock.stock]
nodes = ["n"]
[client.c]
workload.contend = { together = true, hold = "100ms", think = "10s", wait = "200ms" }
[client.other]
steps = [{ acquire = {}, of = "stock" }, { work = { for = "1s..5s" } }, { release = {}, of = "stock" }, { repeat = 5 }]
[run]
storm = "30s"
calm = "10s"
"#;

/// One client repeatedly takes the lock and gives it back, in less time than a release is
/// remembered.
pub(crate) const MANY_RELEASES: &str = r#"
[node.m]
[lock]
lease = "10s"
[client.c1]
workload.contend = { hold = "20ms", think = "200ms" }
[run]
storm = "5s"
calm = "2s"
"#;

/// Two clients always want the lock, and each asks again soon after its release.
pub(crate) const RETURNING_HOLDER: &str = r#"
[node.m]
[lock]
lease = "10s"
[client.c]
count = 2
workload.contend = { hold = "50ms", think = "20ms" }
[run]
storm = "100s"
"#;
