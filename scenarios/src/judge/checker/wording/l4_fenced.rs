//! The words of L4: stale writes that were accepted.

use super::{ending::ending, l3_effect::NOT_TESTED};
use crate::judge::checker::{
    decision::Case,
    evidence::{Evidence, section::Write, words},
    questions::l4_fenced::{Because, Stale},
    wording::{Explain, Reason},
};

impl Reason for Because {
    fn sentence(&self, _evidence: &Evidence<'_>) -> String {
        match self {
            Self::NoFence => "The resource checks no tokens.".to_owned(),
            Self::NotTested => NOT_TESTED.to_owned(),
            Self::InOrder { accepted, rejected } => {
                format!("{} accepted in order, {rejected} rejected.", words::many(*accepted, "write"))
            }
        }
    }
}

impl Explain for Case<Stale> {
    fn summary(&self, evidence: &Evidence<'_>) -> String {
        let Stale { write, before } = &self.wrong;
        let history = evidence.history;
        let same = write.token.is_some() && write.token == before.token;
        format!(
            "The resource accepted {}'s write {} at {}, after {}'s {}.",
            history.owner_name(write.owner),
            token(write),
            words::instant(write.arrived),
            history.owner_name(before.owner),
            if same { "with the same token".to_owned() } else { token(before) }
        )
    }

    fn story(&self, evidence: &Evidence<'_>) -> Vec<String> {
        let Stale { write, before } = &self.wrong;
        let since = write.since.unwrap_or(write.sent);
        let owners = [write.owner, before.owner];
        let mut story = vec![held(evidence, before), held(evidence, write)];
        story.extend(ending(evidence, write.lock, &owners, since, before.arrived.max(since)));
        story
    }
}

fn held(evidence: &Evidence<'_>, write: &Write) -> String {
    let owner = evidence.history.owner_name(write.owner);
    match write.since {
        Some(since) => format!(
            "{owner} got the lock at {} and wrote {} at {}.",
            words::instant(since),
            token(write),
            words::instant(write.arrived)
        ),
        None => format!("{owner} never held the lock."),
    }
}

fn token(write: &Write) -> String {
    write.token.map_or_else(|| "without a token".to_owned(), |token| format!("with token {token}"))
}
