//! A subject is its traits: laid over another subject in a file, they make it the one that has them by name.

use lockstorm::{
    plan::Plan,
    run::{self, Engine},
    scenario::{TABLE, parse},
};
use lockstorm_sim::world::TraceRetention;

/// The owner stands still until its lease is over and then releases, when the lock is another client's.
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

/// The fingerprint of a run with this on trial.
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
        // Over the traits that the subject has, those of the file win.
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
        // No name has these two.
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
        let same = |other: &&lockstorm::scenario::Subject| {
            (other.algorithm, other.traits) == (one.algorithm, one.traits)
        };
        let twin = TABLE[at + 1..].iter().find(same).map(|twin| twin.name);
        assert_eq!(twin, None, "the twin of {}", one.name);
    }
}
