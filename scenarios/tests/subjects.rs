//! A subject equals its traits: a file that lays them over another subject gets the subject that
//! has them by name. Also tests common properties of subjects.

use lockstorm::{
    file::{
        plan::Plan,
        scenario::{TABLE, parse},
    },
    judge::history::{EventKind, Outcome},
    run::{self, Engine},
};
use lockstorm_world::TraceRetention;

/// The owner stands still until its lease is over and then releases, when another client has the
/// lock.
const LATE_RELEASE: &str = r#"
[node.m]
[lock]
lease = "1s"
[client.c1]
steps = [{ at = "1s", try_acquire = {} }, { at = "1.05s", sleep = "10ms" }, { release = {} }]
[client.c2]
steps = [{ at = "2.005s", try_acquire = {} }, { work = { until = "4s" } }]
[fault.pause]
pause = "c1"
at = "1.055s"
for = "1.5s"
[run]
storm = "5s"
"#;

/// The fingerprint of a run with this lock.
fn fingerprint(lock: &str) -> String {
    let text = LATE_RELEASE.replace("[lock]", &format!("[lock]\n{lock}"));
    let source = parse("subjects.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::draw(&source.variants[0].scenario, 0);
    run::run(&plan, "subjects", Engine::Event, TraceRetention::Nothing).fingerprint
}

#[test]
fn traits_laid_over_a_subject_make_another_subject() {
    let rows = [
        (
            r#"subject = "del-without-token""#,
            r#"subject = "token-lock"
            traits = { release = "delete" }"#,
        ),
        (
            r#"subject = "no-own-deadline""#,
            r#"subject = "token-lock"
            traits = { belief = "until-told" }"#,
        ),
        // The traits of the file override those of the subject.
        (
            r#"subject = "token-lock""#,
            r#"subject = "del-without-token"
            traits = { release = "compare" }"#,
        ),
        (
            r#"subject = "client-on-monotonic-clock""#,
            r#"subject = "client"
            traits = { clock = "monotonic" }"#,
        ),
        // No subject has both of these traits.
        (
            r#"subject = "wall-clock-validity"
            traits = { release = "delete" }"#,
            r#"subject = "del-without-token"
            traits = { clock = "wall" }"#,
        ),
    ];
    for (named, laid_over) in rows {
        assert_eq!(fingerprint(named), fingerprint(laid_over), "{named} is {laid_over}");
    }
    let right = fingerprint(r#"subject = "token-lock""#);
    assert_ne!(right, fingerprint(r#"subject = "del-without-token""#), "a trait makes a difference");
}

#[test]
fn no_two_subjects_have_the_same_traits() {
    for (at, one) in TABLE.iter().enumerate() {
        let same = |other: &&lockstorm::file::scenario::Subject| {
            (other.algorithm, other.traits) == (one.algorithm, one.traits)
        };
        let twin = TABLE[at + 1..].iter().find(same).map(|twin| twin.name);
        assert_eq!(twin, None, "the twin of {}", one.name);
    }
}

/// The outcomes of a client's calls, in order.
fn outcomes(text: &str, client: &str) -> Vec<Outcome> {
    let source = parse("subjects.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::draw(&source.variants[0].scenario, 0);
    let history = run::run(&plan, "subjects", Engine::Event, TraceRetention::Nothing).history;
    let of_client = history.events.iter().filter(|event| history.host_name(event.host) == client);
    of_client
        .filter_map(|event| {
            if let EventKind::Return { outcome, .. } = &event.kind { Some(outcome.clone()) } else { None }
        })
        .collect()
}

/// Virtual time stands still while a request is prepared. A caller with a wait of zero would be
/// late before its request is sent; the request is sent all the same.
#[test]
fn who_waits_for_no_time_at_all_is_told_what_is_so() {
    for subject in ["client", "redisson-latch", "polled-latch"] {
        let latch = format!(
            r#"
[node.m]
[lock]
kind = "latch"
count = 1
subject = "{subject}"
[client.starter]
steps = [{{ at = "2s", set = {{}} }}, {{ at = "4s", count_down = {{}} }}]
[client.early]
steps = [{{ at = "3s", wait = {{ for = "0s" }} }}]
[client.late]
steps = [{{ at = "5s", wait = {{ for = "0s" }} }}]
[run]
storm = "6s"
"#
        );
        assert_eq!(outcomes(&latch, "early"), [Outcome::Refused], "{subject}");
        assert_eq!(outcomes(&latch, "late"), [Outcome::Ok], "{subject}");
    }
    for subject in ["client", "rate-limiter"] {
        let rate = format!(
            r#"
[node.m]
[lock]
kind = "rate"
permits = 1
window = "2s"
subject = "{subject}"
[client.c]
steps = [
    {{ at = "3s", take = {{ permits = 1, wait = "0s" }} }}, {{ take = {{ permits = 1, wait = "0s" }} }},
    {{ at = "6s", take = {{ permits = 1, wait = "0s" }} }},
]
[run]
storm = "7s"
"#
        );
        assert_eq!(outcomes(&rate, "c"), [Outcome::Ok, Outcome::Refused, Outcome::Ok], "{subject}");
    }
}
