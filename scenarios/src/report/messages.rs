//! The messages between hosts, for the page: sender, receiver, the times of sending and arrival,
//! and the RESP in one line or the requested writes to the resource.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use lockstorm_sim::resp::{Decoder, Limits};
use lockstorm_world::{Event, Record, time::True};

use crate::judge::{
    checker::evidence::words,
    history::{History, HostKind, WriteLine},
};

/// The most messages of one page: those nearest to what it shows first.
const MESSAGES_MAX: usize = 4_000;
/// The most characters of a message that are shown.
const SHOWN: usize = 240;

/// One payload from a host to another, with the reply to it if there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// Its sender and its receiver, as indexes into the header's list of hosts.
    pub(super) ends: [usize; 2],
    pub(super) sent: True,
    /// For a request, the time at which the node read it; `None` if it never did. For a reply, the
    /// time at which it was due, which only a fault changes.
    pub(super) arrived: Option<True>,
    pub(super) is_request: bool,
    pub(super) words: String,
}

/// Returns the messages nearest to an instant, in the order in which they were sent, and the number
/// of the others.
pub(super) fn around(history: &History, records: &[Record], instant: True) -> (Vec<Message>, usize) {
    let mut all = messages(history, records);
    let left_out = all.len().saturating_sub(MESSAGES_MAX);
    if left_out > 0 {
        all.sort_by_key(|message| message.sent.as_nanos().abs_diff(instant.as_nanos()));
        all.truncate(MESSAGES_MAX);
        all.sort_by_key(|message| message.sent);
    }
    (all, left_out)
}

fn messages(history: &History, records: &[Record]) -> Vec<Message> {
    let hosts = history.header.hosts.iter().enumerate();
    let places: BTreeMap<&str, usize> = hosts.map(|(at, host)| (&*host.name, at)).collect();
    let mut found: Vec<Message> = Vec::new();
    // For each connection, its latest request that has no reply yet.
    let mut open: BTreeMap<(usize, u16, usize, u16), usize> = BTreeMap::new();
    // For each client and node, the requests that the node has not read yet.
    let mut unread: BTreeMap<(usize, usize), VecDeque<(usize, &Bytes)>> = BTreeMap::new();
    for record in records {
        let Some(host) = record.host.as_ref().and_then(|(name, _)| places.get(&**name).copied()) else {
            continue;
        };
        let (to, source_port, destination_port, payload, due) = match &record.event {
            Event::Packet { to, source_port, destination_port, payload, due, .. } if !payload.is_empty() => {
                (to, *source_port, *destination_port, payload, *due)
            }
            Event::Request { client, command, .. } => {
                let waiting = places.get(&**client).and_then(|client| unread.get_mut(&(*client, host)));
                // A payload of several commands arrives when its first command is read.
                if let Some(waiting) = waiting
                    && let Some(at) = waiting.iter().position(|(_, payload)| payload.starts_with(command))
                    && let Some((number, _)) = waiting.remove(at)
                {
                    found[number].arrived = Some(record.at);
                }
                continue;
            }
            _ => continue,
        };
        let Some(&to) = places.get(&**to) else { continue };
        let request = match history.header.hosts[to].kind {
            HostKind::Resource => writes(history, payload),
            _ => request(payload),
        };
        let is_request = request.is_some();
        let words = words::shortened(&request.unwrap_or_else(|| reply(payload)), SHOWN);
        let asked = open.remove(&(to, destination_port, host, source_port));
        if let Some(asked) = asked.filter(|_| !is_request) {
            let asked: &mut Message = &mut found[asked];
            asked.words = format!("{}\n{words} came back at {}", asked.words, words::instant(due));
        }
        let mut arrived = Some(due);
        if is_request {
            open.insert((host, source_port, to, destination_port), found.len());
            // A server listens on a lower port than its clients have; a master's stream goes the
            // other way.
            if destination_port < source_port && history.header.hosts[to].kind == HostKind::Node {
                unread.entry((host, to)).or_default().push_back((found.len(), payload));
                arrived = None;
            }
        }
        found.push(Message { ends: [host, to], sent: record.at, arrived, is_request, words });
    }
    found
}

