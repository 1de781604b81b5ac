//! `lockstorm claims --hunt`: hunts in each variant of the claims, and compares the results with
//! `[claim.hunted]` of their files.

use lockstorm::{
    file::scenario::{HuntedKind, HuntedVariants, Source, Variant},
    judge::checker::{self, Checker, many},
    run::hunt::{Hunted, Search},
};
use miette::{IntoDiagnostic, Result};
use serde_json::json;

use super::{
    Exit,
    hunt::as_json,
    options::Jobs,
    out::{errln, outln},
    progress::Progress,
};

/// The most runs in a variant whose file states no results of hunts.
const BUDGET: u64 = 500;

/// The hunts in the variants of one claim.
struct OfClaim<'a> {
    source: &'a Source,
    stated: Option<&'a HuntedVariants>,
    budget: u64,
    hunts: Vec<(&'a Variant, Hunted)>,
}

/// Hunts in the claims with at most `budget` runs in each variant, or as many as each file states.
/// This process must have no other thread, because it is forked.
pub(super) fn run(sources: &[Source], jobs: &Jobs, budget: Option<u64>, json: bool) -> Result<Exit> {
    let mut claims: Vec<OfClaim<'_>> = sources.iter().map(|source| OfClaim::new(source, budget)).collect();
    let runs = claims.iter().map(|of| of.budget.saturating_mul(of.source.conditions().len() as u64));
    let runs = runs.fold(0, u64::saturating_add);
    let progress = Progress::new(usize::try_from(runs).unwrap_or(usize::MAX));
    for of in &mut claims {
        let OfClaim { source, budget, .. } = *of;
        for variant in source.conditions() {
            let search = Search::new(&variant.scenario, 0).jobs(jobs.count()).budget(budget);
            let search = search.checkers(asked(variant)).kinds(kinds(variant));
            let hunted = search.run_shared(&|simulated| progress.step(simulated)).into_diagnostic()?;
            of.hunts.push((variant, hunted));
        }
        if json { of.print_json()? } else { of.print()? }
    }
    let speed = progress.finish();
    let compared: Vec<bool> = claims.iter().filter_map(OfClaim::is_as_stated).collect();
    let as_stated = compared.iter().filter(|is_as_stated| **is_as_stated).count();
    let words = claims.iter().flat_map(|of| &of.hunts).map(|(_, hunted)| hunted.word());
    let words: Vec<&str> = words.collect();
    let count = |verdict: &str| words.iter().filter(|word| **word == verdict).count();
    let summary = format!(
        "{as_stated} of {} that state results hunted as stated; {}: {} violated, {} without a violation \
         within the bound, {} undecided ({speed})",
        many(compared.len(), "claim"),
        many(words.len(), "variant"),
        count("violated"),
        count("holds"),
        count("undecided"),
    );
    if json {
        errln!("{summary}");
    } else {
        outln!("{summary}");
    }
    Ok(if as_stated == compared.len() { Exit::Expected } else { Exit::Unexpected })
}

/// Returns the checkers whose violation to search for: those that the variant expects to be
/// violated, or all that it expects to hold if there are none.
fn asked(variant: &Variant) -> Vec<&'static Checker> {
    let expect = &variant.scenario.expect;
    let is_violated = expect.values().any(|expected| !expected.holds);
    let is_asked =
        |checker: &&Checker| expect.get(checker.name).is_some_and(|expected| expected.holds != is_violated);
    checker::LIST.iter().filter(is_asked).collect()
}

/// Returns the kinds of faults of the file's `[hunt]`. Without one, clocks step and replicas are
/// promoted only where the file's own faults do so: no lease outlasts a step of its server's clock,
/// and no lock a promotion while its master lives.
fn kinds(variant: &Variant) -> Vec<HuntedKind> {
    let scenario = &variant.scenario;
    let mut kinds = scenario.hunt.clone().unwrap_or_default().kinds;
    if scenario.hunt.is_some() {
        return kinds;
    }
    let mut faults = scenario.fault.values().filter(|entry| !entry.off);
    if !faults.clone().any(|entry| entry.clock_step.is_some()) {
        kinds.retain(|kind| *kind != HuntedKind::ClockStep);
    }
    if faults.any(|entry| entry.promote.is_some()) {
        kinds.push(HuntedKind::Promote);
    }
    kinds
}

