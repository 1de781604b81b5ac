//! `turmoil` as a second engine: what it says of the stock scenarios is what lockstorm's own
//! timeline says.

use lockstorm::{
    file::{
        library,
        scenario::{Source, parse},
    },
    run::Engine,
    run::runner::{Case, Judged, Runner, parse_seeds},
};

/// What the checkers said of a run, in a word. Storms hang on less than the millisecond that
/// `turmoil` counts in, so that the same seed draws another course of events there: what their
/// files expect must come out all the same, and nothing else need.
fn words(sources: &[Source], judged: &Judged) -> Vec<(&'static str, &'static str)> {
    let Case { source, variant, .. } = judged.case;
    let source = &sources[source];
    let expect = &source.variants[variant].scenario.expect;
    let is_storm = source.file.starts_with("storm/");
    let compared = judged.findings.iter().filter(|finding| !is_storm || expect.contains_key(finding.checker));
    compared.map(|finding| (finding.checker, finding.verdict.word())).collect()
}

/// The first seed of the first variants, or those of `LOCKSTORM_SEEDS` of all variants.
#[test]
fn turmoil_gives_the_verdicts_of_the_event_engine() {
    let seeds = std::env::var("LOCKSTORM_SEEDS").map_or(0..1, |seeds| parse_seeds(&seeds).expect("a range"));
    let parsed =
        library::ALL.iter().map(|stock| parse(stock.path, stock.text).expect("stock scenarios are valid"));
    let mut sources: Vec<_> = parsed.collect();
    // `turmoil` looks at every host in every millisecond: one variant of each file, if no more is
    // asked for.
    if std::env::var_os("LOCKSTORM_SEEDS").is_none() {
        sources.iter_mut().for_each(|source| source.variants.truncate(1));
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
