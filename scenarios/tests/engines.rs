//! `turmoil` as a second engine: what it says of the stock scenarios is what lockstorm's own timeline says.

use lockstorm::{
    library,
    run::Engine,
    scenario::parse,
    trial::{Judged, Trial, parse_seeds},
};

/// Variants whose verdict hangs on less than the millisecond that `turmoil` counts in, with the reason.
const FINER_THAN_A_TICK: &[(&str, &str)] = &[];

/// What every checker said, in a word.
fn words(judged: &Judged) -> Vec<(&'static str, &'static str)> {
    judged.findings.iter().map(|finding| (finding.checker, finding.verdict.word())).collect()
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
        let excepted = FINER_THAN_A_TICK.iter().any(|(variant, _)| token.starts_with(&format!("{variant}@")));
        if words(one) != words(other) && !excepted {
            different.push(format!("{token}: {:?}, on turmoil {:?}", words(one), words(other)));
        }
    }
    assert!(different.is_empty(), "the engines disagree:\n{}", different.join("\n"));
}
