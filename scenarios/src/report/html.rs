//! One self-contained page about a run: verdicts in words, and a timeline to zoom into. It needs no
//! network, and escapes everything that comes from a history.

use std::fmt::Write;

use super::{
    Besides, Causes, Entry, Report, Standing, chain, drawing::Drawing, escape::escape, failed, timeline,
};
use crate::judge::{
    checker::{Evidence, evidence::words},
    history::History,
    verdict::{Match, Verdict, Witness},
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The most lines of the text timeline on the page.
const LINES: usize = 2_000;

impl Report<'_> {
    /// Returns the page as HTML. Styles and scripts are inside it.
    pub fn html(&self, besides: Besides<'_>) -> String {
        let Besides { plan, causes, pictures } = besides;
        let header = &self.history.header;
        let evidence = Evidence::of(self.history);
        let focus = self.focus();
        let shown = focus.map(|witness| (witness.from, witness.until));
        let drawing = Drawing::of(&evidence, self.records, shown);
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
             <span class=\"facts\">seed {seed} · {engine} · {end} of true time</span></header>\n",
            seed = header.seed,
            engine = escape(&header.engine_in_words()),
            end = words::instant(header.end),
        );
        // At the top are the subject of the run beside its verdicts, and the timeline. The
        // explanations are below.
        page.push_str("<div class=\"first\">\n");
        self.subject_matter(&mut page);
        self.glance(&mut page);
        page.push_str(
            "</div>\n<div class=\"bar-line\"><h2>Timeline</h2>\
             <button id=\"in\" title=\"key +\">+</button><button id=\"out\" title=\"key -\">−</button>\
             <button id=\"witness\" title=\"key w\">witness</button><button id=\"all\" title=\"key 0\">whole run</button>\
             <span class=\"facts\">wheel, + and − zoom · dragging, ← and → move · w next witness · 0 whole run · \
             hover for details</span></div>\n",
        );
        page.push_str(&drawing.legend);
        page.push_str(&drawing.svg);
        self.again(&mut page);
        page.push_str("<h2>Verdicts</h2>\n<table class=\"verdicts\">\n");
        let (aside, told): (Vec<&Entry>, Vec<&Entry>) =
            self.entries.iter().partition(|entry| is_aside(entry));
        for entry in told {
            row(&mut page, self.history, entry, focus);
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
                row(&mut page, self.history, entry, focus);
            }
            page.push_str("</table></details>\n");
        }
        page.push_str(&failed::html(&self.history.failed_calls()));
        if let Some(causes) = causes {
            causes_of(&mut page, causes);
        }
        for picture in pictures {
            let title = escape(&picture.title);
            let _ = writeln!(page, "<h2>{title}</h2>\n<div class=\"picture\">{}</div>", picture.svg);
        }
        let lines = escape(&timeline(self.history, LINES));
        let _ = writeln!(
            page,
            "<details><summary>What happened, line by line</summary><pre>{lines}</pre></details>"
        );
        if !plan.is_empty() {
            let plan = escape(plan);
            let _ = writeln!(
                page,
                "<details><summary>The plan, with what the seed has drawn</summary><pre>{plan}</pre></details>"
            );
        }
        // A `<` could end the script: write it as an escape of JSON.
        let data = drawing.data.to_string().replace('<', "\\u003c");
        let _ = write!(
            page,
            "<script type=\"application/json\" id=\"run\">{data}</script>\n<script>\n{SCRIPT}</script>\n"
        );
        page.push_str("</body></html>\n");
        page
    }

    /// Writes the subject of the run: the claim that it tries, and the description of its scenario.
    fn subject_matter(&self, page: &mut String) {
        let header = &self.history.header;
        if header.claim.is_none() && header.about.is_empty() {
            return;
        }
        page.push_str("<div class=\"subject\">\n");
        if let Some(claim) = &header.claim {
            let by =
                if claim.at.is_empty() { claim.by.clone() } else { format!("{}, {}", claim.by, claim.at) };
            let _ = writeln!(
                page,
                "<blockquote class=\"claim\"><p>{}</p><footer>claim {} · {}</footer></blockquote>",
                escape(&claim.says),
                escape(&claim.id),
                escape(&by)
            );
        }
        if !header.about.is_empty() {
            let _ = writeln!(page, "<p class=\"about\">{}</p>", escape(&header.about));
        }
        page.push_str("</div>\n");
    }

    /// Writes the verdicts that matter, a line each, with links to their stories: the ones with an
    /// expectation and the violated ones; if there is no expectation, also the ones that hold.
    /// Those that are not as expected come first.
    fn glance(&self, page: &mut String) {
        let is_nothing_expected = self.standing() == Standing::NothingExpected;
        let mut shown: Vec<&Entry> = self.entries.iter().collect();
        shown.retain(|entry| match entry.finding.verdict {
            Verdict::Violated { .. } => true,
            Verdict::Holds { .. } => entry.expected.is_some() || is_nothing_expected,
            Verdict::Undecided { .. } => entry.expected.is_some(),
        });
        if shown.is_empty() {
            return;
        }
        shown.sort_by_key(|entry| !matches!(entry.matched(), Some(Match::Otherwise(_))));
        // With more than three, each keeps to one line; words that do not fit are in the table
        // below.
        let many = if shown.len() > 3 { " many" } else { "" };
        let _ = writeln!(page, "<table class=\"glance{many}\">");
        for entry in shown {
            let finding = &entry.finding;
            let (name, sentence) = (escape(finding.checker), escape(finding.verdict.sentence()));
            let _ = write!(
                page,
                "<tr><td><a href=\"#verdict-{name}\" title=\"{}\">{name}</a></td><td>{}</td><td>{}</td>\
                 <td><span class=\"says\" title=\"{sentence}\">{sentence}</span></td><td>",
                escape(finding.question),
                pill(&finding.verdict),
                matched(entry),
            );
            if let Some(witness) = finding.verdict.witness() {
                show(page, witness);
            }
            page.push_str("</td></tr>\n");
        }
        page.push_str("</table>\n");
    }

    /// Returns the witness that the page shows at first: of a verdict that is not as expected, or
    /// else of one with an expectation, or else of any.
    fn focus(&self) -> Option<&Witness> {
        let otherwise =
            self.entries.iter().filter(|entry| matches!(entry.matched(), Some(Match::Otherwise(_))));
        let expected = self.entries.iter().filter(|entry| entry.expected.is_some());
        otherwise.chain(expected).chain(self.entries).find_map(|entry| entry.finding.verdict.witness())
    }

    /// Writes the command that runs it again, and the fingerprint that identifies the run.
    fn again(&self, page: &mut String) {
        let header = &self.history.header;
        let rows = [("have it again", &header.replay), ("fingerprint", &header.fingerprint)];
        if rows.iter().all(|(_, text)| text.is_empty()) {
            return;
        }
        page.push_str("<div class=\"again\">");
        for (name, text) in rows.iter().filter(|(_, text)| !text.is_empty()) {
            let _ = write!(
                page,
                "<span>{name}</span><code>{}</code><button class=\"copy\">copy</button>",
                escape(text)
            );
        }
        page.push_str("</div>\n");
    }
}

