//! Proof that the alarms ring: locks broken on purpose, each with the scenario and the checker that must catch it.
//!
//! A row names the broken lock, the right one beside it, and what is expected of the right one. The right one must meet the
//! expectation on every seed tried; the broken one must fail it on some seed of the first thousand. The last line of the
//! output is the mutation score.

use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Failed, Trial as Test};
use lockstorm::{
    run::Engine,
    scenario::{Source, parse},
    trial::{Judged, Trial},
    verdict::Match,
};

/// A broken lock is caught within so many seeds, or its checker is deaf.
const SEEDS: u64 = 1_000;

/// On so many the right lock is held to the same expectation.
const SEEDS_OF_THE_RIGHT_ONE: u64 = 25;

struct Bug {
    /// The lock broken on purpose: a name of `lockstorm list subjects`.
    broken: &'static str,
    /// The same without the mistake.
    right: &'static str,
    /// The checker that must catch it, and what it says of the right one, as `[expect]` has it.
    expect: &'static str,
    scenario: &'static str,
}

/// The owner stands still until its lease is over and then releases, when the lock is somebody else's.
const LATE_RELEASE: &str = r#"
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

/// The owner works until it is told that it has lost the lock; another client asks again and again.
const LONG_WORK: &str = r#"
[node.m]
[lock]
lease = "1s"
[client.c1]
steps = [{ at = "10s..10.3s", try_acquire = {} }, { work = { until = "14s", until_lost = true } }]
[client.c2]
steps = [{ at = "10.5s", poll = { every = "10ms", until = "14s" } }, { work = { until = "14s", until_lost = true } }]
"#;

/// Of five nodes the owner reaches a, b and c, and the other client c, d and e: all hangs on c, whose clock may be wrong.
const ONE_NODE_IN_COMMON: &str = r#"
[node.a]
[node.b]
[node.c]
[node.d]
[node.e]
[lock]
kind = "red"
[client.c1]
[client.c2]
[fault.c1-reaches-abc]
cut = { from = "c1", to = ["d", "e"] }
at = "5s"
[fault.c2-reaches-cde]
cut = { from = "c2", to = ["a", "b"] }
at = "5s"
"#;

/// Replies of two nodes do not reach the client and a third is down, so its attempts fail and leave something behind.
const LOST_REPLIES: &str = r#"
[node.a]
[node.b]
[node.c]
[node.d]
[node.e]
[lock]
kind = "red"
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

/// The request is obeyed and its reply is lost, so the client must find out whether it has the lock.
const LOST_REPLY: &str = r#"
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

/// The watchdog's renewals stop getting through for longer than a lease, and the lock becomes another client's.
const CUT_OFF_WATCHDOG: &str = r#"
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

/// Three clients ask at one moment, each nearest to other nodes, so that nobody gets a majority at first.
const SPLIT_VOTE: &str = r#"
[node.n]
count = 5
[lock]
kind = "red"
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

