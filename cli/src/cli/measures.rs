//! Measures of many runs, compared with the formulas of their file.

use indexmap::IndexSet;

use lockstorm::{
    file::scenario::Compared,
    report::{FormulaRow, Mark},
    run::runner::{Judged, Runner},
};

/// Returns a row for each measure with a formula, under each condition of a claim: the measured
/// values, and the value of the formula.
pub(super) fn claimed_measures(trial: &Runner<'_>, of: &[Judged]) -> Vec<FormulaRow> {
    let conditions = of.chunk_by(|one, other| one.case.shares_variant(&other.case));
    let rows = conditions.flat_map(|runs| {
        let variant = &trial.variant(runs[0].case).name;
        let all = || runs.iter().flat_map(|run| &run.compared);
        let names: IndexSet<_> = all().map(|one| (&one.checker, &one.measure)).collect();
        names.into_iter().map(move |name| {
            row(variant, &all().filter(|one| (&one.checker, &one.measure) == name).collect::<Vec<_>>())
        })
    });
    rows.collect()
}

/// Formats one measure of all runs under one condition. There must be a run.
fn row(variant: &str, runs: &[&Compared]) -> FormulaRow {
    let mut found: Vec<_> = runs.iter().filter_map(|one| one.found).collect();
    found.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    let is = match found[..] {
        [] => "measured in no run".to_owned(),
        [least, .., most] if least != most => format!("{least} to {most} in {} runs", found.len()),
        [least, ..] => least.to_string(),
    };
    // One run that is not as claimed decides, so show that one.
    let shown = runs.iter().find(|one| !one.as_claimed).unwrap_or(&runs[0]);
    let variant = if variant.is_empty() { String::new() } else { format!("#{variant}") };
    let mark = if shown.as_claimed { Mark::AsStated } else { Mark::Otherwise };
    FormulaRow {
        heading: format!("measure{variant}: {}.{} is {is}", shown.checker, shown.measure),
        lines: vec![shown.claim()],
        mark,
        strip: Vec::new(),
    }
}
