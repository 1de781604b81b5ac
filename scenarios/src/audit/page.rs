//! The outcome of an audit as one HTML page, without scripts and without a network.

use std::fmt::{Result, Write};

use super::{
    capture::Times,
    engine::UnknownScript,
    findings::{Change, Finding, Unseen},
    locks::TENTHS,
    names::length,
    summary::{BY_EVENTS, LockRow, Quantiles, Summary, lasted},
};
use crate::report::escape::escape;

const STYLE: &str = include_str!("../report/page.css");
const OWN_STYLE: &str = include_str!("page.css");

/// The most rows of a table; `--json` has all.
const ROWS_MAX: usize = 1_000;

/// A table with more columns than this has narrow ones.
const COLUMNS_MAX: usize = 8;

/// The tenth of the lease from which the bar of renewals has another color.
const LATE_TENTH: usize = 8;

impl Summary {
    /// Returns the outcome as a page without scripts.
    pub fn html(&self) -> String {
        let mut page = String::new();
        // Writing to a string does not fail.
        let _ = self.write_page(&mut page);
        page
    }

    fn write_page(&self, to: &mut String) -> Result {
        let count = self.findings.len() as u64 + self.more_findings;
        let (class, outcome) = match count {
            0 => ("good", "no findings".to_owned()),
            1 => ("bad", "1 finding".to_owned()),
            _ => ("bad", format!("{count} findings")),
        };
        write!(
            to,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>Audit of locks: {outcome}</title>\
             <style>\n{STYLE}{OWN_STYLE}</style></head><body>\n\
             <header><h1>Audit of locks</h1><span class=\"{class}\">{outcome}</span>\
             <span class=\"facts\">{} and {}; times are UTC</span></header>\n",
            counted(self.nodes.len(), "node"),
            counted(self.locks.len(), "lock"),
        )?;
        self.write_nodes(to)?;
        self.write_findings_of_page(to)?;
        self.write_notices(to)?;
        self.write_locks_of_page(to)?;
        self.write_renewals(to)?;
        self.write_rest(to)?;
        to.push_str("</body></html>\n");
        Ok(())
    }

    fn write_nodes(&self, to: &mut String) -> Result {
        let rows = self.nodes.iter().take(ROWS_MAX).map(|node| {
            let until = node.until.as_deref().unwrap_or("-");
            let exactness = match node.times {
                Times::Exact if node.by_events => BY_EVENTS,
                Times::Exact => "",
                Times::Seconds => "times are exact to the second",
                Times::Unknown => "times are unknown: findings that need them are not made",
            };
            vec![
                cell("name", &node.name),
                cell("number", node.commands),
                cell("", node.from.as_deref().unwrap_or("-")),
                cell("", until),
                cell("", if node.from.is_some() { length(node.lasted_us) } else { "-".to_owned() }),
                cell("wide", exactness),
            ]
        });
        let head =
            [("node", ""), ("commands", "number"), ("from", ""), ("until", ""), ("length", ""), ("", "")];
        to.push_str("<h2>What was read</h2>\n");
        sheet(to, &head, rows, self.nodes.len())
    }

    fn write_findings_of_page(&self, to: &mut String) -> Result {
        to.push_str("<h2>Findings</h2>\n");
        if self.findings.is_empty() && self.more_findings == 0 {
            to.push_str("<p>None: no command proves that a lock was broken.</p>\n");
        }
        for finding in self.findings.iter().take(ROWS_MAX) {
            self.write_card(to, finding)?;
        }
        let left = self.findings.len().saturating_sub(ROWS_MAX) as u64 + self.more_findings;
        if left > 0 {
            writeln!(to, "<p>And {left} more.</p>")?;
        }
        Ok(())
    }

