//! Builds histories from bytes: bytes shrink well, and leaving some out or making some smaller
//! always yields another history.

pub(crate) mod noise;
mod parts;
pub(crate) mod world;

use lockstorm::judge::history::{
    Authority, Bounds, Clock, Drift, Ended, Fence, Header, History, Host, HostInfo, HostKind, LockInfo,
    LockKind, Owner, Resource, Segment,
};
use lockstorm_world::time::True;
use proptest::{
    arbitrary::any,
    collection::vec,
    strategy::Strategy,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use std::time::Duration;

/// The source of a history: its setup, and its steps.
pub(crate) type Bytes = ([u8; 12], Vec<[u8; 6]>);

/// Up to `steps_max` steps, enough for a lost hold, two that follow and a late write.
fn bytes(steps_max: usize) -> impl Strategy<Value = Bytes> {
    (any::<[u8; 12]>(), vec(any::<[u8; 6]>(), 0..steps_max))
}

/// A source of randomness for proptest, so that a seed always gives the same history.
pub(crate) fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Picks one of several, the first for a zero.
fn one_of<T: Copy>(from: &[T], byte: u8) -> T {
    from[usize::from(byte) % from.len()]
}

fn ms(millis: i64) -> True {
    True::from_millis(millis)
}

/// Leases in milliseconds: some are shorter than the allowance for drift, some end at one instant
/// when taken one after the other.
const LEASES: &[Option<u64>] =
    &[Some(1_000), Some(500), Some(2_000), Some(10_000), Some(100), Some(10), None, Some(30_000)];

/// The time to the next step: mostly zero or a round time, so that instants coincide.
const STEPS: &[Duration] = &[
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_millis(1),
    Duration::from_millis(100),
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_millis(10),
    Duration::from_nanos(1),
    Duration::from_millis(1_500),
    Duration::from_secs(5),
];

/// The hosts and locks that some bytes determine: up to five nodes, then up to four clients with
/// two owners each, then a resource.
struct Cast {
    history: History,
    nodes: Vec<Host>,
    clients: Vec<Host>,
    shop: Host,
    owners: Vec<Owner>,
    /// True if the nodes form a cluster and report, for each lock, their relation to its slot.
    in_cluster: bool,
}

fn cast(of: &[u8; 12]) -> Cast {
    let (node_count, quorum) = one_of(&[(1, false), (2, false), (3, true), (5, true), (4, true)], of[0]);
    let client_count = 2 + usize::from(of[1] % 3);
    let host = |kind: HostKind, name: String| HostInfo::new(name, kind);
    let mut hosts: Vec<HostInfo> =
        (0..node_count).map(|at| host(HostKind::Node, format!("n{}", at + 1))).collect();
    hosts.extend((0..client_count).map(|at| host(HostKind::Client, format!("c{}", at + 1))));
    hosts.push(host(HostKind::Resource, "shop".to_owned()));
    let nodes: Vec<Host> = (0..node_count as u16).map(Host).collect();
    let clients: Vec<Host> = (0..client_count as u16).map(|at| Host(node_count as u16 + at)).collect();
    let shop = Host(hosts.len() as u16 - 1);
    let lock = |name: &str, kind: LockKind| {
        let constant = Drift { per_mille: 0, plus_ms: 102 };
        let drift = one_of(&[Drift::default(), Drift::REDLOCK, constant], of[2]);
        // Neither readers nor permits use a quorum.
        let kind = if quorum && kind != LockKind::Fair { LockKind::Exclusive } else { kind };
        let authority = match quorum {
            true => Authority::majority(nodes.clone(), drift),
            false => Authority::group(nodes.clone()),
        };
        let (keys, lasting_keys) = (vec![name.into()], vec![format!("{name}:token").into()]);
        let passing_keys = vec![format!("{name}:latch:").into()];
        LockInfo { name: name.into(), kind, keys, lasting_keys, passing_keys, authority }
    };
    let kinds = [
        LockKind::Exclusive,
        LockKind::Fair,
        LockKind::ReadWrite,
        LockKind::Semaphore { permits: 1 },
        LockKind::Exclusive,
        LockKind::Semaphore { permits: 2 },
        LockKind::Permits { permits: 2 },
        LockKind::Latch { count: 2 },
        LockKind::Rate { permits: 3, window_ms: 1_000, per_client: false },
        LockKind::Rate { permits: 2, window_ms: 1_000, per_client: true },
    ];
    let mut locks = vec![lock("stock", one_of(&kinds, of[3]))];
    if of[4] % 4 == 3 {
        locks.push(lock("till", one_of(&kinds, of[3] / 8)));
    }
    let mut header = Header::new("generated", hosts, locks, True::ZERO);
    header.resource = (of[5] % 4 < 3).then(|| Resource {
        host: shop,
        fence: one_of(&[Fence::Greater, Fence::AtLeast, Fence::None], of[5]),
    });
    if of[6] % 8 == 7 {
        header.ended = Ended::Early("too many events".into());
    }
    if of[7] % 4 == 3 {
        header.engine = "real".into();
    }
    header.bounds = Bounds {
        progress: Duration::from_secs(one_of(&[1, 5], of[8])),
        wake: Duration::from_millis(one_of(&[100, 1_000], of[8] / 2)),
        attempts_per_second: one_of(&[3, 1, 100], of[8] / 4),
        overtaken: one_of(&[0, 1, 100], of[8] / 16),
    };
    if of[6] / 8 % 4 == 3 {
        let last = clients.last().expect("there are two clients at least");
        header.hosts[usize::from(last.0)].kind = HostKind::Probe;
    }
    let mut history = History::new(header);
    for (at, host) in nodes.iter().chain(&clients).enumerate() {
        let byte = of[9 + at % 3].wrapping_mul(at as u8 + 1);
        let ahead = one_of(&[0, 0, 1_500_000, -700, 40_000], byte) * 1_000_000;
        let rate = 1_000_000_000 + one_of(&[0, 0, 0, 20_000_000, -20_000_000, 1], byte / 5);
        let first = Segment { from: True::ZERO, readings: [ahead, 0, 0], rates: [rate; 3] };
        history.clocks[usize::from(host.0)] = Clock::try_from(vec![first]).expect("one piece");
    }
    let two = |client: &Host| {
        let name = history_name(&history, *client);
        [1, 2].map(|number| (format!("{name}:{number}"), *client))
    };
    let names: Vec<(String, Host)> = clients.iter().flat_map(two).collect();
    // The first owner of each client first, so that small bytes mean owners of different clients.
    let firsts = names.iter().step_by(2).chain(names.iter().skip(1).step_by(2)).cloned().collect::<Vec<_>>();
    let owners = firsts.iter().map(|(name, client)| history.owner(name, *client)).collect();
    let in_cluster = !quorum && of[7] / 4 % 4 == 3;
    Cast { history, nodes, clients, shop, owners, in_cluster }
}

fn history_name(history: &History, host: Host) -> String {
    history.host_name(host).to_owned()
}