/// Describes the writes in a payload to the resource; `None` if it contains anything else.
fn writes(history: &History, payload: &[u8]) -> Option<String> {
    let write = |line: &str| {
        let WriteLine { lock, owner, token, .. } = line.parse().ok()?;
        // Code on a host may send anything to the resource.
        let is_known =
            history.header.locks().any(|known| known == lock) && history.owners.len() > owner.0 as usize;
        let (lock, owner) = is_known.then(|| (&history.lock(lock).name, history.owner_name(owner)))?;
        let token = token.map_or("no token".to_owned(), |token| format!("token {token}"));
        Some(format!("{owner} writes under `{lock}`, {token}"))
    };
    let all: Option<Vec<String>> = str::from_utf8(payload).ok()?.lines().map(write).collect();
    all.map(|all| all.join("; "))
}

/// Returns the commands in a payload; `None` if it does not begin with a whole command.
fn request(payload: &[u8]) -> Option<String> {
    let mut decoder = Decoder::default();
    decoder.feed(payload);
    let mut commands = Vec::new();
    while payload.starts_with(b"*")
        && let Ok(Some(command)) = decoder.next(&Limits::default())
    {
        let arguments = command.iter().map(|argument| argument.escape_ascii().to_string());
        commands.push(arguments.collect::<Vec<_>>().join(" "));
    }
    // A reply may also be an array of bulk strings: only a command begins with a word in upper
    // case.
    let is_command = |text: &String| text.starts_with(|letter: char| letter.is_ascii_uppercase());
    (!commands.is_empty() && commands.iter().all(is_command)).then(|| commands.join("; "))
}

fn reply(payload: &[u8]) -> String {
    let lines =
        payload.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end().escape_ascii().to_string());
    let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    // A master sends mere line ends to a replica that waits for its snapshot.
    if text.is_empty() { payload.escape_ascii().to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::history::story::Story;

    #[test]
    fn a_message_is_shown_as_commands_or_as_a_reply() {
        for (payload, is_request, expected) in [
            (&b"*2\r\n$4\r\nPTTL\r\n$4\r\nlock\r\n"[..], true, "PTTL lock"),
            (b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nROLE\r\n", true, "PING; ROLE"),
            (b"+OK\r\n", false, "+OK"),
            (b"\n", false, "\\n"),
            (b"*2\r\n:1\r\n$-1\r\n", false, "*2 :1 $-1"),
            // A reply of bulk strings that is not a command, and a payload that ends within a
            // command.
            (b"*1\r\n$3\r\nc:1\r\n", false, "*1 $3 c:1"),
            (b"*2\r\n$4\r\nPT", false, "*2 $4 PT"),
        ] {
            let found = request(payload);
            assert_eq!(found.is_some(), is_request, "{expected}");
            assert_eq!(found.unwrap_or_else(|| reply(payload)), expected);
        }
    }

    /// Such a write was once drawn as a reply, with the words `0 1 - 2008471396`.
    #[test]
    fn a_write_to_the_resource_was_taken_for_a_reply() {
        let history = Story::one_node().at(0).granted("m", "c1", 1_000).granted("m", "c2", 1_000).ends(2_000);
        for (payload, words) in [
            ("0 1 - 2008471396\n", Some("c2 writes under `stock`, no token")),
            (
                "0 0 34 2008471396\n0 1 35 2009000000\n",
                Some("c1 writes under `stock`, token 34; c2 writes under `stock`, token 35"),
            ),
            ("0 7 34 2008471396\n", None),
            ("9 0 34 2008471396\n", None),
            ("hello\n", None),
        ] {
            assert_eq!(writes(&history, payload.as_bytes()).as_deref(), words, "{payload}");
        }
    }
}
