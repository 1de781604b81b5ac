//! The page of all claims: for each claim its statement, its outcome under each condition, the
//! boundary at which its verdict changes, and links to the page of a run and to the file. It needs
//! no network, and escapes everything that comes from a file.

use std::fmt::Write;

use super::escape::escape;

const STYLE: &str = include_str!("page.css");
const OWN_STYLE: &str = include_str!("site.css");

/// The outcome of a claim or of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// As its file states.
    AsStated,
    /// Not as its file states.
    Otherwise,
    /// It could not be decided.
    Undecided,
}

impl Mark {
    fn class(self) -> &'static str {
        match self {
            Mark::AsStated => "as-expected",
            Mark::Otherwise => "otherwise",
            Mark::Undecided => "undecided",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Mark::AsStated => "as stated",
            Mark::Otherwise => "not as stated",
            Mark::Undecided => "undecided",
        }
    }
}

/// The claims with the results of each.
#[derive(Debug, Clone)]
pub struct Site {
    /// The claims in the order to show them.
    pub claims: Vec<ClaimRow>,
}

/// A row of the index: a claim with its results.
#[derive(Debug, Clone)]
pub struct ClaimRow {
    /// Its number, such as `S4`.
    pub id: String,
    /// The name of its part of the page, for links.
    pub anchor: String,
    /// The statement of the claim in a sentence.
    pub says: String,
    /// The author or the document that makes the claim.
    pub by: String,
    /// The address of the source; empty if it has none.
    pub at: String,
    /// The outcome of the claim as a whole.
    pub mark: Mark,
    /// A further finding, in the author's words.
    pub finding: Option<String>,
    /// The reason why it has no number with a formula, in the author's words.
    pub no_boundary: Option<String>,
    /// The scenario file, as a link from the page.
    pub file: String,
    /// The conditions that were tried.
    pub conditions: Vec<Condition>,
    /// The measures and boundaries for which the file has a formula.
    pub formulas: Vec<FormulaRow>,
}

/// A condition of a claim.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The name of the variant for people.
    pub name: String,
    /// Number of runs.
    pub runs: usize,
    /// For each checker that the claim is about: its name, its verdict, and the measured values.
    pub verdicts: Vec<(String, &'static str, String)>,
    /// The comparison of all runs of the condition with the expectations of the file.
    pub mark: Mark,
    /// The result of the hunt that the file states, in words.
    pub hunted: Option<String>,
    /// The page of a run, as a link.
    pub page: String,
}

/// A number that was found, beside the formula of the file: a measure, or the value on an axis at
/// which a verdict changes.
#[derive(Debug, Clone)]
pub struct FormulaRow {
    /// The name of the measure, or of the key that the boundary varies.
    pub heading: String,
    /// The results, a line each.
    pub lines: Vec<String>,
    /// The comparison of the number found with the formula of the file.
    pub mark: Mark,
    /// The parts of an axis with the same verdict, from its beginning to its end: the share of the
    /// axis, and the verdict's word. Empty for a measure.
    pub strip: Vec<(f64, &'static str)>,
}

impl Site {
    /// Returns the index as an HTML page; it links to the pages of the runs.
    pub fn html(&self) -> String {
        let stated = self.claims.iter().filter(|claim| claim.mark == Mark::AsStated).count();
        let mut page = String::new();
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>Redis locks on trial</title>\
             <style>\n{STYLE}{OWN_STYLE}</style></head><body>\n\
             <header><h1>Redis locks on trial</h1><span class=\"facts\">{stated} of {all} claims came out as stated</span></header>\n\
             <p class=\"about\">Each claim is an experiment in a file. A verdict links to the page of a run that shows it, \
             and <code>lockstorm claims ID</code> runs it again: the same scenario and seed give the same bytes.</p>\n\
             <table class=\"claims\"><thead><tr><th>claim</th><th>what is claimed</th><th>what was found</th></tr></thead><tbody>\n",
            all = self.claims.len()
        );
        for claim in &self.claims {
            claim.write(&mut page);
        }
        page.push_str("</tbody></table>\n</body></html>\n");
        page
    }
}

impl ClaimRow {
    fn write(&self, page: &mut String) {
        let (id, anchor, file) = (escape(&self.id), escape(&self.anchor), escape(&self.file));
        let by = escape(&self.by);
        // Make a link only of an address: a file could name anything.
        let by = match self.at.starts_with("https://") || self.at.starts_with("http://") {
            true => format!("<a href=\"{}\">{by}</a>", escape(&self.at)),
            false => by,
        };
        let _ = write!(
            page,
            "<tr id=\"{anchor}\"><td><a class=\"id\" href=\"#{anchor}\">{id}</a><br><span class=\"pill {}\">{}</span></td>\
             <td><p>{}</p><p class=\"by\">{by} · <a href=\"{file}\">file</a></p>",
            self.mark.class(),
            self.mark.word(),
            escape(&self.says)
        );
        if let Some(finding) = &self.finding {
            let _ = write!(page, "<p class=\"finding\">{}</p>", escape(finding.trim()));
        }
        if let Some(why) = &self.no_boundary {
            let _ = write!(page, "<p class=\"facts\">No boundary: {}</p>", escape(why.trim()));
        }
        page.push_str("</td><td><table class=\"conditions\">");
        for condition in &self.conditions {
            condition.write(page);
        }
        page.push_str("</table>");
        for formula in &self.formulas {
            formula.write(page);
        }
        page.push_str("</td></tr>\n");
    }
}

