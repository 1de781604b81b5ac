//! The scoreboard of lock libraries: a table of libraries and claims, and the evidence for each
//! violation, as Markdown, JSON and a page.

use std::{fmt::Write, ops::Range};

use serde::{Deserialize, Serialize};

use super::escape::escape;

mod cell;

pub use cell::{CameOut, Cell, Runs};

const STYLE: &str = include_str!("page.css");
const OWN_STYLE: &str = include_str!("site.css");

/// A table of the results: a row for each library, a column for each claim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scoreboard {
    /// The command line that made the scoreboard, for a reader who repeats it.
    pub command: String,
    /// The day, as in 2026-11-25.
    pub date: String,
    /// The server on which the libraries were tried, such as `Redis 7.0.15`.
    pub server: String,
    /// The other servers on which they were tried. A cell shows their outcomes where they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// The seeds of each cell.
    pub seeds: Range<u64>,
    /// The claims for which they were tried, in the order of the columns.
    pub claims: Vec<BoardClaim>,
    /// The libraries on trial, a row each.
    pub libraries: Vec<Tried>,
    /// Locks with a mistake, which the trial must find.
    pub controls: Vec<Tried>,
}

/// A claim for which libraries are tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardClaim {
    /// Its number, such as `T4`.
    pub id: String,
    /// The statement of the claim.
    pub says: String,
    /// The path of the scenario file that decides the claim.
    pub file: String,
}

/// A library on trial, with its result for each claim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tried {
    /// The name of the library in the list of peers.
    pub name: String,
    /// The library and its version.
    pub library: String,
    /// The driver below the library, with its version; empty if the peer reports none.
    #[serde(default)]
    pub driver: String,
    /// The day of the runs, as in 2026-11-25.
    pub date: String,
    /// The command of its peer.
    pub command: String,
    /// A note in the list of peers, such as a feature of the library that the peer does not use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The results, in the order of the claims.
    pub cells: Vec<Cell>,
}

