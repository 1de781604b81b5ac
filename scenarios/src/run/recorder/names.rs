//! The owners that names in Redis stand for.

use std::collections::BTreeMap;

use crate::judge::history::{Host, Owner};

/// One of the lines of work of a client: it asks, holds and gives back under an owner of its own,
/// one thing after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line(pub u32);

impl Line {
    /// The line of work that every client has.
    pub const FIRST: Line = Line(1);

    /// The owner that this line of work of a client with this id is, as the production client calls
    /// it: `client:line`. The other way round,
    /// [`History::process`](crate::judge::history::History::process).
    pub fn owner_of(self, client_id: &str) -> String {
        format!("{client_id}:{}", self.0)
    }
}

/// The owners that names in Redis stand for. An algorithm may write a new name for every
/// acquisition, and it is still the same line of work.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The owner that each line of work is at present.
    lines: BTreeMap<(Host, Line), Owner>,
    /// The owner that a name stands for where this client writes it.
    written: BTreeMap<Host, BTreeMap<Box<str>, Owner>>,
    /// The owner to whom a connection from this port of a client belongs, of clients with one for
    /// each line of work.
    connections: BTreeMap<(Host, u16), Owner>,
    /// The owner that was last granted a lock under a name, and before any grant the first that
    /// used it.
    bound: BTreeMap<Box<str>, Owner>,
}

impl Names {
    /// The line of work is this owner from now on, and `name` stands for it.
    pub(super) fn begin(&mut self, client: Host, line: Line, name: &str, owner: Owner) {
        self.lines.insert((client, line), owner);
        self.write(client, name, owner);
    }

    /// The owner that a client's line of work is at present; that of its first one if this one has
    /// not begun.
    pub(super) fn current(&self, client: Host, line: Line) -> Option<Owner> {
        let line = self.lines.get(&(client, line));
        line.or_else(|| self.lines.get(&(client, Line::FIRST))).copied()
    }

    /// The line of work that is this owner at present.
    pub(super) fn line_of(&self, client: Host, owner: Owner) -> Option<Line> {
        let mut lines = self.lines.range((client, Line(0))..=(client, Line(u32::MAX)));
        lines.find(|(_, current)| **current == owner).map(|((_, line), _)| *line)
    }

    /// A client writes this name for this owner from now on.
    pub(super) fn write(&mut self, client: Host, name: &str, owner: Owner) {
        self.written.entry(client).or_default().insert(name.into(), owner);
        self.bound.entry(name.into()).or_insert(owner);
    }

    /// The owner for which a client writes this name.
    pub(super) fn written(&self, client: Host, name: &str) -> Option<Owner> {
        self.written.get(&client)?.get(name).copied()
    }

    /// A connection from this port of a client is its line of work's own from now on.
    pub(super) fn connect(&mut self, client: Host, line: Line, port: u16) {
        if let Some(owner) = self.current(client, line) {
            self.connections.insert((client, port), owner);
        }
    }

    /// The owner to whom a connection from this port of a client belongs.
    pub(super) fn of_connection(&self, client: Host, port: u16) -> Option<Owner> {
        self.connections.get(&(client, port)).copied()
    }

    /// A lock was granted to this owner under this name.
    pub(super) fn bind(&mut self, name: &str, owner: Owner) {
        self.bound.insert(name.into(), owner);
    }

    /// The owner that a name stands for, where it is not known which client wrote it.
    pub(super) fn bound(&self, name: &str) -> Option<Owner> {
        self.bound.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_the_line_of_work_that_writes_it() {
        let (c1, c2) = (Host(1), Host(2));
        let mut names = Names::default();
        names.begin(c1, Line::FIRST, "c1:1", Owner(0));
        names.begin(c1, Line(2), "c1:2", Owner(1));
        names.begin(c2, Line::FIRST, "c2:1", Owner(2));
        names.write(c1, "token", Owner(1));
        names.write(c2, "token", Owner(2));
        assert_eq!(names.bound("token"), Some(Owner(1)), "the first that used it");
        names.bind("token", Owner(2));
        assert_eq!(names.bound("token"), Some(Owner(2)), "the last that was granted a lock");
        assert_eq!([c1, c2].map(|client| names.written(client, "token")), [Some(Owner(1)), Some(Owner(2))]);
        assert_eq!(names.line_of(c1, Owner(1)), Some(Line(2)));
        assert_eq!(names.line_of(c2, Owner(1)), None);
        // Another process on the host is another owner, and what the one before it wrote is still
        // of that one.
        names.begin(c1, Line::FIRST, "c1.2:1", Owner(3));
        assert_eq!(names.current(c1, Line::FIRST), Some(Owner(3)));
        assert_eq!(names.written(c1, "c1:1"), Some(Owner(0)));
        assert_eq!(names.current(c2, Line(7)), Some(Owner(2)));
        // The connections that it had before are those of the owner before it.
        names.connect(c2, Line::FIRST, 50_000);
        names.begin(c2, Line::FIRST, "c2.2:1", Owner(4));
        names.connect(c2, Line::FIRST, 50_001);
        let of = |port| names.of_connection(c2, port);
        assert_eq!([50_000, 50_001, 50_002].map(of), [Some(Owner(2)), Some(Owner(4)), None]);
    }
}