/// Every broken lock, and what its case lays over the scenario.
const BUGS: &[(Bug, &str)] = &[
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
    // Nine in a thousand is inside what the published allowance of ten in a thousand covers.
    (
        bug("no-drift", "token-lock", r#"l2 = "holds""#, ONE_NODE_IN_COMMON),
        r#"lock.lease = "10s"
        node.c.clock.rate = "+0.9%"
        client.c1.steps = [{ at = "10s", try_acquire = {} }, { work = { until = "20s", until_lost = true } }]
        client.c2.steps = [{ at = "19.5s..19.7s", poll = { every = "1ms", until = "25s" } }]"#,
    ),
    // c restarts empty, and what a and b still say is no quorum.
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
    (bug("fixed-retry-delay", "token-lock", PROMPT, SPLIT_VOTE), ""),
    (bug("resend-counted", "client", r#"lease = "holds""#, LOST_REPLY), ""),
    (bug("resend-with-new-token", "client", r#"lease = { holds = { phantom = "..5s" } }"#, LOST_REPLY), ""),
    (bug("renew-recreates", "token-lock", r#"l1 = "holds""#, CUT_OFF_WATCHDOG), ""),
    (bug("renew-anybodys", "token-lock", r#"l2 = "holds""#, CUT_OFF_WATCHDOG), ""),
    (bug("renew-until-failure", "token-lock", r#"l2 = "holds""#, CUT_OFF_WATCHDOG), ""),
    // Four nodes: two clients can have two each.
    (
        bug("half-quorum", "token-lock", r#"l2 = "holds""#, SPLIT_VOTE),
        r#"node.n.count = 4
        link.c1.to = ["n3", "n4"]
        link.c2.to = ["n1", "n2"]
        link.c3.to = ["n1", "n2", "n3", "n4"]"#,
    ),
    // The pause ends when the leases of three nodes are over and two have not been asked yet.
    (
        bug("redisson-red-lock", "client", r#"l2 = "holds""#, ONE_NODE_IN_COMMON),
        r#"lock.lease = "10s"
        lock.node_timeout = "20s"
        fault.c1-reaches-abc.off = true
        fault.c2-reaches-cde.off = true
        fault.pause = { pause = "c1", at = "10.0075s", for = "10.5s..12s" }
        client.c1.steps = [{ at = "10s", try_acquire = {} }, { work = { until = "35s", until_lost = true } }]
        client.c2.steps = [{ at = "20.1s", poll = { every = "1ms", until = "30s" } }, { work = { until = "30s" } }]"#,
    ),
];

/// Nobody is shut out for long once the faults are over.
const PROMPT: &str = r#"progress = { holds = { stalled = "..5s" } }"#;

const fn bug(broken: &'static str, right: &'static str, expect: &'static str, scenario: &'static str) -> Bug {
    Bug { broken, right, expect, scenario }
}

impl Bug {
    /// The scenario with one of the two locks on trial.
    fn source(&self, subject: &str, case: &str) -> Source {
        let Bug { broken, scenario, expect, .. } = self;
        let text = format!(
            "about = \"{broken}\"\n{scenario}\n[variant.case]\nlock.subject = \"{subject}\"\nexpect = {{ {expect} }}\n{case}\n"
        );
        parse(broken, &text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn judge(&self, subject: &str, case: &str, seeds: u64) -> Vec<Judged> {
        let sources = [self.source(subject, case)];
        let trial = Trial {
            sources: &sources,
            seeds: Some(0..seeds),
            jobs: 1,
            engine: Engine::Event,
            until_unexpected: true,
            until_violation: false,
        };
        trial.run(&|_| {})
    }

    /// The seed that gives the broken lock away.
    fn caught(&self, case: &str) -> Result<u64, Failed> {
        for one in self.judge(self.right, case, SEEDS_OF_THE_RIGHT_ONE) {
            if one.verdict() != Match::AsExpected {
                let seed = one.case.seed;
                return Err(
                    format!("{} fails it too, with seed {seed}: {:?}", self.right, one.matches).into()
                );
            }
        }
        let broken = self.judge(self.broken, case, SEEDS);
        let last = broken.iter().find(|one| matches!(one.verdict(), Match::Otherwise(_)));
        last.map(|one| one.case.seed)
            .ok_or_else(|| format!("{SEEDS} seeds did not give it away ({})", self.expect).into())
    }
}

fn main() {
    static CAUGHT: AtomicUsize = AtomicUsize::new(0);
    let arguments = Arguments::from_args();
    let tests = BUGS.iter().map(|(bug, case)| {
        let checker = bug.expect.split(' ').next().unwrap_or_default();
        Test::test(format!("{} is caught by {checker}", bug.broken), move || {
            let seed = bug.caught(case)?;
            println!("{}: seed {seed}", bug.broken);
            CAUGHT.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    });
    let tests: Vec<Test> = tests.collect();
    let conclusion = libtest_mimic::run(&arguments, tests);
    if !arguments.list {
        let tried = conclusion.num_passed + conclusion.num_failed;
        println!("mutation score: {} of {tried} broken locks caught", CAUGHT.load(Ordering::Relaxed));
    }
    conclusion.exit();
}
