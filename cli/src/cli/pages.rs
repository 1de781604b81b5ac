//! `lockstorm claims --report`: a folder with `index.html` about all claims, a page of one run for
//! each condition, and the scenario files.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    slice::from_ref,
};

use lockstorm_world::TraceRetention;
use miette::{IntoDiagnostic, Result, WrapErr};

use super::{
    Exit,
    boundary::Claimed,
    gathered::most_telling,
    out::errln,
    results::{CausesOf, exit_of, measured, page_of, pictures},
};
use crate::study::boundary::{Found, Search};
use lockstorm::{
    file::scenario::Source,
    report::{ClaimRow, Condition, FormulaRow, Mark, Site},
    run::{
        runner::{Judged, Runner},
        tally::Tally,
    },
};

/// The folder, and the claims that have been written into it.
pub(super) struct Pages {
    folder: PathBuf,
    claims: Vec<ClaimRow>,
    /// The names of the claims' folders and of their parts of the index.
    anchors: BTreeSet<String>,
    pages: usize,
}

impl Pages {
    /// Creates the folder, or takes an existing one.
    pub(super) fn create(folder: &Path) -> Result<Pages> {
        let pages =
            Pages { folder: folder.to_owned(), claims: Vec::new(), anchors: BTreeSet::new(), pages: 0 };
        pages.write("index.html", "")?;
        Ok(pages)
    }

    /// Writes the pages of one claim.
    pub(super) fn add(
        &mut self,
        trial: &Runner<'_>,
        source: &Source,
        of: &[Judged],
        tallies: &[Tally<'_>],
        (measures, boundaries): (Vec<FormulaRow>, &[Claimed<'_>]),
        exit: Exit,
    ) -> Result<()> {
        let Some(claim) = source.claim() else { return Ok(()) };
        let (mut used, mut conditions) = (BTreeSet::new(), Vec::new());
        // Several files may decide one claim, so each gets an anchor of its own.
        let anchor = unused(&mut self.anchors, &claim.id);
        for runs in of.chunk_by(|one, other| one.case.shares_variant(&other.case)) {
            let Some(chosen) = most_telling(runs) else { continue };
            let variant = trial.variant(chosen.case);
            let name = if variant.name.is_empty() { "as-described" } else { &variant.name };
            let page = format!("{anchor}/{}.html", unused(&mut used, name));
            let outcome = trial.outcome(chosen.case, TraceRetention::All);
            let holds = runs.iter().flat_map(|one| one.holds.iter().copied()).collect();
            let pictures = pictures(trial, chosen, (holds, runs.len()), tallies);
            self.write(&page, &page_of(&CausesOf::new(trial, chosen), &outcome, &pictures))?;
            self.pages += 1;
            let hunted = claim.hunted.as_ref().and_then(|hunted| {
                let verdict = hunted.verdict(variant.condition())?;
                Some(format!("hunt: {verdict} (up to {} runs)", hunted.runs))
            });
            let shares = tallies.iter().filter(|tally| std::ptr::eq(tally.variant, variant));
            conditions.push(Condition {
                name: variant.title().to_owned(),
                runs: runs.len(),
                verdicts: measured(trial, from_ref(chosen), tallies),
                mark: mark(exit_of(runs, shares)),
                hunted,
                page,
            });
        }
        let file = format!("files/{}", source.file);
        self.write(&file, &source.text)?;
        self.claims.push(ClaimRow {
            id: claim.id.clone(),
            anchor,
            says: claim.says.clone(),
            by: claim.by.clone(),
            at: claim.at.clone(),
            mark: mark(exit),
            finding: source.finding().map(str::to_owned),
            no_boundary: claim.no_boundary.clone(),
            file,
            conditions,
            formulas: measures.into_iter().chain(boundaries.iter().map(boundary_row)).collect(),
        });
        Ok(())
    }

    /// Writes the index of all claims.
    pub(super) fn finish(mut self) -> Result<()> {
        let site = Site { claims: std::mem::take(&mut self.claims) };
        self.write("index.html", &site.html())?;
        let (claims, pages) = (site.claims.len(), self.pages);
        errln!(
            "{} shows {claims} claims, with {pages} pages of runs",
            self.folder.join("index.html").display()
        );
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .into_diagnostic()
            .wrap_err_with(|| format!("{} cannot be written", path.display()))
    }
}

fn boundary_row(found: &Claimed<'_>) -> FormulaRow {
    FormulaRow {
        heading: format!("boundary{}", found.heading()),
        lines: found.lines().to_vec(),
        mark: mark(found.exit()),
        strip: found.found.first().map_or_else(Vec::new, |one| strip(&found.search, one)),
    }
}

/// Returns the intervals of an axis with one verdict each, as shares of its length.
fn strip(search: &Search<'_>, found: &Found) -> Vec<(f64, &'static str)> {
    let (from, to) = (search.from.number(), search.to.number());
    let mut stretches = Vec::new();
    let (mut begun, mut word) = (from, found.start);
    for change in &found.changes {
        let at = change.first.number();
        stretches.push(((at - begun) / (to - from), word));
        (begun, word) = (at, change.above);
    }
    stretches.push(((to - begun) / (to - from), word));
    stretches
}

fn mark(exit: Exit) -> Mark {
    match exit {
        Exit::Expected => Mark::AsStated,
        Exit::Undecided => Mark::Undecided,
        Exit::Unexpected | Exit::Usage => Mark::Otherwise,
    }
}

/// Returns a file name that is not used yet, and marks it as used.
fn unused(used: &mut BTreeSet<String>, wanted: &str) -> String {
    let name = file_name(wanted);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !used.contains(name));
    let free = free.unwrap_or(name);
    used.insert(free.clone());
    free
}

/// Turns a text into a name that is valid in every file system and URL.
fn file_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = text.chars().map(plain).collect();
    // A name of dots alone would lead out of the folder.
    if name.starts_with('.') { format!("-{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_a_file_of_its_own() {
        let mut used = BTreeSet::new();
        for (variant, name) in [
            ("lossy,by=5s", "lossy-by-5s"),
            ("lossy-by-5s", "lossy-by-5s-2"),
            ("../../etc", "-..-..-etc"),
            ("50%", "50-"),
        ] {
            assert_eq!(unused(&mut used, variant), name);
        }
    }
}
