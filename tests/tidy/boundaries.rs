//! Checks that each claim has a boundary or a measure, with a formula, or a reason for having none;
//! and that each claim of a trial has a control.

use std::collections::BTreeSet;

use lockstorm::{
    file::{
        library,
        scenario::{self, Claim, Source},
    },
    judge::verdict::{Quantity, Range},
};

/// The error of a file with these numbers of boundaries, formulas and measures, and this reason for
/// none.
fn wrong(boundaries: usize, formulas: usize, measures: usize, reason: Option<&str>) -> Option<&'static str> {
    match (boundaries + measures, reason) {
        (0, None) => {
            Some("has neither a boundary nor a measure with a formula nor a reason in claim.no_boundary")
        }
        (0, Some(reason)) if !reason.ends_with('.') => Some("has a claim.no_boundary that is no sentence"),
        (0, Some(_)) => None,
        (_, Some(_)) => Some("has a boundary or a measure with a formula, and a claim.no_boundary"),
        (_, None) if formulas < boundaries => Some("has a boundary without a formula"),
        (_, None) => None,
    }
}

/// The stock scenarios that have a claim.
fn claims() -> Vec<(Source, Claim)> {
    let sources = library::ALL.iter().map(|stock| scenario::parse(stock.path, stock.text).expect(stock.path));
    sources.filter_map(|source| source.claim().cloned().map(|claim| (source, claim))).collect()
}

#[test]
fn each_claim_has_a_number_with_a_formula_or_a_reason_for_none() {
    let mut failed = Vec::new();
    for (source, claim) in claims() {
        let boundaries: Vec<_> =
            source.conditions().into_iter().filter_map(|one| one.scenario.boundary.as_ref()).collect();
        let formulas = boundaries.iter().filter(|boundary| boundary.formula.is_some()).count();
        let measures = source.conditions().into_iter().map(|one| one.scenario.measure.len()).sum();
        let wrong = wrong(boundaries.len(), formulas, measures, claim.no_boundary.as_deref());
        failed.extend(wrong.map(|wrong| format!("{} {wrong}", source.file)));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Returns true if a range gives a time: it has two ends, and the lower one is not zero.
fn is_number(range: &Range) -> bool {
    let ends = (range.least, range.most);
    matches!(ends, (Some(Quantity::Time(least)), Some(Quantity::Time(_))) if !least.is_zero())
}

/// A time with both ends known follows from something, which is its formula.
#[test]
fn no_claim_without_a_formula_knows_a_time() {
    let mut failed = Vec::new();
    for (source, _) in claims().iter().filter(|(_, claim)| claim.no_boundary.is_some()) {
        for condition in source.conditions() {
            for (checker, expected) in &condition.scenario.expect {
                let known = expected.measures.iter().filter(|(_, range)| is_number(range));
                failed.extend(known.map(|(measure, range)| {
                    format!(
                        "{} expects {checker}.{measure} {range}: state its formula in [measure]",
                        source.file
                    )
                }));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_time_is_known_between_two_that_are_not_nothing() {
    for (range, is_known) in [
        ("27s..28s", true),
        ("5s", true),
        ("0s..6s", false),
        ("0s", false),
        ("..6s", false),
        ("60s..", false),
        ("2..3", false),
    ] {
        assert_eq!(is_number(&range.parse().expect(range)), is_known, "{range}");
    }
}

#[test]
fn a_claim_has_one_of_the_two_and_not_both() {
    const WHY: Option<&str> = Some("Another claim has it.");
    for (boundaries, formulas, measures, reason, is_wrong) in [
        (0, 0, 0, None, true),
        (0, 0, 0, WHY, false),
        (0, 0, 0, Some("so"), true),
        (1, 0, 0, None, true),
        (1, 1, 0, None, false),
        (2, 1, 0, None, true),
        (2, 2, 0, None, false),
        (1, 1, 0, WHY, true),
        (0, 0, 1, None, false),
        (0, 0, 1, WHY, true),
        // A measure does not excuse a boundary without a formula.
        (1, 0, 1, None, true),
    ] {
        let wrong = wrong(boundaries, formulas, measures, reason);
        assert_eq!(wrong.is_some(), is_wrong, "{boundaries} {formulas} {measures} {reason:?}: {wrong:?}");
    }
}

/// A trial that no broken lock fails may be blind: a watchdog that never renewed once passed T9,
/// whose second client held the lock for no time.
#[test]
fn each_claim_of_a_trial_has_a_control() {
    // Its claim is that every lock on one node is lost, so each lock fails it.
    const FOUND_IN_ALL: &[&str] = &["T11"];
    let listed = std::fs::read_to_string("trials/peers.toml").expect("the list of peers");
    let lines = listed.lines().filter_map(|line| line.strip_prefix("control = "));
    let controls: BTreeSet<&str> = lines.flat_map(|ids| ids.split('"').skip(1).step_by(2)).collect();
    let trials = library::ALL.iter().filter(|stock| stock.path.starts_with("trial/"));
    let sources: Vec<_> =
        trials.map(|stock| scenario::parse(stock.path, stock.text).expect(stock.path)).collect();
    let claims: BTreeSet<&str> =
        sources.iter().filter_map(|source| source.claim()).map(|claim| claim.id.as_str()).collect();
    let expected: BTreeSet<&str> = claims.into_iter().filter(|id| !FOUND_IN_ALL.contains(id)).collect();
    assert_eq!(controls, expected);
}
