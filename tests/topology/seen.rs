//! Observations of a run, and their judgement by the expectations of the row.

use std::{cell::RefCell, collections::BTreeSet, fmt::Write, rc::Rc};

use crate::row::{Expect, Moment, Row, Sight};

/// An observation: an event of a Sentinel, or of a watch of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Milliseconds since the row's zero.
    pub(crate) at: i64,
    pub(crate) by: String,
    pub(crate) event: String,
    pub(crate) message: String,
}

/// The observations in order of their arrival.
pub(crate) type Log = Rc<RefCell<Vec<Seen>>>;

/// The measurements, each with the index of its [`Expect`] in the row: times in milliseconds, or
/// one number of times.
pub(crate) type Measured = Vec<(usize, Vec<i64>)>;

/// The result of one run of a row.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) measured: Measured,
    /// Descriptions of the unmet expectations.
    pub(crate) wrong: Vec<String>,
}

/// The Sentinel that led the last failover; else the one that was elected or tried last.
pub(crate) fn leader(seen: &[Seen]) -> Option<&str> {
    let by = |event: &str| seen.iter().rev().find(|seen| seen.event == event).map(|seen| &*seen.by);
    by("+promoted-slave").or_else(|| by("+elected-leader")).or_else(|| by("+try-failover"))
}

/// Returns true if several Sentinels stood for election and none was elected, because they took
/// votes from each other. That is a matter of chance, except for a row that expects it.
pub(crate) fn is_split(row: &Row, seen: &[Seen]) -> bool {
    let is_expected =
        |expect: &Expect| matches!(expect, Expect::Never(sight) if sight.event == "+elected-leader");
    if row.expect.iter().any(is_expected) {
        return false;
    }
    let tried: BTreeSet<&str> =
        seen.iter().filter(|seen| seen.event == "+try-failover").map(|seen| &*seen.by).collect();
    tried.len() > 1 && seen.iter().all(|seen| seen.event != "+elected-leader")
}

fn is_by(by: &str, wanted: &str, leader: Option<&str>) -> bool {
    match wanted {
        "" => true,
        "leader" => leader == Some(by),
        "observers" => by.starts_with('s') && leader != Some(by),
        name => by == name,
    }
}

/// A part of a message with the name of a node in place of `{first A B}` or `{last A B}`.
fn with_names(about: &str, seen: &[Seen]) -> String {
    let Some((before, rest)) = about.split_once('{') else { return about.to_owned() };
    let (choice, after) = rest.split_once('}').expect("a choice of nodes in braces");
    let mut words = choice.split(' ');
    let which = words.next();
    let order = seen.iter().find(|seen| seen.event == "order").expect("its row watches views");
    let place = |name: &&str| order.message.split(' ').position(|node| node == *name);
    let name = match which {
        Some("first") => words.min_by_key(place),
        _ => words.max_by_key(place),
    };
    format!("{before}{}{after}", name.unwrap_or_default())
}

/// Logged if the remaining writes could not be read: the lost ones are unknown then.
pub(crate) const UNREAD: &str = "unread";

