//! LATENCY DOCTOR: summarizes the spikes. The figures are those of `redis-server`; the text is our
//! own.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "latency|doctor",
    group: Group::Server,
    since: "2.8.13",
    summary: "Explains the latencies.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    let node = &ctx.node;
    let mut text = String::new();
    if node.latency.iter().len() == 0 {
        text.push_str(if node.config.monitoring.latency_monitor_threshold == 0 {
            "Spikes are not looked for: CONFIG SET latency-monitor-threshold <milliseconds> makes the node keep them.\n"
        } else {
            "No spike since the start, or since LATENCY RESET.\n"
        });
    }
    for (at, (event, spikes)) in node.latency.iter().enumerate() {
        let count = spikes.iter().len() as u64;
        let average = spikes.iter().map(|(_, took_ms)| took_ms).sum::<u64>() / count.max(1);
        let apart = spikes.iter().map(|(_, took_ms)| took_ms.abs_diff(average)).sum::<u64>();
        let (number, deviation, worst) = (at + 1, apart / count.max(1), spikes.worst_ms());
        text.push_str(&format!(
            "{number}. {event}: {count} spikes, {average}ms on average (mean deviation {deviation}ms), {worst}ms at worst.\n"
        ));
    }
    Ok(Reply::Verbatim(*b"txt", text.into()))
}
