//! SCAN and its siblings while the keyspace changes: every element that exists from the first call
//! to the last is found.

mod bench;

use std::collections::BTreeSet;

use bench::Bench;
use lockstorm_sim::resp::{Decoder, Limits};
use proptest::prelude::*;

/// One call of a scan: returns the next cursor, and the words after it.
fn scan(bench: &mut Bench, command: &str) -> (u64, Vec<String>) {
    let reply = bench.line(command);
    // The reply is `*2`, the cursor, and an array of bulk strings. The array has the form of a
    // command, so the decoder of commands reads it.
    let rest = reply.strip_prefix(b"*2\r\n$").expect("two elements");
    let line = rest.windows(2).position(|two| two == b"\r\n").expect("the length of the cursor");
    let rest = &rest[line + 2..];
    let end = rest.windows(2).position(|two| two == b"\r\n").expect("the end of the cursor");
    let cursor = String::from_utf8_lossy(&rest[..end]).parse().expect("a cursor");
    let array = &rest[end + 2..];
    if array == b"*0\r\n" {
        return (cursor, Vec::new());
    }
    let mut decoder = Decoder::default();
    decoder.feed(array);
    let words = decoder.next(&Limits::default()).expect("an array").expect("all of it");
    (cursor, words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// The object of a scan, with the commands that scan it, add `n` to it, and remove `n`.
#[derive(Debug, Clone, Copy)]
enum Over {
    Keys,
    Set,
    Hash,
    SortedSet,
}

impl Over {
    fn scan(self, cursor: u64, count: usize) -> String {
        match self {
            Over::Keys => format!("SCAN {cursor} COUNT {count}"),
            Over::Set => format!("SSCAN s {cursor} COUNT {count}"),
            Over::Hash => format!("HSCAN h {cursor} COUNT {count}"),
            Over::SortedSet => format!("ZSCAN z {cursor} COUNT {count}"),
        }
    }

    fn add(self, name: &str) -> String {
        match self {
            Over::Keys => format!("SET {name} v"),
            Over::Set => format!("SADD s {name}"),
            Over::Hash => format!("HSET h {name} v"),
            Over::SortedSet => format!("ZADD z 1 {name}"),
        }
    }

    fn remove(self, name: &str) -> String {
        match self {
            Over::Keys => format!("DEL {name}"),
            Over::Set => format!("SREM s {name}"),
            Over::Hash => format!("HDEL h {name}"),
            Over::SortedSet => format!("ZREM z {name}"),
        }
    }
}

fn over() -> impl Strategy<Value = Over> {
    prop_oneof![Just(Over::Keys), Just(Over::Set), Just(Over::Hash), Just(Over::SortedSet)]
}

/// The change between two calls: this number of elements is added, or of added ones removed.
#[derive(Debug, Clone, Copy)]
enum Between {
    Come(usize),
    Go(usize),
}

/// The number of calls with changes; after them nothing changes.
const CHANGES: usize = 60;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn what_is_there_from_the_first_call_to_the_last_is_found(
        over in over(),
        staying in 1usize..400,
        at_first in 0usize..3000,
        count in 1usize..200,
        between in prop::collection::vec(
            prop_oneof![
                (0usize..40).prop_map(Between::Come),
                (0usize..40).prop_map(Between::Go),
                (1000usize..2000).prop_map(Between::Come),
                (1000usize..4000).prop_map(Between::Go),
            ],
            1..8,
        ),
    ) {
        let mut bench = Bench::new(3);
        let stays: BTreeSet<String> = (0..staying).map(|n| format!("stay:{n}")).collect();
        let mut passing: Vec<String> = Vec::new();
        let mut born = 0;
        let mut come = |bench: &mut Bench, passing: &mut Vec<String>, many: usize| {
            for _ in 0..many {
                born += 1;
                let name = format!("pass:{born}");
                bench.line(&over.add(&name));
                passing.push(name);
            }
        };
        come(&mut bench, &mut passing, at_first);
        stays.iter().for_each(|name| drop(bench.line(&over.add(name))));
        let mut found = BTreeSet::new();
        let (mut cursor, mut calls, mut most_ever) = (0, 0, staying + at_first);
        let mut between = between.iter().cycle();
        loop {
            let (next, words) = scan(&mut bench, &over.scan(cursor, count));
            found.extend(words);
            calls += 1;
            if next == 0 {
                break;
            }
            // Whatever the changes of the table, the iteration ends: a call walks at least one
            // bucket, and their number is the power of two that holds the largest number of
            // elements so far, or four. Twice that is ample.
            prop_assert!(calls <= CHANGES + 2 * most_ever.next_power_of_two().max(4), "it does not end");
            cursor = next;
            // Changes must end, because the table might grow faster than a scan walks it.
            if calls > CHANGES {
                continue;
            }
            match between.next() {
                Some(Between::Come(many)) => come(&mut bench, &mut passing, *many),
                Some(Between::Go(many)) => {
                    let left = passing.len().saturating_sub(*many);
                    for name in passing.split_off(left) {
                        bench.line(&over.remove(&name));
                    }
                }
                None => {}
            }
            most_ever = most_ever.max(staying + passing.len());
        }
        let missed: Vec<&String> = stays.difference(&found).collect();
        prop_assert!(missed.is_empty(), "{missed:?} of {staying} were not found");
    }
}

/// No call inspects many more elements than COUNT, however large the table.
#[test]
fn a_call_is_a_small_step() {
    let mut bench = Bench::new(3);
    (0..20_000).for_each(|n| drop(bench.line(&format!("SADD s member:{n}"))));
    let (cursor, words) = scan(&mut bench, "SSCAN s 0 COUNT 10");
    assert!(cursor != 0 && (10..30).contains(&words.len()), "{} at once", words.len());
}

/// A small collection is returned in one call, whatever COUNT says.
#[test]
fn a_compact_collection_comes_whole() {
    let mut bench = Bench::new(3);
    for n in 0..100 {
        for over in [Over::Hash, Over::SortedSet] {
            bench.line(&over.add(&format!("m:{n}")));
        }
        bench.line(&format!("SADD s {n}"));
    }
    for (over, words) in [(Over::Hash, 200), (Over::SortedSet, 200), (Over::Set, 100)] {
        let (cursor, found) = scan(&mut bench, &over.scan(0, 1));
        assert_eq!((cursor, found.len()), (0, words), "{over:?}");
    }
}
