//! Transcripts of clusters, recorded from Redis: each command names its node, and perhaps one of
//! its connections.
//!
//! `a> GET foo` is a command and the line below it its reply, in which `*` matches any text; `a~`
//! repeats the command until that is the reply, because gossip takes its time; `a:sub<` is the next
//! message on a connection; `a!` awaits no reply.

use crate::served::nothing_to_compare_with;

use super::rig::{
    Group,
    Whose::{self, Ours, Redis},
    text, until,
};

const TRANSCRIPTS: [(&str, &str); 7] = [
    ("shapes", include_str!("transcripts/1_shapes.redis")),
    ("redirects", include_str!("transcripts/2_redirects.redis")),
    ("replicas", include_str!("transcripts/3_replicas.redis")),
    ("administer", include_str!("transcripts/4_administer.redis")),
    ("migrating", include_str!("transcripts/5_migrating.redis")),
    ("shard_channels", include_str!("transcripts/6_shard_channels.redis")),
    ("failover", include_str!("transcripts/7_failover.redis")),
];

/// The action of a transcript line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Ask,
    AskUntil,
    Send,
    Receive,
}

/// Splits a line with an action: the node, the connection, the action, and the command.
fn step(line: &str) -> Option<(char, &str, What, &str)> {
    let (at, sign) = line.char_indices().find(|(_, sign)| !sign.is_alphanumeric() && *sign != ':')?;
    let what = match sign {
        '>' => What::Ask,
        '~' => What::AskUntil,
        '!' => What::Send,
        '<' => What::Receive,
        _ => return None,
    };
    let (node, connection) = line[..at].split_once(':').unwrap_or((&line[..at], ""));
    let name = node.chars().next().filter(|_| node.len() == 1)?;
    Some((name, connection, what, line[at + 1..].trim_start()))
}

/// The words of a command; a quoted one may contain blanks and `
/// `.
fn words(command: &str, group: &Group) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').expect("a quote ends"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(group.meant(word).replace("\\n", "\n"));
        rest = behind.trim_start();
    }
    words
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

/// Plays all transcripts one after the other, and returns the wrong replies.
fn play(group: &mut Group) -> Vec<String> {
    let mut otherwise = Vec::new();
    for (name, transcript) in TRANSCRIPTS {
        let mut lines = transcript.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        while let Some(line) = lines.next() {
            let (node, connection, what, command) = step(line).expect("a step");
            let words = words(command, group);
            if what == What::Send {
                group.node(node).line(connection).send(&words);
                continue;
            }
            let expected = lines.next().expect("a reply");
            let once = |group: &mut Group| {
                let line = group.node(node).line(connection);
                if what != What::Receive {
                    line.send(&words);
                }
                let reply = text(&line.receive());
                group.named(&reply)
            };
            if what == What::AskUntil {
                until(&format!("{name}: {line}: {expected}"), || {
                    let answer = once(group);
                    if matches(&answer, expected) { Ok(()) } else { Err(answer) }
                });
                continue;
            }
            let answer = once(group);
            if !matches(&answer, expected) {
                otherwise.push(format!("{name}: {line}\n  expected {expected}\n  answered {answer}"));
            }
        }
    }
    otherwise
}

fn answers_as_recorded(name: &str, whose: [Whose; 6]) {
    let otherwise = play(&mut Group::together(name, whose));
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}

#[test]
fn a_cluster_of_ours_answers_as_redis_does() {
    answers_as_recorded("ours", [Ours; 6]);
}

#[test]
fn a_cluster_of_redis_and_ours_answers_as_redis_does() {
    if !super::redis_is_there() {
        return nothing_to_compare_with();
    }
    answers_as_recorded("mixed", [Ours, Redis, Ours, Redis, Ours, Redis]);
}

#[test]
fn what_is_recorded_is_what_redis_answers() {
    if !super::redis_is_there() {
        return nothing_to_compare_with();
    }
    answers_as_recorded("redis", [Redis; 6]);
}
