//! Writes steps and the real server's replies as a transcript in the format of `tests/parity`.

use std::fmt::Write as _;

use crate::{
    rule::Rule,
    servers::Received,
    steps::{Step, name},
    wire::{Kind, Wire},
};

/// The lines of a transcript.
#[derive(Default)]
pub(crate) struct Record {
    text: String,
    /// Replies on other connections; they follow the replies on the step's own.
    later: String,
}

impl Record {
    pub(crate) fn step(&mut self, step: &Step) {
        let later = std::mem::take(&mut self.later);
        let _ = writeln!(self.text, "{later}{}", step.line());
    }

    /// Writes the frames of a connection below the step that is being played.
    pub(crate) fn answers(&mut self, step: &Step, conn: usize, answers: &[Received], rules: &[Rule]) {
        let own = step.conn() == Some(conn);
        for (at, answer) in answers.iter().enumerate() {
            let rule = rules.get(at).unwrap_or(&Rule::Exact);
            let mut lines = Vec::new();
            match answer {
                Received::Reply(reply) => write(reply, rule, 0, &mut lines),
                Received::Closed => lines.push("closed".into()),
                Received::Nothing => continue,
            }
            let (out, prefix) = if own {
                (&mut self.text, String::new())
            } else {
                (&mut self.later, format!("{}< ", name(conn)))
            };
            let _ = writeln!(out, "{prefix}{}", lines.join("\n"));
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text + &self.later
    }
}

/// Writes a reply with wildcards for the parts that its rule leaves open.
fn write(reply: &Wire, rule: &Rule, indent: usize, out: &mut Vec<String>) {
    let mut open = |line: String| out.push(format!("{:indent$}{line}", ""));
    match (rule, reply) {
        (_, Wire::Error(_)) => reply.lines(indent, out),
        (Rule::IfTable(rule), _) => write(reply, rule, indent, out),
        (Rule::Each(rule), Wire::Items(kind, items)) => {
            open(format!("{}{}", kind.mark(), items.len() / kind.width()));
            items.iter().for_each(|item| write(item, rule, indent + 2, out));
        }
        (Rule::Near(by), Wire::Integer(n)) if *n > 0 => open(format!(":~{n}±{by}")),
        (
            Rule::Shape | Rule::Drawn | Rule::Among { .. } | Rule::Kind | Rule::Lines | Rule::Refused,
            Wire::Items(..) | Wire::Bulk(_) | Wire::Integer(_),
        ) => open("...".into()),
        (Rule::Unordered { .. }, Wire::Items(Kind::Array, items)) => {
            open(format!("*~{}", items.len()));
            items.iter().for_each(|item| item.lines(indent + 2, out));
        }
        (Rule::Unordered { .. }, Wire::Items(Kind::Map, items)) => {
            open(format!("%~{}", items.len() / 2));
            items.iter().for_each(|item| item.lines(indent + 2, out));
        }
        (Rule::Scan, Wire::Items(Kind::Array, items)) if items.len() == 2 => {
            open("*2".into());
            items[0].lines(indent + 2, out);
            write(&items[1], &Rule::Unordered { width: 1 }, indent + 2, out);
        }
        (Rule::Exec(rules), Wire::Items(kind, items)) => {
            open(format!("{}{}", kind.mark(), items.len() / kind.width()));
            for (at, item) in items.iter().enumerate() {
                write(item, rules.get(at).unwrap_or(&Rule::Exact), indent + 2, out);
            }
        }
        _ => reply.lines(indent, out),
    }
}