    fn write_card(&self, to: &mut String, finding: &Finding) -> Result {
        let Finding { kind, node, db, lock, owner, says, times, evidence, calls, .. } = finding;
        let node = if self.nodes.len() > 1 { format!(" on {}", escape(node)) } else { String::new() };
        let db = if *db == 0 { String::new() } else { format!(", database {db}") };
        let times = if *times > 1 { format!(", {times} times") } else { String::new() };
        writeln!(
            to,
            "<div class=\"finding\"><h3>{}: {}</h3><p class=\"key\">owner {}{node}{db}{times}</p><p>{}</p>",
            kind.title(),
            escape(lock),
            escape(owner),
            escape(says)
        )?;
        let first_us = calls.first().map_or(0, |call| call.at_us);
        let after = |at: usize| match calls.get(at) {
            Some(call) if at > 0 && first_us != 0 && call.at_us != 0 => {
                let sign = if call.at_us < first_us { "-" } else { "+" };
                format!("{sign}{}", length(call.at_us - first_us))
            }
            _ => String::new(),
        };
        let rows = evidence.iter().enumerate().map(|(at, one)| {
            let unit = one.unit.name();
            vec![
                cell("", &one.at),
                cell("number", after(at)),
                cell("", &one.client),
                cell("", &one.role),
                cell("wide mono", &one.command),
                cell("", format!("{unit} {}", one.line)),
            ]
        });
        let head =
            [("time", ""), ("later", "number"), ("client", ""), ("part", ""), ("command", ""), ("place", "")];
        sheet(to, &head, rows, evidence.len())?;
        let claim = kind.claim().map(|claim| {
            format!(" A scenario shows how it happens: <code>lockstorm claims {}</code>", escape(claim))
        });
        writeln!(
            to,
            "<p class=\"advice\">{}{}</p></div>",
            escape(kind.help()),
            claim.as_deref().unwrap_or_default()
        )
    }

    fn write_notices(&self, to: &mut String) -> Result {
        if self.notices.is_empty() {
            return Ok(());
        }
        to.push_str("<h2>Notices, which prove no fault</h2>\n");
        let rows = self.notices.iter().take(ROWS_MAX).map(|notice| {
            let Finding { at, lock, kind, says, times, node, .. } = notice;
            vec![
                cell("", at),
                cell("name", self.named(node, notice.db, lock)),
                cell("", kind.title()),
                cell("wide", format!("{says}. {}", kind.help())),
                cell("number", times),
            ]
        });
        let head = [("time", ""), ("lock", ""), ("notice", ""), ("", ""), ("times", "number")];
        sheet(to, &head, rows, self.notices.len())
    }

    fn write_locks_of_page(&self, to: &mut String) -> Result {
        to.push_str("<h2>Locks</h2>\n");
        if self.locks.is_empty() {
            to.push_str("<p>No lock was seen.</p>\n");
            return Ok(());
        }
        let dash = || "-".to_owned();
        let rows = self.locks.iter().take(ROWS_MAX).map(|row| {
            let time = |quantiles: Option<Quantiles>, of: fn(&Quantiles) -> u64| {
                cell("number", quantiles.map_or_else(dash, |one| lasted(of(&one))))
            };
            vec![
                cell("name", self.named(&row.node, row.db, &row.lock)),
                cell("", row.origin()),
                cell("", row.holder.as_deref().unwrap_or("-")),
                cell("number", row.left_ms.map_or_else(dash, |ms| length(ms.saturating_mul(1_000)))),
                cell("number", row.waiters),
                cell("number", row.grants),
                cell("number", row.per_minute.map_or_else(dash, |rate| rate.to_string())),
                cell("number", row.refusals),
                cell("number", row.renewals),
                cell("number", row.expiries),
                time(row.holds, |one| one.p50_us),
                time(row.holds, |one| one.p99_us),
                time(row.waits, |one| one.p50_us),
                time(row.waits, |one| one.p99_us),
            ]
        });
        let head = [
            ("lock", ""),
            ("library", ""),
            ("holder", ""),
            ("lease left", "number"),
            ("waiters", "number"),
            ("grants", "number"),
            ("per minute", "number"),
            ("refused", "number"),
            ("renewed", "number"),
            ("expired", "number"),
            ("hold p50", "number"),
            ("p99", "number"),
            ("wait p50", "number"),
            ("p99", "number"),
        ];
        sheet(to, &head, rows, self.locks.len())
    }

