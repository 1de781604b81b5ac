//! Measures whole runs, one after the other on one core, from the plan to the verdicts: seeds per
//! second, by engine.
//!
//! `cargo bench --bench locks`. Every run simulates 60 seconds, so multiply the seeds per second by
//! 60 for simulated seconds per second.

mod processor;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use lockstorm::{
    file::{plan::Plan, scenario::parse},
    judge::verdict::Match,
    run::runner::{Case, judge},
    run::{Engine, run},
};
use lockstorm_world::TraceRetention;
use processor::Processor;

const SCENARIOS: [(&str, &str); 2] =
    [("contend", include_str!("scenarios/contend.toml")), ("hold", include_str!("scenarios/hold.toml"))];

fn locks(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("locks");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).throughput(Throughput::Elements(1));
    for (name, text) in SCENARIOS {
        let source = parse(name, text).expect("a scenario");
        for (number, variant) in source.variants.iter().enumerate() {
            let name = format!("{name} {}", variant.name);
            // The third engine is real time: there a minute takes a minute.
            for engine in [Engine::Event, Engine::Turmoil] {
                let mut seed = 0;
                group.bench_function(BenchmarkId::new(name.trim_end(), engine.name()), |b| {
                    b.iter(|| {
                        seed += 1;
                        let plan = Plan::draw(&variant.scenario, seed);
                        let outcome = run(&plan, &name, engine, TraceRetention::Nothing);
                        let judged = judge(variant, Case { source: 0, variant: number, seed }, &outcome);
                        assert_eq!(judged.verdict(), Match::AsExpected, "{name} with seed {seed}");
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group! { name = benches; config = processor::criterion(); targets = locks }
criterion_main!(benches);
