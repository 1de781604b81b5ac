//! Maps names in Redis to owners.

use std::collections::BTreeMap;

use crate::judge::history::{Host, Owner};

/// A line of work of a client. It requests, holds and releases locks as an owner of its own, one
/// operation at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line(pub u32);

impl Line {
    /// The line of work that every client has.
    pub(crate) const FIRST: Line = Line(1);

    /// Returns the owner's name for this line of work in the production client's form
    /// `client:line`. [`History::process`](crate::judge::history::History::process) is the inverse.
    pub(crate) fn owner_of(self, client_id: &str) -> String {
        format!("{client_id}:{}", self.0)
    }
}

/// The owners that names in Redis stand for. An algorithm may write a new name for every
/// acquisition; the line of work is still the same.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The current owner of each line of work.
    lines: BTreeMap<(Host, Line), Owner>,
    /// The owner for whom each client writes a name.
    written: BTreeMap<Host, BTreeMap<Box<str>, Owner>>,
    /// The owner of each connection, by client and port, for clients with one connection per line
    /// of work.
    connections: BTreeMap<(Host, u16), Owner>,
    /// The owner that was last granted a lock under a name. Before any grant, the first owner that
    /// used the name.
    bound: BTreeMap<Box<str>, Owner>,
}

impl Names {
    /// Makes `owner` the line of work's current owner, and `name` its name.
    pub(super) fn begin(&mut self, client: Host, line: Line, name: &str, owner: Owner) {
        self.lines.insert((client, line), owner);
        self.write(client, name, owner);
    }

    /// Returns the current owner of a client's line of work. For a line that has not begun, returns
    /// that of the first line.
    pub(super) fn current(&self, client: Host, line: Line) -> Option<Owner> {
        let line = self.lines.get(&(client, line));
        line.or_else(|| self.lines.get(&(client, Line::FIRST))).copied()
    }

    /// Returns the line of work whose current owner this is.
    pub(super) fn line_of(&self, client: Host, owner: Owner) -> Option<Line> {
        let mut lines = self.lines.range((client, Line(0))..=(client, Line(u32::MAX)));
        lines.find(|(_, current)| **current == owner).map(|((_, line), _)| *line)
    }

    /// Records that a client writes this name for this owner.
    pub(super) fn write(&mut self, client: Host, name: &str, owner: Owner) {
        self.written.entry(client).or_default().insert(name.into(), owner);
        self.bound.entry(name.into()).or_insert(owner);
    }

    /// Returns the owner for whom a client writes this name.
    pub(super) fn written(&self, client: Host, name: &str) -> Option<Owner> {
        self.written.get(&client)?.get(name).copied()
    }

    /// Records that a connection from this port of a client belongs to its line of work.
    pub(super) fn connect(&mut self, client: Host, line: Line, port: u16) {
        if let Some(owner) = self.current(client, line) {
            self.connections.insert((client, port), owner);
        }
    }

    /// Returns the owner of the connection from this port of a client.
    pub(super) fn of_connection(&self, client: Host, port: u16) -> Option<Owner> {
        self.connections.get(&(client, port)).copied()
    }

    /// Records that a lock was granted to this owner under this name.
    pub(super) fn bind(&mut self, name: &str, owner: Owner) {
        self.bound.insert(name.into(), owner);
    }

    /// Returns the owner that a name stands for if its writer is unknown.
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
        // A new process on the host is another owner. The names that the previous process wrote
        // still stand for the previous owner.
        names.begin(c1, Line::FIRST, "c1.2:1", Owner(3));
        assert_eq!(names.current(c1, Line::FIRST), Some(Owner(3)));
        assert_eq!(names.written(c1, "c1:1"), Some(Owner(0)));
        assert_eq!(names.current(c2, Line(7)), Some(Owner(2)));
        // Earlier connections still belong to the previous owner.
        names.connect(c2, Line::FIRST, 50_000);
        names.begin(c2, Line::FIRST, "c2.2:1", Owner(4));
        names.connect(c2, Line::FIRST, 50_001);
        let of = |port| names.of_connection(c2, port);
        assert_eq!([50_000, 50_001, 50_002].map(of), [Some(Owner(2)), Some(Owner(4)), None]);
    }
}
