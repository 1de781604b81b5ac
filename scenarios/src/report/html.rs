//! One self-contained page about a run: verdicts in words, and a timeline to look into. It needs no network; everything
//! that comes from a history is escaped.

use std::fmt::Write;

use super::{Entry, Report, Standing, drawing::Drawing, escape::escape, timeline};
use crate::{
    checker::Evidence,
    verdict::{Match, Verdict},
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// How many lines of the text timeline the page carries.
const LINES: usize = 2_000;

impl Report<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let header = &self.history.header;
        let evidence = Evidence::of(self.history);
        let drawing = Drawing::of(&evidence);
        let (class, word) = match self.standing() {
            Standing::AsExpected => ("as-expected", "as expected"),
            Standing::Otherwise => ("otherwise", "not as expected"),
            Standing::Undecided => ("undecided", "undecided"),
            Standing::NothingExpected => ("nothing", "nothing expected"),
        };
        let title = escape(&header.scenario);
        let mut page = String::new();
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}, seed {seed}</title>\
             <style>\n{STYLE}</style></head><body>\n\
             <header><h1>{title}</h1><span class=\"pill {class}\">{word}</span>\
             <span class=\"facts\">seed {seed} · {engine} engine · {end} of true time</span></header>\n",
            seed = header.seed,
            engine = escape(&header.engine),
            end = crate::checker::words::instant(header.end),
        );
        self.again(&mut page);
        page.push_str("<h2>Verdicts</h2>\n<table class=\"verdicts\">\n");
        let (aside, told): (Vec<&Entry>, Vec<&Entry>) =
            self.entries.iter().partition(|entry| is_aside(entry));
        for entry in told {
            row(&mut page, entry);
        }
        page.push_str("</table>\n");
        if !aside.is_empty() {
            let names: Vec<&str> = aside.iter().map(|entry| entry.finding.checker).collect();
            let names = escape(&names.join(", "));
            let _ = writeln!(
                page,
                "<details class=\"aside\"><summary>neither expected nor decided: {names}</summary>\
                 <table class=\"verdicts\">"
            );
            for entry in aside {
                row(&mut page, entry);
            }
            page.push_str("</table></details>\n");
        }
        page.push_str(
            "<div class=\"bar-line\"><h2>Timeline</h2>\
             <button id=\"in\">+</button><button id=\"out\">−</button><button id=\"all\">whole run</button>\
             <span class=\"facts\">wheel zooms, dragging moves, a double click shows all; hover for details</span></div>\n",
        );
        page.push_str(&drawing.svg);
        let lines = escape(&timeline(self.history, LINES));
        let _ = writeln!(
            page,
            "<details><summary>What happened, line by line</summary><pre>{lines}</pre></details>"
        );
        // In a script `<` could end it: JSON has another way to write it.
        let data = drawing.data.to_string().replace('<', "\\u003c");
        let _ = write!(
            page,
            "<script type=\"application/json\" id=\"run\">{data}</script>\n<script>\n{SCRIPT}</script>\n"
        );
        page.push_str("</body></html>\n");
        page
    }

    /// How to have it again, and how to know that it is the same.
    fn again(&self, page: &mut String) {
        let header = &self.history.header;
        let rows = [("have it again", &header.replay), ("fingerprint", &header.fingerprint)];
        if rows.iter().all(|(_, text)| text.is_empty()) {
            return;
        }
        page.push_str("<div class=\"again\">");
        for (name, text) in rows.iter().filter(|(_, text)| !text.is_empty()) {
            let _ = write!(page, "<span>{name}</span><code>{}</code>", escape(text));
        }
        page.push_str("</div>\n");
    }
}

/// Whether a finding is of no interest: it is undecided, and no verdict was expected.
fn is_aside(entry: &Entry) -> bool {
    entry.expected.is_none() && matches!(entry.finding.verdict, Verdict::Undecided { .. })
}

fn row(page: &mut String, entry: &Entry) {
    let finding = &entry.finding;
    let word = finding.verdict.word();
    let expected = match entry.matched() {
        None => String::new(),
        Some(Match::AsExpected) => "as expected".to_owned(),
        Some(Match::Undecided(_)) => "not decided".to_owned(),
        Some(Match::Otherwise(because)) => format!("<span class=\"off\">{}</span>", escape(&because)),
    };
    let _ = write!(
        page,
        "<tr><td title=\"{}\">{}</td><td><span class=\"pill {word}\">{word}</span></td><td>{expected}</td><td>{}",
        escape(finding.question),
        escape(finding.checker),
        escape(finding.verdict.sentence()),
    );
    if let Some(witness) = finding.verdict.witness() {
        let (from, until) = (witness.from.as_micros(), witness.until.as_micros());
        let _ = write!(page, " <button data-show=\"{from} {until}\">show</button>");
        if !witness.story.is_empty() {
            page.push_str("<ol>");
            for line in &witness.story {
                let _ = write!(page, "<li>{}</li>", escape(line));
            }
            page.push_str("</ol>");
        }
    }
    let measures: Vec<String> = finding
        .measures
        .iter()
        .map(|measure| format!("{} {}", measure.name.replace('_', " "), measure.quantity))
        .collect();
    let measures = if is_aside(entry) { String::new() } else { measures.join(" · ") };
    let _ = writeln!(page, "<div class=\"measures\">{}</div></td></tr>", escape(&measures));
}
