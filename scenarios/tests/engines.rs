//! `turmoil` as a second engine: what it says of the stock scenarios is what lockstorm's own timeline says.

use lockstorm::{
    library,
    run::Engine,
    scenario::parse,
    trial::{Judged, Trial, parse_seeds},
};

/// What hangs on less than the millisecond that `turmoil` counts in: a variant, a checker, and why.
const FINER_THAN_A_TICK: &[(&str, &str, &str)] = &[(
    "storm/fair_queue.toml",
    "wake-ups",
    "whether a subscription is back from a cut at the instant of a release (seed 2 differs)",
)];

/// What every checker said of a run, in a word.
fn words(token: &str, judged: &Judged) -> Vec<(&'static str, &'static str)> {
    let excepted = |checker: &str| {
        let of_run = |variant: &str| token.starts_with(&format!("{variant}@"));
        FINER_THAN_A_TICK.iter().any(|(variant, of, _)| *of == checker && of_run(variant))
    };
    let judged = judged.findings.iter().filter(|finding| !excepted(finding.checker));
    judged.map(|finding| (finding.checker, finding.verdict.word())).collect()
}

/// The first seed of every variant, or those of `LOCKSTORM_SEEDS`.
#[test]
fn turmoil_gives_the_verdicts_of_the_event_engine() {
    let seeds = std::env::var("LOCKSTORM_SEEDS").map_or(0..1, |seeds| parse_seeds(&seeds).expect("a range"));
    let parsed =
        library::ALL.iter().map(|stock| parse(stock.path, stock.text).expect("stock scenarios are valid"));
    let sources: Vec<_> = parsed.collect();
    let run = |engine| {
        let trial = Trial {
            sources: &sources,
            seeds: Some(seeds.clone()),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            engine,
            until_unexpected: false,
            until_violation: false,
        };
        let judged = trial.run(&|_| {});
        judged.into_iter().map(|judged| (trial.token(judged.case), judged)).collect::<Vec<_>>()
    };
    let mut different = Vec::new();
    for ((token, one), (_, other)) in run(Engine::Event).iter().zip(&run(Engine::Turmoil)) {
        let (one, other) = (words(token, one), words(token, other));
        if one != other {
            different.push(format!("{token}: {one:?}, on turmoil {other:?}"));
        }
    }
    assert!(different.is_empty(), "the engines disagree:\n{}", different.join("\n"));
}
