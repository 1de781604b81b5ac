//! RESTORE of payloads that were damaged and sealed again returns a value or an error, and every
//! restored value can be read, changed, copied and dumped.

mod bench;

use std::sync::LazyLock;

use bench::Bench;
use bytes::Bytes;
use lockstorm_sim::{
    durability::rdb::{seal, unseal},
    generation::Generation,
};
use proptest::prelude::*;

/// The payload that DUMP returns for `k`, without its seal.
fn dump(bench: &mut Bench) -> Vec<u8> {
    let reply = bench.line("DUMP k");
    let start = reply.iter().position(|byte| *byte == b'\n').expect("a bulk string") + 1;
    unseal(&reply[start..reply.len() - 2], true, Generation::default())
        .expect("what was just dumped")
        .to_vec()
}

/// Payloads of every type and encoding.
static PAYLOADS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let words = |n: usize| (0..n).map(|at| format!(" word:{at}:{}", at * at)).collect::<String>();
    let scored = |n: usize| (0..n).map(|at| format!(" {}.5 m{at}", at * 7)).collect::<String>();
    let setups = [
        vec!["SET k 12345".into()],
        vec![format!("SET k {}", "abc".repeat(50))],
        vec![format!("RPUSH k 1 -70000{}", words(30))],
        vec!["SADD k 1 2 3000 70000 9999999999".into()],
        vec![format!("SADD k{}", words(20))],
        vec![format!("HSET k f 1{} v{}", words(10), words(9))],
        vec![format!("HSET k{} {}", words(9), "w".repeat(100))],
        vec![format!("ZADD k{}", scored(20))],
        vec![format!("ZADD k{}", scored(200))],
        vec!["PFADD k a b c d e f".into()],
        vec![
            "XADD k 1-1 a 1 b 2".into(),
            "XADD k 1-2 a 3 b 4".into(),
            "XADD k 2-1 other v".into(),
            "XADD k 5-5 a 1 b 2".into(),
            "XDEL k 1-2".into(),
            "XGROUP CREATE k g 0".into(),
            "XGROUP CREATE k empty $".into(),
            "XREADGROUP GROUP g c1 COUNT 2 STREAMS k >".into(),
            "XREADGROUP GROUP g c2 COUNT 1 STREAMS k >".into(),
            "XGROUP CREATECONSUMER k g idle".into(),
        ],
    ];
    let payload = |setup: Vec<String>| {
        let mut bench = Bench::new(5);
        for line in setup {
            bench.line(&line);
        }
        // Without compression, so that a changed byte is a byte of the value.
        bench.line("CONFIG SET rdbcompression no");
        dump(&mut bench)
    };
    setups.into_iter().map(payload).collect()
});

/// Commands of every type; those for other types return WRONGTYPE.
const USES: &[&str] = &[
    "TYPE k",
    "OBJECT ENCODING k",
    "MEMORY USAGE k",
    "DUMP k",
    "GET k",
    "APPEND k x",
    "STRLEN k",
    "BITCOUNT k",
    "PFCOUNT k",
    "PFADD k x",
    "LRANGE k 0 -1",
    "LINDEX k -1",
    "LREM k 0 1",
    "RPOP k",
    "SMEMBERS k",
    "SRANDMEMBER k -5",
    "SADD k 1 x",
    "SPOP k",
    "SSCAN k 0",
    "HGETALL k",
    "HSET k f v g 2",
    "HDEL k f",
    "HRANDFIELD k -5 WITHVALUES",
    "ZRANGE k 0 -1 WITHSCORES",
    "ZRANGEBYSCORE k -inf +inf",
    "ZADD k 1 m1 inf x",
    "ZRANK k m1",
    "ZPOPMAX k",
    "SORT k ALPHA LIMIT 0 5",
    "XLEN k",
    "XRANGE k - +",
    "XREVRANGE k + -",
    "XREAD STREAMS k 0",
    "XINFO STREAM k FULL",
    "XINFO STREAM k",
    "XINFO GROUPS k",
    "XINFO CONSUMERS k g",
    "XPENDING k g",
    "XPENDING k g - + 10",
    "XREADGROUP GROUP g c1 STREAMS k 0",
    "XREADGROUP GROUP g c1 STREAMS k >",
    "XREADGROUP GROUP empty c STREAMS k >",
    "XAUTOCLAIM k g c3 0 0",
    "XCLAIM k g c3 0 1-1 2-1",
    "XACK k g 1-1 2-1",
    "XADD k * f v",
    "XDEL k 1-1",
    "XTRIM k MAXLEN 1",
    "XSETID k 9-9",
    "XGROUP DELCONSUMER k g c1",
    "XGROUP DESTROY k g",
    "COPY k copy",
    "DEBUG RELOAD",
    "DUMP copy",
    "RENAME copy k",
    "DEL k",
];

/// A damage to a payload.
#[derive(Debug, Clone)]
enum Change {
    Set(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    Cut(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    // Lengths and marks consist of small numbers and ends of ranges.
    let byte =
        || prop_oneof![any::<u8>(), 0u8..4, Just(0x7f), Just(0x80), Just(0x81), Just(0xf0), Just(0xff)];
    prop_oneof![
        6 => (at(), byte()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => at().prop_map(Change::Remove),
        1 => (at(), byte()).prop_map(|(at, byte)| Change::Insert(at, byte)),
        1 => at().prop_map(Change::Cut),
    ]
}

fn tamper(payload: &mut Vec<u8>, change: Change) {
    match change {
        _ if payload.is_empty() => {}
        Change::Set(at, byte) => {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        Change::Remove(at) => drop(payload.remove(at.index(payload.len()))),
        Change::Insert(at, byte) => payload.insert(at.index(payload.len() + 1), byte),
        Change::Cut(at) => payload.truncate(at.index(payload.len())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_restored_can_be_used_and_what_is_not_is_refused(
        from in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 0..4),
    ) {
        let mut payload = from.get(&PAYLOADS).clone();
        changes.into_iter().for_each(|change| tamper(&mut payload, change));
        let sealed: Bytes = seal(payload, Generation::default());
        let mut bench = Bench::new(5);
        for uses in USES.chunks(3) {
            // Restored again every few commands, so that each command meets the original value.
            let reply = bench.call(&[b"RESTORE", b"k", b"0", &sealed, b"REPLACE"]);
            if reply != b"+OK\r\n" {
                prop_assert_eq!(String::from_utf8_lossy(&reply), "-ERR Bad data format\r\n");
                break;
            }
            for line in uses {
                prop_assert!(!bench.line(line).is_empty(), "{} is answered", line);
            }
        }
    }
}

#[test]
fn every_payload_is_restored_as_it_is() {
    for payload in PAYLOADS.iter() {
        let mut bench = Bench::new(5);
        let reply = bench.call(&[b"RESTORE", b"k", b"0", &seal(payload.clone(), Generation::default())]);
        assert_eq!(reply, b"+OK\r\n", "type {}", payload[0]);
        bench.line("CONFIG SET rdbcompression no");
        // Tables have an order of their own, which a copy need not share.
        assert_eq!(dump(&mut bench).len(), payload.len(), "type {}", payload[0]);
    }
}