/// Writes the verdict without each possible cause of the violation.
fn causes_of(page: &mut String, causes: &Causes) {
    let _ = writeln!(
        page,
        "<h2>Causes</h2>\n<div class=\"causes\">Why <b>{}</b> was violated: the same run with something taken away.<ul>",
        escape(causes.checker)
    );
    for line in &causes.lines {
        let _ = writeln!(page, "<li>{}: <b>{}</b></li>", escape(&line.tried), escape(&line.verdict));
    }
    page.push_str("</ul></div>\n");
}

/// Writes the chain of a violation, link by link. It is folded, unless the page shows its witness
/// at first.
fn chain_of(page: &mut String, history: &History, witness: &Witness, focus: Option<&Witness>) {
    let lines = chain::lines(history, witness);
    if lines.is_empty() {
        return;
    }
    let open = if focus.is_some_and(|focus| std::ptr::eq(focus, witness)) { " open" } else { "" };
    let _ = write!(page, "<details class=\"chain\"{open}><summary>How it came about</summary><table>");
    for line in &lines {
        let (class, host) = line.host.as_deref().map_or((" class=\"fault\"", "fault"), |host| ("", host));
        let _ = write!(
            page,
            "<tr{class}><td><a href=\"#t={}s\">{}</a></td><td>{}</td><td>{}</td></tr>",
            line.at.as_micros() as f64 / 1e6,
            words::instant(line.at),
            escape(host),
            escape(&line.words)
        );
    }
    page.push_str("</table></details>");
}

/// Returns true for a finding of no interest: it is undecided, and has no expectation.
fn is_aside(entry: &Entry) -> bool {
    entry.expected.is_none() && matches!(entry.finding.verdict, Verdict::Undecided { .. })
}

fn pill(verdict: &Verdict) -> String {
    let word = verdict.word();
    format!("<span class=\"pill {word}\">{word}</span>")
}

/// Returns the result of the comparison with the expectation; empty if there is none.
fn matched(entry: &Entry) -> String {
    match entry.matched() {
        None => String::new(),
        Some(Match::AsExpected) => "as expected".to_owned(),
        Some(Match::Undecided(_)) => "not decided".to_owned(),
        Some(Match::Otherwise(because)) => format!("<span class=\"off\">{}</span>", escape(&because)),
    }
}

/// Writes the button that zooms the timeline to a witness.
fn show(page: &mut String, witness: &Witness) {
    let (from, until) = (witness.from.as_micros(), witness.until.as_micros());
    let _ = write!(page, "<button data-show=\"{from} {until}\">show</button>");
}

fn row(page: &mut String, history: &History, entry: &Entry, focus: Option<&Witness>) {
    let finding = &entry.finding;
    let name = escape(finding.checker);
    let _ = write!(
        page,
        "<tr id=\"verdict-{name}\"><td title=\"{}\">{name}</td><td>{}</td><td>{}</td><td>{}",
        escape(finding.question),
        pill(&finding.verdict),
        matched(entry),
        escape(finding.verdict.sentence()),
    );
    if let Some(witness) = finding.verdict.witness() {
        page.push(' ');
        show(page, witness);
        if !witness.story.is_empty() {
            page.push_str("<ol>");
            for line in &witness.story {
                let _ = write!(page, "<li>{}</li>", escape(line));
            }
            page.push_str("</ol>");
        }
        chain_of(page, history, witness, focus);
    }
    let measures: Vec<String> = finding
        .measures
        .iter()
        .map(|measure| format!("{} {}", measure.name.replace('_', " "), measure.quantity))
        .collect();
    let measures = if is_aside(entry) { String::new() } else { measures.join(" · ") };
    let _ = write!(page, "<div class=\"measures\">{}</div>", escape(&measures));
    for formula in &entry.formulas {
        let _ = write!(page, "<div class=\"measures\">{}</div>", escape(formula));
    }
    page.push_str("</td></tr>\n");
}