/// Judges a run by its row; a bound may be missed by `slack` milliseconds.
pub(crate) fn judge(row: &Row, seen: &[Seen], slack: i64) -> Verdict {
    let mut verdict = Verdict::default();
    if seen.iter().any(|seen| seen.event == UNREAD) {
        verdict.wrong.push("no node told which writes are left".to_owned());
    }
    let leader = leader(seen);
    let all = |sight: &Sight| {
        let (sight, about) = (*sight, with_names(sight.about, seen));
        let is = move |seen: &&Seen| {
            is_by(&seen.by, sight.by, leader)
                && seen.event == sight.event
                && seen.at >= sight.from
                && seen.message.contains(&*about)
        };
        seen.iter().filter(is)
    };
    let moment = |moment: &Moment| match moment {
        Moment::At(at) => Ok(*at),
        Moment::First(sight) => all(sight).map(|seen| seen.at).min().ok_or(*sight),
        Moment::Last(sight) => all(sight).map(|seen| seen.at).max().ok_or(*sight),
    };
    for (at, expect) in row.expect.iter().enumerate() {
        let (mut values, mut wrong) = (Vec::new(), None);
        let within = |value: i64, least: i64, most: i64| (least - slack..=most + slack).contains(&value);
        match expect {
            Expect::Takes(what, from, to, least, most) => match (moment(from), moment(to)) {
                (Ok(from), Ok(to)) => {
                    values.push(to - from);
                    if !within(to - from, *least, *most) {
                        wrong = Some(format!("{what}: {} ms, not {least} to {most}", to - from));
                    }
                }
                (Err(sight), _) | (_, Err(sight)) => wrong = Some(format!("{what}: there is no {sight:?}")),
            },
            Expect::Never(sight) => {
                wrong = all(sight).next().map(|seen| format!("it is not to be seen: {seen:?}"));
            }
            Expect::Count(sight, least, most) => {
                let count = all(sight).count();
                values.push(count as i64);
                if !(*least..=*most).contains(&count) {
                    wrong = Some(format!("{sight:?} is seen {count} times, not {least} to {most}"));
                }
            }
            Expect::InOrder(by, events) => {
                let mut told = seen.iter().filter(|seen| seen.at >= 0 && is_by(&seen.by, by, leader));
                let missing = events.iter().find(|event| !told.any(|seen| seen.event == **event));
                wrong = missing.map(|event| format!("{event} is missing or out of order at {by}"));
            }
            Expect::Every(what, sight, least, most) => {
                let mut hosts: Vec<&str> = all(sight).map(|seen| &*seen.by).collect();
                hosts.sort_unstable();
                hosts.dedup();
                for host in &hosts {
                    let times: Vec<i64> =
                        all(sight).filter(|seen| seen.by == *host).map(|seen| seen.at).collect();
                    values.extend(times.windows(2).map(|two| two[1] - two[0]));
                }
                let outside = values.iter().find(|value| !within(**value, *least, *most));
                wrong = outside.map(|value| format!("{what}: {value} ms, not {least} to {most}"));
                if values.is_empty() {
                    wrong = Some(format!("{what}: there is no {sight:?}"));
                }
            }
            Expect::Answers(host, command, pattern) => {
                let replies: Vec<&Seen> =
                    seen.iter().filter(|seen| seen.event == *command && seen.by == *host).collect();
                let misses = replies.iter().find(|reply| !matches(&reply.message, pattern));
                wrong = misses.map(|reply| format!("{host} answers {command} with {:?}", reply.message));
                if replies.is_empty() {
                    wrong = Some(format!("{host} does not answer {command}"));
                }
            }
            Expect::Differ(one, other) => {
                let word = |sight: &Sight| -> Result<String, Sight> {
                    let last = all(sight).next_back().ok_or(*sight)?;
                    Ok(last.message.rsplit(' ').next().unwrap_or_default().to_owned())
                };
                wrong = match (word(one), word(other)) {
                    (Ok(one), Ok(other)) => (one == other).then(|| format!("both have {one}")),
                    (Err(sight), _) | (_, Err(sight)) => Some(format!("there is no {sight:?}")),
                };
            }
        }
        verdict.measured.push((at, values));
        verdict.wrong.extend(wrong);
    }
    verdict
}

/// Returns true if a text matches a pattern in which `*` stands for any text.
fn matches(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// All observations, for a person who looks into a failure; leaves out the continuous ones of
/// watches.
pub(crate) fn told(seen: &[Seen]) -> String {
    let mut lines = String::new();
    for Seen { at, by, event, message } in seen {
        if !matches!(&**event, "accepted" | "confirmed" | "lost" | "PING" | "INFO" | "PUBLISH") {
            let _ = writeln!(lines, "{at:>7} {by:<10} {event} {message}");
        }
    }
    lines
}