impl<'a> OfClaim<'a> {
    fn new(source: &'a Source, budget: Option<u64>) -> OfClaim<'a> {
        let stated = source.claim().and_then(|claim| claim.hunted.as_ref());
        let budget = budget.or(stated.map(|stated| stated.runs)).unwrap_or(BUDGET);
        OfClaim { source, stated, budget, hunts: Vec::new() }
    }

    /// Compares the hunts with the file, which may state nothing.
    fn is_as_stated(&self) -> Option<bool> {
        let stated = self.stated?;
        let agrees = |(variant, hunted): &(&Variant, Hunted)| {
            agrees(stated.verdict(variant.condition()), hunted.word(), stated.runs, self.budget)
        };
        Some(self.hunts.iter().all(agrees))
    }

    fn print(&self) -> Result<()> {
        let Some(claim) = self.source.claim() else { return Ok(()) };
        let is_as_stated = self.is_as_stated();
        let word = match is_as_stated {
            Some(true) => "hunted as stated",
            Some(false) => "HUNTED OTHERWISE",
            None => "hunted, and nothing is stated",
        };
        outln!("{:4} {word}: {}", claim.id, claim.says);
        for (variant, hunted) in &self.hunts {
            outln!("       {}: {}", variant.condition(), hunted.sentence());
            if !hunted.untested.is_empty() {
                outln!("         no run put {} to the test", hunted.untested.join(", "));
            }
            for placement in hunted.found().into_iter().flat_map(|found| &found.placed) {
                outln!("         {placement}");
            }
        }
        if is_as_stated != Some(true) {
            outln!("       found:");
            self.found()?.lines().for_each(|line| outln!("         {line}"));
        }
        Ok(())
    }

    fn print_json(&self) -> Result<()> {
        let hunts = self.hunts.iter().map(|(variant, hunted)| {
            let mut one = as_json(hunted)?;
            one["variant"] = json!(variant.condition());
            one["word"] = json!(hunted.word());
            Ok(one)
        });
        let line = json!({
            "id": self.source.claim().map(|claim| &claim.id),
            "file": self.source.file,
            "budget": self.budget,
            "as_stated": self.is_as_stated(),
            "hunts": hunts.collect::<Result<Vec<_>>>()?,
            "found": self.found()?,
        });
        outln!("{line}");
        Ok(())
    }

    /// Returns the results in the form of the file.
    fn found(&self) -> Result<String> {
        let with = |verdict: &str| {
            let hunts = self.hunts.iter().filter(|(_, hunted)| hunted.word() == verdict);
            hunts.map(|(variant, _)| variant.condition().to_owned()).collect()
        };
        let (violated, holds, undecided) = (with("violated"), with("holds"), with("undecided"));
        let found = HuntedVariants { runs: self.budget, violated, holds, undecided };
        Ok(format!("[claim.hunted]\n{}", toml::to_string(&found).into_diagnostic()?))
    }
}

/// Compares a verdict found within `budget` runs with the one that is stated for `runs` runs. More
/// runs may decide what was undecided, and fewer runs may not suffice.
fn agrees(stated: Option<&str>, found: &str, runs: u64, budget: u64) -> bool {
    match (stated, found) {
        (Some(stated), found) if stated == found => true,
        (Some("undecided"), _) => budget > runs,
        (Some(_), "undecided") => budget < runs,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_budget_explains_that_a_hunt_is_undecided_and_no_other_difference() {
        for (stated, found, runs, budget, expected) in [
            ("violated", "violated", 100, 100, true),
            ("holds", "holds", 100, 20, true),
            ("undecided", "undecided", 100, 100, true),
            ("undecided", "violated", 100, 100, false),
            ("undecided", "violated", 100, 200, true),
            ("undecided", "holds", 100, 20, false),
            ("violated", "undecided", 100, 100, false),
            ("holds", "undecided", 100, 20, true),
            ("holds", "violated", 100, 200, false),
            ("violated", "holds", 100, 20, false),
        ] {
            assert_eq!(
                agrees(Some(stated), found, runs, budget),
                expected,
                "{stated} within {runs} runs, {found} within {budget}"
            );
        }
        assert!(!agrees(None, "holds", 100, 100));
    }
}