impl Scoreboard {
    /// Returns the scoreboard as Markdown: the table, then the evidence for each finding.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let Scoreboard { command, date, .. } = self;
        let _ = writeln!(text, "# Scoreboard\n\nMade by `{command}` on {date}, with {}.\n", self.servers());
        text.push_str(&self.about_cells());
        text.push_str("\n\n");
        self.table(&mut text, &self.libraries);
        text.push('\n');
        for BoardClaim { id, says, file } in &self.claims {
            let _ = writeln!(text, "* **{id}** {says} (`{file}`)");
        }
        if self.notes().next().is_some() {
            text.push('\n');
            self.notes().for_each(|(library, note)| text.push_str(&format!("* {library}: {note}\n")));
        }
        text.push_str("\n## What was found\n\n");
        for tried in &self.libraries {
            self.findings(&mut text, tried);
        }
        if !self.controls.is_empty() {
            text.push_str("## Controls\n\nLocks with one mistake each, which the trial must find.\n\n");
            self.table(&mut text, &self.controls);
            text.push('\n');
            for tried in &self.controls {
                self.findings(&mut text, tried);
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    /// Describes a cell.
    fn about_cells(&self) -> String {
        let Range { start, end } = self.seeds;
        let each = match end.saturating_sub(start) {
            1 => "one seed".to_owned(),
            seeds => format!("{seeds} seeds ({start}..{end})"),
        };
        let share = if end.saturating_sub(start) > 1 {
            " *Violated 3/20* is a counterexample in 3 of 20 seeds; *holds* without a number is all of them. Percentages are the \
             interval of the share of violated seeds, with a confidence of 95 %."
        } else {
            ""
        };
        format!(
            "Each cell is {each} of the scenario file with the library's own process for every client, on real servers: faults are \
             injected, and the history is judged. Where that is undecided, or only a bound is missed, it is played up to three times, and \
             the last play counts. *Violated* is a counterexample; *holds* is no proof; *undecided* is neither.{share} **Bold** is what a \
             right lock does not show; – is what was not tried: the library has no feature for it, or its peer does not use it."
        )
    }

    /// Names the servers.
    fn servers(&self) -> String {
        if self.others.is_empty() {
            return self.server.clone();
        }
        format!("{}; outcomes on {} are shown where they differ", self.server, self.others.join(", "))
    }

    /// Returns the libraries that have a note, with it.
    fn notes(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.libraries.iter().chain(&self.controls);
        all.filter_map(|tried| Some((&*tried.library, &**tried.note.as_ref()?)))
    }

    fn table(&self, text: &mut String, tried: &[Tried]) {
        text.push_str("| library | driver | tried |");
        self.claims.iter().for_each(|claim| text.push_str(&format!(" {} |", claim.id)));
        text.push_str("\n| --- | --- | --- |");
        self.claims.iter().for_each(|_| text.push_str(" --- |"));
        text.push('\n');
        for tried in tried {
            let of_table = |text: &str| text.replace('|', "\\|");
            let (library, driver) = (of_table(&tried.library), of_table(&tried.driver));
            let _ = write!(text, "| {library} | {driver} | {} |", tried.date);
            tried.cells.iter().for_each(|cell| text.push_str(&format!(" {} |", cell.short())));
            text.push('\n');
        }
    }

    fn findings(&self, text: &mut String, tried: &Tried) {
        let found = self.claims.iter().zip(&tried.cells).filter(|(_, cell)| cell.is_finding());
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return;
        }
        let _ = writeln!(text, "### {}\n", tried.library);
        for (claim, cell) in found {
            let _ = writeln!(text, "* {} {}: {}", claim.id, cell.words(), cell.because());
            let again = cell.all_again();
            if !again.is_empty() {
                let _ = writeln!(text, "\n  ```\n  {}\n  ```", again.join("\n  "));
            }
        }
        text.push('\n');
    }

    /// Returns the scoreboard as one page of HTML, which needs no network.
    pub fn html(&self) -> String {
        let mut page = String::new();
        let _ = write!(
            page,
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Scoreboard of Redis locks</title><style>{STYLE}{OWN_STYLE}</style>\
             <main><h1>Scoreboard</h1><p>Made by <code>{}</code> on {}, with {}.</p><p>{}</p>",
            escape(&self.command),
            escape(&self.date),
            escape(&self.servers()),
            escape(&self.about_cells().replace('*', ""))
        );
        self.html_table(&mut page, "Libraries", &self.libraries);
        page.push_str("<h2>Claims</h2><dl>");
        for BoardClaim { id, says, file } in &self.claims {
            let (id, says, file) = (escape(id), escape(says), escape(file));
            let _ = write!(page, "<dt id=\"{id}\">{id}</dt><dd>{says} <code>{file}</code></dd>");
        }
        page.push_str("</dl>");
        for (library, note) in self.notes() {
            let _ = write!(page, "<p>{}: {}</p>", escape(library), escape(note));
        }
        self.html_table(&mut page, "Controls", &self.controls);
        page.push_str("<h2>What was found</h2>");
        for tried in self.libraries.iter().chain(&self.controls) {
            let found: Vec<_> =
                self.claims.iter().zip(&tried.cells).filter(|(_, cell)| cell.is_finding()).collect();
            if found.is_empty() {
                continue;
            }
            let _ = write!(page, "<h3>{}</h3><ul>", escape(&tried.library));
            for (claim, cell) in found {
                let (id, word) = (escape(&claim.id), escape(&cell.words()));
                let (because, again) = (escape(&cell.because()), escape(&cell.all_again().join("\n")));
                let _ = write!(page, "<li>{id} {word}: {because}<br><code>{again}</code></li>");
            }
            page.push_str("</ul>");
        }
        page.push_str("</main></html>\n");
        page
    }

    fn html_table(&self, page: &mut String, heading: &str, tried: &[Tried]) {
        if tried.is_empty() {
            return;
        }
        let _ = write!(page, "<h2>{heading}</h2><table class=\"board\"><thead><tr><th>library</th>");
        for claim in &self.claims {
            let (id, says) = (escape(&claim.id), escape(&claim.says));
            let _ = write!(page, "<th><a href=\"#{id}\" title=\"{says}\">{id}</a></th>");
        }
        page.push_str("</tr></thead><tbody>");
        for tried in tried {
            let (library, driver, date) = (&tried.library, &tried.driver, &tried.date);
            let with = if driver.is_empty() { String::new() } else { format!("{driver}, ") };
            let (library, with, date) = (escape(library), escape(&with), escape(date));
            let _ = write!(page, "<tr><th>{library}<br><small>{with}{date}</small></th>");
            for cell in &tried.cells {
                let (class, word) = (cell.class(), escape(&cell.words()));
                let _ =
                    write!(page, "<td class=\"{class}\" title=\"{}\">{word}</td>", escape(&cell.because()));
            }
            page.push_str("</tr>");
        }
        page.push_str("</tbody></table>");
    }
}

#[cfg(test)]
mod tests {
    use lockstorm_world::time::True;

