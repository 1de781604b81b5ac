//! The list of mistakes: broken locks and mistakes of the simulator, each with its scenario. The
//! tests of checkers and the ruler of hunts read it.

use lockstorm::file::scenario::{Source, parse};

use crate::scenarios::{
    CUT_OFF_WATCHDOG, DEATH_OF_BOTH, LAST_MILLISECOND, LATCH, LATE_DELETION, LATE_RELEASE, LATE_REPLICA,
    LATE_REQUEST, LATE_WRITE, LEASES, LEFT_BEHIND, LINE, LONG_WORK, LOST_REPLIES, LOST_REPLY, MANY_RELEASES,
    NESTED, ONE_NODE_IN_COMMON, PATIENCE, PERMIT, PERMITS, RACE, RATE, READERS_AND_WRITER, REPLICA_DOWN,
    RETURNING_HOLDER, SHORT_AFTER_LONG, SPLIT_VOTE, SUDDEN_DEATH, TOGETHER, VALUES, WRITER_THAT_READS,
};

/// A deliberate mistake and the way to reveal it.
pub(crate) struct Bug {
    /// The deliberate mistake.
    pub(crate) broken: Broken,
    /// The checker that must catch it, and its expectation for the right one, in the form of
    /// `[expect]`.
    pub(crate) expect: &'static str,
    pub(crate) scenario: &'static str,
}

/// A deliberate mistake, and its counterpart without the mistake.
#[derive(Clone, Copy)]
pub(crate) enum Broken {
    /// A lock: two names of `lockstorm list subjects`.
    Lock { broken: &'static str, right: &'static str },
    /// The simulator: an option of the node `m`, off in the right one.
    Node { option: &'static str },
    /// Anything else: the overlays of the scenario for the broken one and for the right one.
    Part { name: &'static str, broken: &'static str, right: &'static str },
}

impl Broken {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Broken::Lock { broken, .. } => broken,
            Broken::Node { option } => option,
            Broken::Part { name, .. } => name,
        }
    }

    /// The overlay of the scenario for the broken one, or for the right one.
    fn overlay(self, is_broken: bool) -> String {
        match self {
            Broken::Lock { broken, right } => {
                format!("lock.subject = {:?}", if is_broken { broken } else { right })
            }
            Broken::Node { option } => format!("node.m.{option} = {is_broken}"),
            Broken::Part { broken, .. } if is_broken => broken.to_owned(),
            Broken::Part { right, .. } => right.to_owned(),
        }
    }
}

