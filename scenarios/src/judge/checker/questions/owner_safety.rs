//! Owner safety: does an owner release, delete, overwrite or extend another owner's hold?
//!
//! A forced release is a deletion like any other: the key does not show which command deleted it.

use crate::judge::{
    checker::{
        Checker,
        evidence::{Asked, Evidence, words},
    },
    history::{Call, Event, EventKind, History, LossCause, Outcome, Owner, Party},
    verdict::{Finding, Measure, Verdict, Witness},
};

pub(in crate::judge::checker) const OWNER_SAFETY: Checker = Checker {
    name: "owner-safety",
    question: "Does a release or an extension by one owner take effect on another's hold?",
    measures: &[
        ("times", "how many times it did"),
        ("seen", "how many releases and extensions took effect"),
        ("refused", "how many were refused"),
    ],
    bound: None,
    check,
};

/// Returns the action, the owner of the hold and the acting party; `None` if the event is not an
/// action that only the owner may do.
fn done(event: &Event) -> Option<(&'static str, Owner, Party)> {
    match &event.kind {
        EventKind::Released { owner, by, .. } => Some(("released", *owner, *by)),
        EventKind::Extended { owner, by, .. } => Some(("extended", *owner, *by)),
        EventKind::Vanished { owner, how: LossCause::Deleted(by), .. } => Some(("deleted", *owner, *by)),
        EventKind::Vanished { owner, how: LossCause::Overwritten(by), .. } => {
            Some(("wrote over", *owner, *by))
        }
        _ => None,
    }
}

fn check(evidence: &Evidence<'_>) -> Finding {
    let history = evidence.history;
    let (mut seen, mut foreign) = (0_u64, Vec::new());
    for event in &history.events {
        let Some((verb, owner, by)) = done(event) else { continue };
        seen += 1;
        if !history.is_own(owner, by) {
            foreign.push((event, verb, owner, by));
        }
    }
    // A release that was refused also tested the property, and so did one that changed nothing: a
    // script that compares tokens does not always report that. A failed release counts as well: no
    // event shows whether it reached a server, and one whose reply was lost did
    // (`trial/lost_release_reply.toml`).
    let asked = |call: &&Asked<'_>| {
        matches!(call.call, Call::Release | Call::Extend { .. }) && call.returned.is_some()
    };
    let turned_away = |call: &&Asked<'_>| matches!(call.returned, Some((_, Outcome::Refused)));
    let calls = evidence.calls.iter().filter(asked);
    let refused = calls.clone().filter(turned_away).count() as u64;
    let tested = seen > 0 || calls.count() > 0;
    let verdict = match foreign.first() {
        Some((event, verb, owner, by)) => {
            Verdict::Violated { witness: witness(history, event, verb, *owner, *by) }
        }
        None => match evidence.given_up() {
            Some(why) => Verdict::undecided(why),
            None if !tested => Verdict::undecided("Nothing was ever released or extended."),
            None => Verdict::holds(format!(
                "Releases and extensions by the owner itself: {seen}; turned away: {refused}."
            )),
        },
    };
    let measures = vec![
        Measure::count("times", foreign.len() as u64),
        Measure::count("seen", seen),
        Measure::count("refused", refused),
    ];
    OWNER_SAFETY.finding(verdict, measures)
}

fn witness(history: &History, event: &Event, verb: &str, owner: Owner, by: Party) -> Witness {
    let who = history.party_name(by);
    let whose = history.owner_name(owner);
    let summary = format!(
        "{who} {verb} what {whose} held, at {} on {}.",
        words::instant(event.at),
        history.host_name(event.host)
    );
    let lock = event.kind.lock();
    Witness { summary, story: Vec::new(), from: event.at, until: event.at, lock, owners: vec![owner] }
}

#[cfg(test)]
mod tests {
    use crate::judge::{
        checker::tests::explained,
        history::{Call, Host, LockKind, LossCause, Mode, Outcome, Party, story::Story},
    };

    #[test]
    fn explanations() {
        let held = || Story::one_node().at(0).granted("m", "c1", 1_000).at(500);
        let overwritten = || {
            let story = held();
            let by = Party { client: Host(2), owner: None };
            story.vanished("m", "c1", LossCause::Overwritten(by)).ends(3_000)
        };
        let readers =
            || Story::of_kind(LockKind::ReadWrite).at(0).granted_in("m", "c1", 1_000, Mode::Shared).at(500);
        let stories = [
            ("its own release", held().released("m", "c1").ends(3_000)),
            ("its own extension", held().extended("m", "c1", 1_000).ends(3_000)),
            ("another's release", held().released_by("m", "c1", "c2").ends(3_000)),
            ("another's extension", held().extended_by("m", "c1", 1_000, "c2").ends(3_000)),
            ("another's DEL", held().deleted("m", "c1", "c2").ends(3_000)),
            ("another's SET", overwritten()),
            (
                "another's release is turned away",
                held().calls("c2", Call::Release).at(501).returns("c2", Outcome::Refused).ends(3_000),
            ),
            (
                "another's release changes nothing, without a word",
                held().calls("c2", Call::Release).at(501).returns("c2", Outcome::Ok).ends(3_000),
            ),
            (
                "a reader extends the lease of another",
                readers().extended_by("m", "c1", 1_000, "c2").ends(3_000),
            ),
            ("the end of the lease", held().vanished("m", "c1", LossCause::Expired).ends(3_000)),
        ];
        insta::assert_snapshot!(explained("owner-safety", &stories));
    }
}
