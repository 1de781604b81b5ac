//! Owner safety: does an owner release, delete, overwrite or extend another owner's hold?
//!
//! A forced release is a deletion like any other: the key does not show which command deleted it.

use crate::judge::{
    checker::{
        Checker,
        decision::{Case, Decided, Decision},
        evidence::{Asked, Evidence},
    },
    history::{Call, Event, EventKind, Host, LossCause, Outcome, Owner, Party},
    verdict::{Finding, Measure},
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

/// The reason of a verdict.
pub(in crate::judge::checker) enum Because {
    NothingDone,
    OwnOnly { seen: u64, refused: u64 },
}

/// An action that only the owner of a hold may do.
#[derive(Debug, Clone, Copy)]
pub(in crate::judge::checker) enum Done {
    Released,
    Extended,
    Deleted,
    Overwritten,
}

/// A [`Done`] of a party that is not the owner.
#[derive(Debug, Clone, Copy)]
pub(in crate::judge::checker) struct Foreign {
    pub(in crate::judge::checker) node: Host,
    pub(in crate::judge::checker) done: Done,
    /// The owner of the hold.
    pub(in crate::judge::checker) owner: Owner,
    pub(in crate::judge::checker) by: Party,
}

/// Returns the action, the owner of the hold and the acting party; `None` if the event is not an
/// action that only the owner may do.
fn done(event: &Event) -> Option<(Done, Owner, Party)> {
    match &event.kind {
        EventKind::Released { owner, by, .. } => Some((Done::Released, *owner, *by)),
        EventKind::Extended { owner, by, .. } => Some((Done::Extended, *owner, *by)),
        EventKind::Vanished { owner, how: LossCause::Deleted(by), .. } => Some((Done::Deleted, *owner, *by)),
        EventKind::Vanished { owner, how: LossCause::Overwritten(by), .. } => {
            Some((Done::Overwritten, *owner, *by))
        }
        _ => None,
    }
}

fn check(evidence: &Evidence<'_>) -> Finding {
    decide(evidence).worded(&OWNER_SAFETY, evidence)
}

fn decide(evidence: &Evidence<'_>) -> Decided<Because, Foreign> {
    let history = evidence.history;
    let (mut seen, mut foreign) = (0_u64, Vec::new());
    for event in &history.events {
        let Some((done, owner, by)) = done(event) else { continue };
        seen += 1;
        if !history.is_own(owner, by) {
            foreign.push((event, Foreign { node: event.host, done, owner, by }));
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
        Some((event, wrong)) => {
            let (at, lock, owners) = (event.at, event.kind.lock(), vec![wrong.owner]);
            Decision::Violated(Case { wrong: *wrong, from: at, until: at, lock, owners })
        }
        None if evidence.is_given_up() => Decision::GivenUp,
        None if !tested => Decision::Undecided(Because::NothingDone),
        None => Decision::Holds(Because::OwnOnly { seen, refused }),
    };
    let measures = vec![
        Measure::count("times", foreign.len() as u64),
        Measure::count("seen", seen),
        Measure::count("refused", refused),
    ];
    Decided { verdict, measures }
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
