//! A client that is another program, with a lock library on trial.

use std::rc::Rc;

use crate::{
    file::peer::{Can, Peer},
    file::{
        plan::{PlannedLock, host::Software, script::PlannedLine, software::PlannedClient},
        scenario::{Asks, Client},
    },
    judge::history::HostKind,
};

/// A client whose work a peer does.
#[derive(Debug)]
pub(crate) struct PlannedPeer {
    /// The table of the file that defines the client.
    pub(crate) client: Client,
    /// Its work. A peer can do one line of work.
    pub(crate) lines: Vec<PlannedLine>,
    /// The library on trial, with the command that starts its process.
    pub(crate) peer: Rc<Peer>,
    /// The reasons why the library cannot do this work.
    problems: Vec<String>,
}

impl PlannedPeer {
    /// Plans the peer in the place of this client.
    pub(in crate::file::plan) fn of(
        planned: &PlannedClient,
        peer: &Rc<Peer>,
        locks: &[PlannedLock],
    ) -> PlannedPeer {
        let PlannedClient { client, lines } = planned;
        let mut problems: Vec<String> = locks.iter().filter_map(|lock| of_lock(lock, peer)).collect();
        if client.code.is_some() {
            problems.push("runs code of its own".to_owned());
        }
        if client.user.is_some() {
            problems.push("logs in as a user, and a peer is told no password".to_owned());
        }
        if client.retries.is_some() {
            problems.push("has a driver that retries, and a peer has that of its library".to_owned());
        }
        if lines.len() > 1 {
            problems.push("has several lines of work, and a peer has one".to_owned());
        }
        problems.extend(lines.iter().filter_map(|line| of_line(line, peer, locks)));
        PlannedPeer { client: client.clone(), lines: lines.clone(), peer: peer.clone(), problems }
    }
}

impl Software for PlannedPeer {
    fn kind(&self) -> HostKind {
        HostKind::Client
    }

    fn is_process(&self) -> bool {
        true
    }

    fn unreal(&self) -> Vec<String> {
        self.problems.clone()
    }

    fn words(&self) -> Vec<String> {
        let name = format!("peer {}", self.peer.hello.name());
        let steps = self.lines.iter().flat_map(|line| line.script.iter().map(ToString::to_string));
        std::iter::once(name).chain(steps).collect()
    }
}

/// Returns the reason why the library cannot provide this lock, if any.
fn of_lock(lock: &PlannedLock, peer: &Peer) -> Option<String> {
    let kind = lock.written.kind;
    let library = &peer.hello.library;
    if !kind.has_one_owner() {
        Some("takes a lock that is not of one owner at a time".to_owned())
    } else if kind.needs_quorum() && !peer.can(Can::Quorum) {
        Some(format!("needs a quorum, and {library} asks one node"))
    } else if kind.has_tokens() && !peer.can(Can::Token) {
        Some(format!("needs fencing tokens, and {library} hands out none"))
    } else {
        None
    }
}

/// Returns the reason why the library cannot do this line of work, if any.
fn of_line(line: &PlannedLine, peer: &Peer, locks: &[PlannedLock]) -> Option<String> {
    let library = &peer.hello.library;
    let have_leases = locks.iter().all(|lock| lock.written.lease.is_some());
    let lacks = |asks: Asks| match asks {
        Asks::Lock { lease, watchdog }
            if (watchdog || !(lease || have_leases)) && !peer.can(Can::Watchdog) =>
        {
            Some(format!("needs a watchdog, and {library} renews no lease by itself"))
        }
        Asks::Extension if !peer.can(Can::Extend) => Some(format!("extends a lease, and {library} does not")),
        Asks::More => Some("does more than to acquire a lock alone, extend and release it".to_owned()),
        Asks::Nothing | Asks::Lock { .. } | Asks::Extension => None,
    };
    let steps = line.script.iter().filter_map(|planned| planned.step.as_ref()).map(|step| step.asks());
    line.workload.as_ref().map(|workload| workload.asks()).into_iter().chain(steps).find_map(lacks)
}
