//! A history as a file of JSON lines: everything but the events in the first line, then one line
//! per event, in order.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write},
};

use lockstorm_world::time::True;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    Clock, CommandCount, Event, EventKind, Fault, Header, History, Host, KeyLeft, Lock, Owner, OwnerInfo,
};

/// The version of the format; a reader refuses all others.
const FORMAT: u32 = 2;

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Preamble<T> {
    lockstorm_history: u32,
    #[serde(flatten)]
    rest: T,
}

#[derive(Serialize)]
struct Parts<'a> {
    header: &'a Header,
    owners: &'a [OwnerInfo],
    clocks: &'a [Clock],
    faults: &'a [Fault],
    commands: &'a [CommandCount],
    keys_left: &'a [KeyLeft],
}

#[derive(Deserialize)]
struct OwnedParts {
    header: Header,
    owners: Vec<OwnerInfo>,
    clocks: Vec<Clock>,
    faults: Vec<Fault>,
    #[serde(default)]
    commands: Vec<CommandCount>,
    #[serde(default)]
    keys_left: Vec<KeyLeft>,
}

/// The reason a stored history cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Reading from the source failed.
    #[error("the history cannot be read")]
    Io(#[from] io::Error),
    /// A line is not valid JSON, or names a host, lock or owner that the first line does not list,
    /// or is earlier than the line before.
    #[error("line {line} of the history: {mistake}")]
    Line {
        /// The line's number, counted from 1.
        line: usize,
        /// The error of the JSON parser, or a reason such as `there is no lock 7`.
        mistake: String,
    },
}

