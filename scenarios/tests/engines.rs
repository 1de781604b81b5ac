//! `turmoil` as a second engine: its verdicts on the stock scenarios are those of lockstorm's own
//! timeline.

use std::collections::BTreeSet;

use lockstorm::{
    file::{
        library,
        plan::Plan,
        scenario::{Source, parse},
    },
    run::Engine,
    run::runner::{Case, Judged, Runner, parse_seeds},
};

/// The checkers' verdicts on a run, in a word each. Storms depend on less than the millisecond that
/// `turmoil` counts in, so the same seed has another course of events there: only the expectations
/// of their files must be met.
fn words(sources: &[Source], judged: &Judged) -> Vec<(&'static str, &'static str)> {
    let Case { source, variant, .. } = judged.case;
    let source = &sources[source];
    let expect = &source.variants[variant].scenario.expect;
    let is_storm = source.file.starts_with("storm/");
    let compared = judged.findings.iter().filter(|finding| !is_storm || expect.contains_key(finding.checker));
    compared.map(|finding| (finding.checker, finding.verdict.word())).collect()
}

/// Returns the sources with their first variants: the cheaper half, and the cheapest of each theme.
/// `turmoil` visits every host in every millisecond.
fn cheap(sources: Vec<Source>) -> Vec<Source> {
    let cost = |source: &Source| {
        let plan = Plan::draw(&source.variants[0].scenario, 0);
        plan.host_count() as u128 * plan.length().as_millis()
    };
    let mut by_cost: Vec<(u128, Source)> =
        sources.into_iter().map(|source| (cost(&source), source)).collect();
    by_cost.sort_by_key(|(cost, _)| *cost);
    let (half, mut themes) = (by_cost.len() / 2, BTreeSet::new());
    let kept = by_cost.into_iter().enumerate().filter_map(|(at, (_, mut source))| {
        let theme = source.file.split('/').next().unwrap_or_default().to_owned();
        source.variants.truncate(1);
        (themes.insert(theme) || at < half).then_some(source)
    });
    kept.collect()
}

/// Runs the first seed of some variants, or the seeds of `LOCKSTORM_SEEDS` of all variants.
#[test]
fn turmoil_gives_the_verdicts_of_the_event_engine() {
    let seeds = std::env::var("LOCKSTORM_SEEDS").map_or(0..1, |seeds| parse_seeds(&seeds).expect("a range"));
    let parsed =
        library::ALL.iter().map(|stock| parse(stock.path, stock.text).expect("stock scenarios are valid"));
    let mut sources: Vec<_> = parsed.collect();
    if std::env::var_os("LOCKSTORM_SEEDS").is_none() {
        sources = cheap(sources);
    }
    let run = |engine| {
        let trial = Runner::new(&sources)
            .seeds(Some(seeds.clone()))
            .jobs(std::thread::available_parallelism().map_or(1, usize::from))
            .engine(engine);
        let judged = trial.run(&|_| {});
        judged.into_iter().map(|judged| (trial.token(judged.case), judged)).collect::<Vec<_>>()
    };
    let mut different = Vec::new();
    for ((token, one), (_, other)) in run(Engine::Event).iter().zip(&run(Engine::Turmoil)) {
        let (one, other) = (words(&sources, one), words(&sources, other));
        if one != other {
            different.push(format!("{token}: {one:?}, on turmoil {other:?}"));
        }
    }
    assert!(different.is_empty(), "the engines disagree:\n{}", different.join("\n"));
}