    /// Writes the renewals of all locks by the share of the lease that had passed.
    fn write_renewals(&self, to: &mut String) -> Result {
        let mut sums = [0_u64; TENTHS];
        for LockRow { lateness, .. } in &self.locks {
            sums.iter_mut().zip(lateness).for_each(|(sum, count)| *sum += count);
        }
        let Some(most) = sums.iter().copied().max().filter(|most| *most > 0) else { return Ok(()) };
        to.push_str("<h2>Renewals by the share of the lease that had passed</h2>\n");
        let rows = sums.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| {
            let share = match at + 1 == TENTHS {
                true => "over 100 %".to_owned(),
                false => format!("{} to {} %", at * 10, at * 10 + 10),
            };
            let late = if at >= LATE_TENTH { " late" } else { "" };
            let bar = format!(
                "<td class=\"wide\"><i class=\"bar{late}\" style=\"width:{}%\"></i></td>",
                (u128::from(*count) * 100).div_ceil(u128::from(most))
            );
            vec![cell("", share), cell("number", count), bar]
        });
        let head = [("share", ""), ("renewals", "number"), ("", "")];
        sheet(to, &head, rows, TENTHS)
    }

    fn write_rest(&self, to: &mut String) -> Result {
        if !self.changes.is_empty() {
            to.push_str("<h2>Changes of nodes</h2>\n");
            let rows = self.changes.iter().take(ROWS_MAX).map(|change| {
                let Change { at, node, what } = change;
                vec![cell("", at), cell("name", node), cell("wide", what)]
            });
            sheet(to, &[("time", ""), ("node", ""), ("", "")], rows, self.changes.len())?;
        }
        if !self.unseen.is_empty() {
            to.push_str("<h2>Not seen for lack of rights</h2>\n");
            let rows = self.unseen.iter().take(ROWS_MAX).map(|one| {
                let Unseen { node, lacks, refusal, what } = one;
                vec![cell("name", node), cell("mono", lacks), cell("wide mono", refusal), cell("wide", what)]
            });
            let head = [("node", ""), ("right", ""), ("refusal", ""), ("", "")];
            sheet(to, &head, rows, self.unseen.len())?;
        }
        if !self.unknown_scripts.is_empty() {
            to.push_str("<h2>Scripts that changed locks and named no owner</h2>\n");
            let rows = self.unknown_scripts.iter().take(ROWS_MAX).map(|one| {
                let UnknownScript { script, calls, commands, keys, .. } = one;
                let keys = keys.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                let commands = commands.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                vec![
                    cell("mono", script),
                    cell("name", keys),
                    cell("wide mono", commands),
                    cell("number", calls),
                ]
            });
            let head = [("script", ""), ("locks", ""), ("commands", ""), ("calls", "number")];
            sheet(to, &head, rows, self.unknown_scripts.len())?;
        }
        if self.problems.count > 0 {
            writeln!(
                to,
                "<h2>Places that could not be read</h2>\n<p>{}; the rest was read.</p>\n<ul>",
                counted(usize::try_from(self.problems.count).unwrap_or(usize::MAX), "place")
            )?;
            for problem in self.problems.first.iter().take(ROWS_MAX) {
                writeln!(to, "<li>{}</li>", escape(&problem.to_string()))?;
            }
            to.push_str("</ul>\n");
        }
        Ok(())
    }

    /// Returns a lock's name with its node and database, where they say something.
    fn named(&self, node: &str, db: u32, lock: &str) -> String {
        let node = if self.nodes.len() > 1 { format!("{node} ") } else { String::new() };
        let db = if db == 0 { String::new() } else { format!(" (db {db})") };
        format!("{node}{lock}{db}")
    }
}

/// Returns a number with a noun in singular or plural.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn cell(class: &str, text: impl ToString) -> String {
    let text = escape(&text.to_string());
    if class.is_empty() { format!("<td>{text}</td>") } else { format!("<td class=\"{class}\">{text}</td>") }
}

/// Writes a table. `head` has the name and the class of each column, and `count` is the number of
/// rows without a limit.
fn sheet(
    to: &mut String,
    head: &[(&str, &str)],
    rows: impl Iterator<Item = Vec<String>>,
    count: usize,
) -> Result {
    let tight = if head.len() > COLUMNS_MAX { " tight" } else { "" };
    write!(to, "<div class=\"scroll\"><table class=\"sheet{tight}\"><thead><tr>")?;
    for (name, class) in head {
        write!(to, "<th class=\"{class}\">{name}</th>")?;
    }
    to.push_str("</tr></thead><tbody>\n");
    for row in rows {
        writeln!(to, "<tr>{}</tr>", row.concat())?;
    }
    to.push_str("</tbody></table></div>\n");
    if count > ROWS_MAX {
        writeln!(to, "<p>And {} more: --json lists them.</p>", count - ROWS_MAX)?;
    }
    Ok(())
}