/// Every deliberate mistake, and the overlay of its case on the scenario.
pub(crate) const BUGS: &[(Bug, &str)] = &[
    (bug("del-without-token", "token-lock", r#"owner-safety = "holds""#, LATE_RELEASE), ""),
    (bug("shared-token", "token-lock", r#"owner-safety = "holds""#, LATE_RELEASE), ""),
    (bug("no-own-deadline", "token-lock", r#"l2 = "holds""#, LONG_WORK), ""),
    (
        bug("lease-from-reply", "token-lock", r#"l2 = "holds""#, LONG_WORK),
        r#"fault.late = { delay = { of = { client = "c1", contains = "lock" }, reply = "200ms..600ms" }, at = "9s" }"#,
    ),
    (
        bug("wall-clock-validity", "token-lock", r#"l2 = "holds""#, LONG_WORK),
        r#"fault.step = { clock_step = { host = "c1", by = "-2s" }, at = "10.4s" }"#,
    ),
    (
        bug("monotonic-validity", "token-lock", r#"l2 = "holds""#, LONG_WORK),
        r#"fault.sleep = { suspend = "c1", at = "10.4s", for = "400ms..900ms" }"#,
    ),
    (
        bug("client-on-monotonic-clock", "client", r#"l2 = "holds""#, LONG_WORK),
        r#"fault.sleep = { suspend = "c1", at = "10.4s", for = "400ms..900ms" }"#,
    ),
    // A rate of nine in a thousand is within the published allowance of ten in a thousand.
    (
        bug("no-drift", "token-lock", r#"l2 = "holds""#, ONE_NODE_IN_COMMON),
        r#"lock.lease = "10s"
        node.c.clock.rate = "+0.9%"
        client.c1.steps = [{ at = "10s", try_acquire = {} }, { work = { until = "20s", until_lost = true } }]
        client.c2.steps = [{ at = "19.5s..19.7s", poll = { every = "1ms", until = "25s" } }]"#,
    ),
    // c restarts empty, and the replies of a and b are no quorum.
    (
        bug("renew-without-quorum", "client", r#"l2 = "holds""#, ONE_NODE_IN_COMMON),
        r#"lock.watchdog = "30s"
        run.storm = "80s"
        fault.crash = { crash = "c", at = "22s", for = "200ms" }
        client.c1.steps = [{ at = "10s", try_acquire = { watchdog = true } }, { work = { until = "80s", until_lost = true } }]
        client.c2.steps = [{ at = "52.5s", poll = { every = "10ms", until = "80s" } }, { work = { until = "80s", until_lost = true } }]"#,
    ),
    (bug("release-only-acknowledged", "token-lock", PROMPT, LOST_REPLIES), ""),
    (bug("no-cleanup", "token-lock", PROMPT, LOST_REPLIES), ""),
    (bug("release-on-new-connection", "token-lock", PROMPT, LATE_REQUEST), ""),
    (bug("fixed-retry-delay", "token-lock", PROMPT, SPLIT_VOTE), ""),
    (bug("resend-counted", "client", r#"lease = { holds = { phantom = "..5s" } }"#, LOST_REPLY), ""),
    (bug("resend-with-new-token", "client", r#"lease = { holds = { phantom = "..5s" } }"#, LOST_REPLY), ""),
    (bug("renew-recreates", "token-lock", r#"l1 = "holds""#, CUT_OFF_WATCHDOG), ""),
    (bug("renew-anybodys", "token-lock", r#"l2 = "holds""#, CUT_OFF_WATCHDOG), ""),
    (bug("renew-until-failure", "token-lock", r#"l2 = "holds""#, CUT_OFF_WATCHDOG), ""),
    // Four nodes: each of two clients can have two.
    (
        bug("half-quorum", "token-lock", r#"l2 = "holds""#, SPLIT_VOTE),
        r#"node.n.count = 4
        link.c1.to = ["n3", "n4"]
        link.c2.to = ["n1", "n2"]
        link.c3.to = ["n1", "n2", "n3", "n4"]"#,
    ),
    // The pause ends when the leases of three nodes are over and two nodes have not been asked yet.
    (
        bug("redisson-redlock", "client", r#"l2 = "holds""#, ONE_NODE_IN_COMMON),
        r#"lock.lease = "10s"
        lock.node_timeout = "20s"
        fault.c1-reaches-abc.off = true
        fault.c2-reaches-cde.off = true
        fault.pause = { pause = "c1", at = "10.0075s", for = "10.5s..12s" }
        client.c1.steps = [{ at = "10s", try_acquire = {} }, { work = { until = "35s", until_lost = true } }]
        client.c2.steps = [{ at = "20.1s", poll = { every = "1ms", until = "30s" } }, { work = { until = "30s" } }]"#,
    ),
    (bug("grant-in-two-steps", "token-lock", r#"progress = "holds""#, SUDDEN_DEATH), ""),
    (bug("release-in-two-steps", "token-lock", r#"owner-safety = "holds""#, LATE_DELETION), ""),
    (
        bug("no-own-deadline", "token-lock", r#"l3 = "holds""#, LONG_WORK),
        r#"resource = {}
        client.c1.steps = [{ at = "10s..10.3s", try_acquire = {} }, { work = { until = "14s", until_lost = true, write_every = "50ms" } }]
        client.c2.steps = [{ at = "10.5s", poll = { every = "10ms", until = "14s" } }, { work = { until = "14s", until_lost = true, write_every = "50ms" } }]"#,
    ),
    (bug("fence-taken-separately", "fenced-token-lock", r#"l4 = "holds""#, LATE_WRITE), ""),
    (
        bug("fence-by-client-clock", "fenced-token-lock", r#"l4 = "holds""#, LATE_WRITE),
        r#"client.c1.clock.offset = "+1m""#,
    ),
    // The locks of other kinds, with the mistakes of a plain lock.
    (
        bug("del-without-token", "token-lock", r#"owner-safety = "holds""#, LATE_RELEASE),
        r#"lock.kind = "spin""#,
    ),
    (bug("busy-waiting", "token-lock", r#"commands = "holds""#, PATIENCE), r#"lock.kind = "spin""#),
    (
        bug("del-without-token", "token-lock", r#"owner-safety = "holds""#, LATE_RELEASE),
        r#"lock.kind = "non-reentrant""#,
    ),
    (
        bug("shared-token", "token-lock", r#"owner-safety = "holds""#, LATE_RELEASE),
        r#"lock.kind = "non-reentrant""#,
    ),
    (
        bug("del-without-token", "token-lock", r#"owner-safety = "holds""#, LATE_RELEASE),
        r#"lock.kind = "string""#,
    ),
    (
        bug("release-in-two-steps", "token-lock", r#"owner-safety = "holds""#, LATE_DELETION),
        r#"lock.kind = "string""#,
    ),
    // The extension comes when another client has the lock; its reply says so.
    (
        bug("extend-on-any-answer", "token-lock", r#"l2 = "holds""#, LONG_WORK),
        r#"client.c1.steps = [{ at = "10s..10.3s", try_acquire = {} }, { at = "12s", extend = { lease = "2s" } }, { work = { until = "14s", until_lost = true } }]
        client.c2.steps = [{ at = "10.5s", poll = { every = "10ms", until = "14s", lease = "5s" } }, { work = { until = "15s" } }]"#,
    ),
    (bug("queue-without-head-check", "queue-lock", r#"fairness = "holds""#, LINE), ""),
    (bug("queue-pruned-by-count", "queue-lock", r#"fairness = { holds = { swept = 0 } }"#, LINE), ""),
    (bug("resend-counted", "client", r#"reentrancy = "holds""#, NESTED), ""),
    (bug("release-resent", "client", r#"reentrancy = "holds""#, NESTED), r#"fault.lost.at = "18s""#),
    (bug("subscribe-without-second-look", "subscribing-lock", r#"wake-ups = "holds""#, RACE), ""),
    (bug("subscribe-without-second-look", "client", PROMPT, RACE), r#"run = { storm = "9s", calm = "60s" }"#),
    (bug("busy-waiting", "token-lock", r#"commands = "holds""#, PATIENCE), ""),
    (bug("doubling-retry-delay", "token-lock", r#"waiting = "holds""#, RETURNING_HOLDER), ""),
    (bug("no-cleanup", "token-lock", r#"hygiene = "holds""#, LEFT_BEHIND), ""),
    (bug("release-remembered", "client", r#"hygiene = "holds""#, MANY_RELEASES), ""),
    (bug("watchdog-never-cancelled", "counted-lock", r#"lease = "holds""#, SHORT_AFTER_LONG), ""),
    (bug("wait-result-ignored", "replicated-lock", r#"l1 = "holds""#, LATE_REPLICA), ""),
    // The release of the first client deletes the hold of the second, and the third gets the lock:
    // no failover explains that.
    (
        bug("del-without-token", "token-lock", r#"windows = "holds""#, LATE_RELEASE),
        r#"node.r.replica_of = "m"
        client.c3.steps = [{ at = "11.1s", poll = { every = "10ms", until = "13s" } }, { work = { until = "14s" } }]"#,
    ),
    (bug("semaphore-without-compare", "semaphore", r#"permits = "holds""#, PERMITS), ""),
    (bug("permit-given-back-again", "client", r#"permits = "holds""#, PERMIT), ""),
    (bug("permit-taken-again", "client", PROMPT, PERMIT), r#"fault.lost.at = "9s""#),
    (bug("permits-by-client-clock", "client", r#"permits = "holds""#, LEASES), ""),
    // The lease of the first client is over when it gives the permit back, which the second has by
    // then.
    (
        bug("permits-given-back-unseen", "leased-permits", r#"permits = "holds""#, LEASES),
        r#"lock.lease = "1s"
        client.ahead.clock.offset = "0s"
        client.third.steps = [{ at = "15s", poll = { every = "100ms", until = "20s", lease = "10s" } }, { work = { until = "20s" } }]
        client.ahead.steps = [{ at = "13s", try_acquire = { lease = "10s" } }, { work = { until = "20s" } }]"#,
    ),
    (bug("values-by-client-clock", "client", r#"l1 = "holds""#, VALUES), ""),
    // The first value of the third client is free, its other value is held.
    (
        bug("looks-at-first-value", "values-lock", r#"l1 = "holds""#, VALUES),
        r#"client.ahead.clock.offset = "0s"
        client.third.steps = [{ at = "12s..13s", try_acquire = {} }, { work = { until = "20s" } }]"#,
    ),
    // The lease of the first client is over when it gives its values back. Another client has one
    // of them by then: the first can take it again.
    (
        bug("values-given-back-unseen", "values-lock", r#"l1 = "holds""#, VALUES),
        r#"lock.lease = "1s"
        client.ahead.clock.offset = "0s"
        client.ahead.steps = [{ at = "13s", try_acquire = { lease = "10s" } }, { work = { until = "20s" } }]
        client.c.steps = [{ at = "10s..11s", try_acquire = {} }, { work = { until = "14s" } }, { release = {} }, { poll = { every = "100ms", until = "19s", lease = "10s" } }, { work = { until = "20s" } }]"#,
    ),
    (bug("latch-counted-down-again", "client", r#"latch = "holds""#, LATCH), ""),
    (
        bug("latch-counted-down-in-two-steps", "client", r#"latch = "holds""#, LATCH),
        r#"fault.lost.off = true
        client.second.steps = [{ at = "10s..10.01s", count_down = {} }]"#,
    ),
    // The latch opens while the waiter subscribes.
    (
        bug("latch-without-second-look", "client", r#"latch = "holds""#, LATCH),
        r#"fault.lost.off = true
        client.waiter.steps = [{ at = "20s..20.01s", wait = {} }]"#,
    ),
    (bug("rate-by-client-clock", "client", r#"rate = "holds""#, RATE), ""),
    (bug("rate-in-fixed-windows", "rate-limiter", r#"rate = "holds""#, RATE), ""),
    (bug("rate-of-each-client", "client", r#"rate = "holds""#, RATE), ""),
    (
        bug("rate-of-all-clients", "client", r#"rate = "holds""#, RATE),
        "lock.per_client = true\nlock.window = \"100s\"\nrun.calm = \"120s\"",
    ),
    (bug("read-under-write", "read-write-lock", r#"read-write = "holds""#, READERS_AND_WRITER), ""),
    (bug("write-under-read", "read-write-lock", r#"read-write = "holds""#, READERS_AND_WRITER), ""),
    (
        bug("renews-all-readers", "client", r#"owner-safety = "holds""#, READERS_AND_WRITER),
        r#"lock.watchdog = "300ms"
        client.r.steps = [{ at = "10s..10.3s", acquire = { shared = true, watchdog = true } }, { work = { for = "500ms" } }, { release = {} }]"#,
    ),
    (bug("read-release-shortens-write", "client", r#"l1 = "holds""#, WRITER_THAT_READS), ""),
    (
        bug("read-release-stops-renewal", "client", r#"l2 = "holds""#, WRITER_THAT_READS),
        r#"client.c.steps = [{ at = "10s..11s", acquire = {} }, { acquire = { shared = true } }, { release = {} }, { work = { for = "6s" } }, { release = {} }]"#,
    ),
    (
        bug("silent-downgrade", "client", r#"wake-ups = "holds""#, WRITER_THAT_READS),
        r#"client.c.steps = [{ at = "10s..11s", acquire = { lease = "8s" } }, { acquire = { lease = "8s", shared = true } }, { at = "12s", release = { first = true } }, { work = { for = "4s" } }, { release = {} }]
        client.other.steps = [{ at = "11.1s", acquire = { shared = true } }, { release = {} }]"#,
    ),
    (
        bug(
            "write-leases-add-up",
            "client",
            r#"read-write = { holds = { writers_waited = "..9s" } }"#,
            WRITER_THAT_READS,
        ),
        r#"client.c.steps = [{ at = "10s..11s", acquire = { lease = "8s" } }, { acquire = { lease = "8s" } }]"#,
    ),
    (bug("undoes-what-was-refused", "semaphore", r#"permits = "holds""#, REPLICA_DOWN), ""),
    (bug("multi-keeps-what-it-got", "token-lock", ALL_BACK, TOGETHER), ""),
    // The node of the first lock cannot be reached when both locks are given back, so the second
    // lock is renewed further.
    (
        bug("multi-release-stops-at-error", "token-lock", ALL_BACK, TOGETHER),
        r#"client.other.steps = []
        client.c.workload.contend = { together = true, hold = "2s", think = "20s" }
        fault.unreachable = { cut = { from = "c", to = "m" }, at = "1s", for = "10s" }"#,
    ),
    (bug_of_node("expire_at_the_millisecond", r#"l1 = "holds""#, LAST_MILLISECOND), ""),
    (bug_of_node("replicate_in_part", r#"progress = "holds""#, DEATH_OF_BOTH), ""),
];

/// Once the faults are over, no client is shut out for long.
const PROMPT: &str = r#"progress = { holds = { stalled = "..5s" } }"#;

/// No lock stays with an owner that lacks one of its locks for longer than its lease.
const ALL_BACK: &str = r#"together = { holds = { left = "..3s" } }"#;

pub(crate) const fn bug(
    broken: &'static str,
    right: &'static str,
    expect: &'static str,
    scenario: &'static str,
) -> Bug {
    Bug { broken: Broken::Lock { broken, right }, expect, scenario }
}

/// A mistake of the simulator, which the production client meets.
const fn bug_of_node(option: &'static str, expect: &'static str, scenario: &'static str) -> Bug {
    Bug { broken: Broken::Node { option }, expect, scenario }
}

impl Bug {
    /// The checker that must catch the mistake.
    pub(crate) fn checker(&self) -> &'static str {
        self.expect.split(' ').next().unwrap_or_default()
    }

    /// The scenario with the broken one on trial, or with the right one.
    pub(crate) fn source(&self, is_broken: bool, case: &str) -> Source {
        let Bug { broken, scenario, expect, .. } = self;
        let (name, overlay) = (broken.name(), broken.overlay(is_broken));
        let text = format!(
            "about = \"{name}\"\n{scenario}\n[variant.case]\n{overlay}\nexpect = {{ {expect} }}\n{case}\n"
        );
        parse(name, &text).unwrap_or_else(|error| panic!("{error:?}"))
    }
}