impl History {
    /// Writes the history as JSON lines.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let rest = Parts {
            header: &self.header,
            owners: &self.owners,
            clocks: &self.clocks,
            faults: &self.faults,
            commands: &self.commands,
            keys_left: &self.keys_left,
        };
        serde_json::to_writer(&mut to, &Preamble { lockstorm_history: FORMAT, rest })?;
        to.write_all(b"\n")?;
        for event in &self.events {
            serde_json::to_writer(&mut to, event)?;
            to.write_all(b"\n")?;
        }
        to.flush()
    }

    /// Reads the output of [`History::write`]. It checks a foreign file far enough that judging
    /// cannot fail: every number refers to something, and events are in order.
    ///
    /// # Errors
    /// Errors of the reader, or the first invalid line.
    pub fn read(from: impl BufRead) -> Result<Self, ReadError> {
        let mut lines = from.lines();
        let mistake = |line: usize| move |mistake: String| ReadError::Line { line, mistake };
        let first = lines.next().ok_or_else(|| mistake(1)("it is empty".to_owned()))??;
        let preamble: Preamble<OwnedParts> =
            serde_json::from_str(&first).map_err(|error| mistake(1)(error.to_string()))?;
        if preamble.lockstorm_history != FORMAT {
            let found = preamble.lockstorm_history;
            return Err(mistake(1)(format!("it is of format {found}, this is a reader of format {FORMAT}")));
        }
        let OwnedParts { header, owners, clocks, faults, commands, keys_left } = preamble.rest;
        header.validate().map_err(mistake(1))?;
        let mut index = BTreeMap::new();
        for (at, info) in owners.iter().enumerate() {
            let owner = Owner(u32::try_from(at).map_err(|_| mistake(1)("too many owners".to_owned()))?);
            if index.insert(info.name.clone(), owner).is_some() {
                return Err(mistake(1)(format!("owner `{}` is there twice", info.name)));
            }
        }
        let mut history =
            Self { header, owners, clocks, faults, events: Vec::new(), commands, keys_left, index };
        history.check_preamble().map_err(mistake(1))?;
        let mut last = True::from_nanos(i64::MIN);
        for (at, line) in lines.enumerate() {
            let mistake = mistake(at + 2);
            let event: Event = serde_json::from_str(&line?).map_err(|error| mistake(error.to_string()))?;
            if event.at < last {
                return Err(mistake("it is earlier than the line before".to_owned()));
            }
            last = event.at;
            history.check_event(&event).map_err(mistake)?;
            history.events.push(event);
        }
        Ok(history)
    }

    fn check_host(&self, host: Host) -> Result<(), String> {
        match self.header.hosts.get(usize::from(host.0)) {
            Some(_) => Ok(()),
            None => Err(format!("there is no host {host}")),
        }
    }

    fn check_owner(&self, owner: Owner) -> Result<(), String> {
        match self.owners.get(owner.0 as usize) {
            Some(_) => Ok(()),
            None => Err(format!("there is no owner {owner}")),
        }
    }

    fn check_preamble(&self) -> Result<(), String> {
        if self.clocks.len() != self.header.hosts.len() {
            return Err("there are not as many clocks as hosts".to_owned());
        }
        let owners = self.owners.iter().map(|owner| owner.client);
        let faults = self.faults.iter().flat_map(|fault| fault.targets.iter().copied());
        let commands = self.commands.iter().flat_map(|count| [count.node, count.client]);
        let keys = self.keys_left.iter().map(|key| key.node);
        owners.chain(faults).chain(commands).chain(keys).try_for_each(|host| self.check_host(host))?;
        let lock = self.keys_left.iter().find(|key| usize::from(key.lock.0) >= self.header.locks.len());
        if let Some(key) = lock {
            return Err(format!("there is no lock {}", key.lock));
        }
        self.keys_left.iter().filter_map(|key| key.owner).try_for_each(|owner| self.check_owner(owner))
    }

    fn check_event(&self, event: &Event) -> Result<(), String> {
        self.check_host(event.host)?;
        if let Some(lock) = event.kind.lock()
            && usize::from(lock.0) >= self.header.locks.len()
        {
            return Err(format!("there is no lock {}", Lock(lock.0)));
        }
        let queued: &[Owner] = if let EventKind::Queue { waiters, .. } = &event.kind { waiters } else { &[] };
        let party = event.kind.party();
        if let Some(party) = party {
            self.check_host(party.client)?;
        }
        let mentioned = event.kind.owner().into_iter().chain(party.and_then(|party| party.owner));
        mentioned.chain(queued.iter().copied()).try_for_each(|owner| self.check_owner(owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::history::{ClockId, Fence, LockKind, LossCause, Outcome, Reason, story::Story};

    fn story() -> History {
        Story::failover(LockKind::Fair)
            .fenced(Fence::AtLeast)
            .at(1)
            .asks("c1")
            .granted("m", "c1", 1_000)
            .returns("c1", Outcome::Failed { definite: false, message: "timed \"out\"\n".into() })
            .believes_by("c1", ClockId::Monotonic, 900)
            .queue("m", &["c2", "c3"])
            .extended_by("m", "c1", 500, "c2")
            .at(2)
            .clocks("m", [5_000, 2, 2], [20_000, 0, 0])
            .fault_until(9, "a fault", &["m", "c1"])
            .deleted("m", "c1", "c3")
            .vanished("r", "c1", LossCause::Failover)
            .disbelieves("c1", Reason::Lost)
            .wrote("c1", Some(33), 1)
            .commands("c1", "m", "EVALSHA", 3)
            .key_left("m", "stock", None)
            .latch_left("m", "latch:{stock}:7", "c1")
            .calm()
            .ends(10)
    }

    fn written(history: &History) -> String {
        let mut file = Vec::new();
        history.write(&mut file).expect("memory takes everything");
        String::from_utf8(file).expect("JSON is text")
    }

    #[test]
    fn what_is_written_is_read_back() {
        let history = story();
        let file = written(&history);
        assert_eq!(file.lines().count(), 1 + history.events.len());
        let read = History::read(file.as_bytes()).expect("as written");
        assert_eq!(read, history);
        assert_eq!(written(&read), file);
    }

    #[test]
    fn a_file_that_is_not_right_is_refused_with_its_line() {
        let file = written(&story());
        let lines: Vec<&str> = file.lines().collect();
        let with = |line: usize, from: &str, to: &str| {
            let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            assert!(lines[line].contains(from), "{from} in {}", lines[line]);
            lines[line] = lines[line].replacen(from, to, 1);
            lines.join("\n")
        };
        for (file, words) in [
            (String::new(), "line 1 of the history: it is empty"),
            ("{}".to_owned(), "line 1 of the history: missing field"),
            (with(0, "\"lockstorm_history\":2", "\"lockstorm_history\":1"), "it is of format 1"),
            (with(0, "\"quorum\":1", "\"quorum\":2"), "lock `stock` needs 2 of 1 groups"),
            (with(0, "\"quorum\":1", "\"quorum\":0"), "lock `stock` needs 0 of 1 groups"),
            (with(0, "\"c1:1\"", "\"c2:1\""), "owner `c2:1` is there twice"),
            (
                with(0, "\"lock\":0,\"key\"", "\"lock\":7,\"key\""),
                "line 1 of the history: there is no lock 7",
            ),
            (with(0, "\"owner\":0", "\"owner\":99"), "line 1 of the history: there is no owner 99"),
            (with(0, "\"clocks\":[[", "\"clocks\":[[],["), "a clock without pieces"),
            (with(2, "\"owner\":0", "\"owner\":99"), "line 3 of the history: there is no owner 99"),
            (with(2, "\"lock\":0", "\"lock\":7"), "line 3 of the history: there is no lock 7"),
            (with(2, "\"host\":0", "\"host\":700"), "line 3 of the history: there is no host 700"),
            (
                with(2, "\"at\":1000000", "\"at\":-1"),
                "line 3 of the history: it is earlier than the line before",
            ),
            (with(2, "granted", "granded"), "line 3 of the history: unknown variant `granded`"),
        ] {
            let error = History::read(file.as_bytes()).expect_err(words).to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