impl Condition {
    fn write(&self, page: &mut String) {
        let seeds = if self.runs == 1 { String::new() } else { format!(" · {} seeds", self.runs) };
        let off = match self.mark {
            Mark::AsStated => String::new(),
            mark => format!(" <span class=\"pill {}\">{}</span>", mark.class(), mark.word()),
        };
        let _ = write!(
            page,
            "<tr><td><a href=\"{}\">{}</a><span class=\"facts\">{seeds}</span>{off}</td><td>",
            escape(&self.page),
            escape(&self.name)
        );
        for (checker, word, measured) in &self.verdicts {
            let measured = if measured.is_empty() {
                String::new()
            } else {
                format!(" <span class=\"facts\">{}</span>", escape(measured))
            };
            let _ = write!(
                page,
                "<span class=\"verdict\">{} <b class=\"word {word}-word\">{word}</b>{measured}</span> ",
                escape(checker)
            );
        }
        if let Some(hunted) = &self.hunted {
            let _ = write!(page, "<div class=\"facts\">{}</div>", escape(hunted));
        }
        page.push_str("</td></tr>");
    }
}

impl FormulaRow {
    fn write(&self, page: &mut String) {
        let _ = write!(page, "<div class=\"boundary\"><div class=\"facts\">{}</div>", escape(&self.heading));
        if !self.strip.is_empty() {
            page.push_str("<div class=\"strip\">");
            for (share, word) in &self.strip {
                let _ = write!(page, "<i class=\"{word}\" style=\"flex-grow:{share:.4}\">{word}</i>");
            }
            page.push_str("</div>");
        }
        for line in &self.lines {
            let _ = write!(page, "<div>{}</div>", escape(line));
        }
        if self.mark != Mark::AsStated {
            let _ = write!(page, "<span class=\"pill {}\">{}</span>", self.mark.class(), self.mark.word());
        }
        page.push_str("</div>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(says: &str, at: &str) -> Site {
        let condition = Condition {
            name: "lag-of-50ms".to_owned(),
            runs: 3,
            verdicts: vec![("l1".to_owned(), "violated", "overlap 29s".to_owned())],
            mark: Mark::Undecided,
            hunted: Some("hunt: holds (up to 500 runs)".to_owned()),
            page: "S4/lag-of-50ms.html".to_owned(),
        };
        let boundary = FormulaRow {
            heading: "l1 while link.lag.latency goes from 1ms to 50ms".to_owned(),
            lines: vec!["each of 1 seeds: holds up to 9ms".to_owned()],
            mark: Mark::AsStated,
            strip: vec![(0.2, "holds"), (0.8, "violated")],
        };
        let measure = FormulaRow {
            heading: "measure: l1.overlap".to_owned(),
            lines: vec!["formula  lease - 1s = 29s, as found".to_owned()],
            mark: Mark::AsStated,
            strip: Vec::new(),
        };
        let claim = ClaimRow {
            id: "S4".to_owned(),
            anchor: "S4-2".to_owned(),
            says: says.to_owned(),
            by: "the documentation".to_owned(),
            at: at.to_owned(),
            mark: Mark::Otherwise,
            finding: Some("not always".to_owned()),
            no_boundary: Some("nothing between".to_owned()),
            file: "files/single/async_failover.toml".to_owned(),
            conditions: vec![condition],
            formulas: vec![measure, boundary],
        };
        Site { claims: vec![claim] }
    }

    #[test]
    fn a_claim_has_its_verdicts_its_boundary_and_its_links() {
        let page = site("Failover is unsafe.", "https://example.org/locks").html();
        for part in [
            "0 of 1 claims came out as stated",
            "<a class=\"id\" href=\"#S4-2\">S4</a>",
            "<span class=\"pill otherwise\">not as stated</span>",
            "<div class=\"facts\">hunt: holds (up to 500 runs)</div>",
            "<a href=\"https://example.org/locks\">the documentation</a>",
            "<a href=\"files/single/async_failover.toml\">file</a>",
            "<a href=\"S4/lag-of-50ms.html\">lag-of-50ms</a><span class=\"facts\"> · 3 seeds</span>",
            "<span class=\"pill undecided\">undecided</span>",
            "l1 <b class=\"word violated-word\">violated</b> <span class=\"facts\">overlap 29s</span>",
            "<i class=\"violated\" style=\"flex-grow:0.8000\">violated</i>",
            "<p class=\"finding\">not always</p>",
            "<p class=\"facts\">No boundary: nothing between</p>",
            // A measure has no axis.
            "measure: l1.overlap</div><div>formula  lease - 1s = 29s, as found</div></div>",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }

    /// A scenario file may come from anywhere.
    #[test]
    fn nothing_of_a_file_becomes_markup_or_a_script() {
        let page = site("<script>alert(1)</script>", "javascript:alert(1)").html();
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains("javascript:"), "{page}");
    }
}
