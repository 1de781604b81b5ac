//! Mistakes that show only if one or two faults come at the right moment. Random faults miss them,
//! so the ruler of hunts has them, and not the list that seeds must reveal.

use crate::list::{Broken, Bug, bug};

/// Each mistake, and the overlay of its case on the scenario.
pub(crate) const SUBTLE: &[(Bug, &str)] = &[
    // Between the check and the write lie 10 ms, and a lease must end before the write.
    (
        part(
            "lease-below-pause",
            r#"lock.lease = "5s""#,
            r#"lock.lease = "30s""#,
            r#"l3 = "holds""#,
            CHECK_THEN_WRITE,
        ),
        "",
    ),
    // Between the two commands of the count-down lies one round trip.
    (bug("latch-counted-down-in-two-steps", "client", r#"latch = "holds""#, COUNTED_APART), ""),
    // Between the grant and the token lies one round trip.
    (bug("fence-taken-separately", "fenced-token-lock", r#"l4 = "holds""#, TOKEN_LATER), ""),
    // The reply to the acquisition, or to the release, must be late.
    (bug("resend-counted", "client", r#"reentrancy = "holds""#, ONE_RESEND), ""),
    (bug("release-resent", "client", r#"reentrancy = "holds""#, ONE_RESEND), ""),
    // One node does not get the grant, and another one forgets it: two faults.
    (part("no-disk", "", DISKS, r#"l1 = "holds""#, TWO_OF_THREE), ""),
];

/// A mistake outside of the lock: two overlays of the scenario.
const fn part(
    name: &'static str,
    broken: &'static str,
    right: &'static str,
    expect: &'static str,
    scenario: &'static str,
) -> Bug {
    Bug { broken: Broken::Part { name, broken, right }, expect, scenario }
}

/// Each command is on the disk before its reply.
const DISKS: &str = r#"node.n.config = { appendonly = "yes", appendfsync = "always" }"#;

/// A worker looks whether it has the lock, and then writes. A pause lasts up to 10 s.
const CHECK_THEN_WRITE: &str = r#"
[node.m]
[network]
latency = "1ms"
[lock]
subject = "fenced-token-lock"
[resource]
[client.worker]
steps = [{ at = "1s", try_acquire = {} }, { at = "1.1s", check = {} }, { at = "1.11s", write = {} }, { release = {} }]
[client.other]
steps = [{ at = "2s", acquire = { wait = "60s" } }, { write = {} }, { release = {} }]
[run]
storm = "20s"
[hunt]
kinds = ["pause", "cut"]
pause = "..10s"
cut = "..10s"
"#;

/// Two clients count a latch down, one long after the other.
const COUNTED_APART: &str = r#"
[node.m]
[lock]
kind = "latch"
count = 2
response_timeout = "10s"
[client.first]
steps = [{ at = "1s", set = {} }, { at = "3s", count_down = {} }]
[client.second]
steps = [{ at = "5s", count_down = {} }]
[client.waiter]
steps = [{ at = "2s", wait = {} }]
[run]
storm = "20s"
calm = "60s"
[hunt]
kinds = ["pause", "cut"]
"#;

/// A client writes right after it got the lock, and another client waits for its turn.
const TOKEN_LATER: &str = r#"
[node.m]
[lock]
lease = "1s"
[resource]
fence = ">"
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { write = {} }]
[client.c2]
steps = [{ at = "1.5s", acquire = { wait = "10s" } }, { write = {} }, { release = {} }]
[run]
storm = "12s"
"#;

/// Two clients take turns, one acquisition each.
const ONE_RESEND: &str = r#"
[node.m]
[lock]
lease = "3s"
response_timeout = "1s"
[client.c1]
steps = [{ at = "1s", acquire = {} }, { at = "2s", release = {} }]
[client.c2]
steps = [{ at = "2.5s", acquire = { wait = "10s" } }, { release = {} }]
[run]
storm = "8s"
"#;

/// A lock over three nodes that another client asks for while it is held.
const TWO_OF_THREE: &str = r#"
[node.n]
count = 3
[network]
latency = "1ms"
[lock]
kind = "redlock"
lease = "5s"
subject = "token-lock"
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { work = { until = "4s" } }]
[client.c2]
steps = [{ at = "2s", try_acquire = {} }, { work = { until = "4s" } }]
[run]
storm = "5s"
[hunt]
faults = 2
kinds = ["cut", "restart"]
of = ["c1", "n"]
latest = "1.99s"
"#;
