//! Measures the cost of judging beside the cost of running: all checkers on the history of one run,
//! and the run itself.
//!
//! `cargo bench --bench checkers`

mod processor;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use lockstorm::{
    file::{plan::Plan, scenario::parse},
    judge::checker::check,
    run::{Engine, run},
};
use lockstorm_world::TraceRetention;
use processor::Processor;

const SCENARIOS: [(&str, &str); 2] =
    [("contend", include_str!("scenarios/contend.toml")), ("hold", include_str!("scenarios/hold.toml"))];

fn checkers(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("checkers");
    group.sample_size(10);
    for (name, text) in SCENARIOS {
        let source = parse(name, text).expect("a scenario");
        let plan = Plan::draw(&source.variants[0].scenario, 1);
        let go = || run(&plan, name, Engine::Event, TraceRetention::Nothing);
        let history = go().history;
        group.bench_function(BenchmarkId::new(name, "run"), |b| b.iter(go));
        group.bench_function(BenchmarkId::new(name, "check"), |b| b.iter(|| check(&history)));
    }
    group.finish();
}

criterion_group! { name = benches; config = processor::criterion(); targets = checkers }
criterion_main!(benches);