    use super::*;
    use crate::judge::history::{CallKind, FailedCalls};

    fn failed() -> FailedCalls {
        let (call, first_at) = (CallKind::Release, True::from_millis(5_000));
        FailedCalls { client: "c1".into(), call, count: 2, first_at, text: "no reply".into() }
    }

    fn board() -> Scoreboard {
        let cell = |came_out, expected, evidence: &str| Cell {
            came_out,
            expected,
            runs: Runs::one(came_out),
            violated: Runs::one(came_out).interval(),
            evidence: vec![evidence.to_owned()],
            failed_calls: if evidence == "late" { vec![failed()] } else { Vec::new() },
            again: "lockstorm trial --peer \"p <x>\" 'a.toml' --seed 0".to_owned(),
            plays: 1,
            elsewhere: Vec::new(),
        };
        let tried = |library: &str, cells| {
            let note = (library == "a|b 1.0").then(|| "It is not <asked> to renew.".to_owned());
            let (name, date) = ("x".into(), "2026-11-25".into());
            let driver = if library == "c" { "driver 1.2".to_owned() } else { String::new() };
            Tried { name, library: library.into(), driver, date, command: "p <x>".into(), note, cells }
        };
        let claim =
            |id: &str| BoardClaim { id: id.into(), says: "One & only.".into(), file: "a.toml".into() };
        Scoreboard {
            command: "lockstorm scoreboard peers.toml".into(),
            date: "2026-11-25".into(),
            server: "Redis 7.0.15".into(),
            others: Vec::new(),
            seeds: 0..1,
            claims: vec![claim("T1"), claim("T2")],
            libraries: vec![
                tried(
                    "a|b 1.0",
                    vec![cell(CameOut::Holds, true, "fine"), cell(CameOut::Violated, true, "known")],
                ),
                tried(
                    "c",
                    vec![cell(CameOut::Undecided, false, "late"), cell(CameOut::DoesNotApply, true, "none")],
                ),
            ],
            controls: vec![tried(
                "d",
                vec![cell(CameOut::Violated, false, "l1: <two>"), cell(CameOut::Holds, true, "")],
            )],
        }
    }

    #[test]
    fn a_table_and_the_evidence() {
        insta::assert_snapshot!(board().markdown());
    }

    /// A reader of the table sees on which server a library does otherwise.
    #[test]
    fn a_cell_shows_the_servers_on_which_it_differs() {
        let mut board = board();
        board.others = vec!["Valkey 9.1.2".into()];
        let cell = &mut board.libraries[0].cells[0];
        let other = Cell { came_out: CameOut::Violated, expected: false, ..cell.clone() };
        let same = cell.clone();
        cell.elsewhere = vec![("Valkey 9.1.2".into(), other), ("Redis 8.2.3".into(), same)];
        let (text, page) = (board.markdown(), board.html());
        assert!(
            text.contains("with Redis 7.0.15; outcomes on Valkey 9.1.2 are shown where they differ."),
            "{text}"
        );
        assert!(text.contains("| holds, **violated** on Valkey 9.1.2 | violated |"), "{text}");
        assert!(text.contains("* T1 holds, violated on Valkey 9.1.2: fine On Valkey 9.1.2: fine"), "{text}");
        assert!(page.contains(">holds, violated on Valkey 9.1.2</td>"), "{page}");
        assert!(!text.contains("on Redis 8.2.3 |") && !page.contains("on Redis 8.2.3<"), "{text}");
    }

    /// `scoreboard --keep` reads what an earlier command wrote.
    #[test]
    fn a_board_is_read_as_it_was_written() {
        let written = serde_json::to_value(board()).expect("it is JSON");
        let read: Scoreboard = serde_json::from_value(written.clone()).expect("it is a scoreboard");
        assert_eq!(serde_json::to_value(read).expect("it is JSON"), written);
    }

    #[test]
    fn the_page_escapes_what_comes_from_others() {
        let page = board().html();
        assert!(page.contains("l1: &lt;two&gt;") && page.contains("One &amp; only."), "{page}");
        assert!(!page.contains("<two>") && !page.contains("<x>"), "{page}");
    }
}
