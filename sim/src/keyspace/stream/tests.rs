//! Entries in stream nodes: lookups, trimming, and positions known without counting.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::keyspace::Encodings;

fn id(ms: u64) -> StreamId {
    StreamId { ms, seq: 0 }
}

fn small() -> Encodings {
    Encodings { stream_node_entries_max: 3, ..Encodings::default() }
}

fn filled(ids: impl IntoIterator<Item = u64>) -> Log {
    let mut log = Log::default();
    for ms in ids {
        log.append(id(ms), &["f".into(), Bytes::from(ms.to_string())], &small());
    }
    log
}

fn ids(log: &Log) -> Vec<u64> {
    log.iter().map(|entry| entry.id().ms).collect()
}

#[test]
fn trimming_by_about_takes_whole_nodes_within_its_limit() {
    for (keep, approximate, limit, left) in [
        (Keep::Newest(4), false, 0, 4),
        (Keep::Newest(4), true, 0, 6),
        (Keep::Newest(0), true, 5, 6),
        (Keep::Newest(0), true, 2, 9),
        (Keep::Newest(9), false, 0, 9),
        (Keep::From(id(5)), false, 0, 5),
        (Keep::From(id(5)), true, 0, 6),
        (Keep::From(id(100)), true, 0, 0),
        (Keep::From(id(100)), true, 6, 3),
    ] {
        let mut log = filled(1..=9);
        let gone = log.trim(&Trim { keep, approximate, limit });
        assert_eq!((log.len(), gone), (left, 9 - left), "{keep:?} {approximate} {limit}");
        assert_eq!(log.first_id, if left == 0 { StreamId::ZERO } else { id(10 - left as u64) });
        assert_eq!((log.last_id, log.entries_added), (id(9), 9));
    }
}

#[test]
fn a_deleted_entry_keeps_its_place_in_the_node_until_the_node_goes() {
    let mut log = filled(1..=3);
    assert!(log.delete(id(2)) && !log.delete(id(2)) && !log.delete(id(7)));
    log.append(id(4), &["f".into(), "v".into()], &small());
    assert_eq!((log.nodes().len(), log.len()), (2, 3));
    assert!(log.delete(id(1)) && log.delete(id(3)));
    assert_eq!((log.nodes().len(), ids(&log), log.first_id, log.max_deleted_id), (1, vec![4], id(4), id(3)));
}

#[test]
fn entries_behind_deleted_ones_with_higher_ids_are_found() {
    let mut log = filled([1, 4, 5]);
    assert!(log.delete(id(5)) && log.delete(id(4)));
    log.last_id = id(1);
    for ms in [2, 3, 4, 5] {
        log.append(id(ms), &["f".into(), "v".into()], &Encodings::default());
    }
    assert_eq!((ids(&log), log.nodes().len()), (vec![1, 2, 3, 4, 5], 1));
    assert!((2..=5).all(|ms| log.get(id(ms)).is_some_and(|entry| entry.id() == id(ms))));
    assert!(log.delete(id(4)) && log.get(id(4)).is_none() && log.get(id(3)).is_some());
    // A leftover node without live entries does not hide the entries before it.
    let mut log = filled([7, 8, 9]);
    assert!(log.delete(id(9)));
    log.trim(&Trim { keep: Keep::From(id(9)), approximate: false, limit: 0 });
    assert_eq!((log.nodes().len(), log.len()), (1, 0));
    log.last_id = id(1);
    log.append(id(2), &["f".into(), "v".into()], &small());
    assert_eq!((ids(&log), log.nodes().len()), (vec![2], 1));
}

#[test]
fn how_far_a_group_is_behind_is_known_unless_deletions_hide_it() {
    let mut stream = Stream { log: filled(1..=5), ..Stream::default() };
    let lag = |stream: &Stream, last, read| stream.lag(&Group::new(id(last), read));
    assert_eq!(lag(&stream, 0, None), Some(5));
    assert_eq!(lag(&stream, 1, None), Some(4));
    assert_eq!(lag(&stream, 2, None), None);
    assert_eq!(lag(&stream, 2, Some(2)), Some(3));
    assert_eq!(lag(&stream, 5, None), Some(0));
    stream.log.delete(id(4));
    assert_eq!(lag(&stream, 2, Some(2)), None);
    assert_eq!(lag(&stream, 4, Some(4)), None);
    assert_eq!(lag(&stream, 5, Some(5)), Some(0));
}

#[test]
fn an_entry_is_pending_for_one_consumer() {
    let mut group = Group::new(StreamId::ZERO, None);
    let (one, two) = (Bytes::from("one"), Bytes::from("two"));
    assert!(
        group.create_consumer(&one, 0) && group.create_consumer(&two, 0) && !group.create_consumer(&one, 9)
    );
    group.assign(id(1), &one, 5, 1);
    group.assign(id(2), &one, 5, 1);
    group.assign(id(1), &two, 6, 2);
    let held = |group: &Group, name: &Bytes| group.consumers()[name].pending().len();
    assert_eq!((held(&group, &one), held(&group, &two), group.pending().len()), (1, 1, 2));
    assert!(group.acknowledge(id(1)).is_some() && group.acknowledge(id(1)).is_none());
    assert_eq!((group.delete_consumer(&one), group.delete_consumer(&one)), (Some(1), None));
    assert!(group.pending().is_empty() && held(&group, &two) == 0);
}

proptest! {
    /// After any additions, deletions and trims, the log holds the same entries as a plain list.
    #[test]
    fn the_log_is_a_list(steps in prop::collection::vec((0u8..4, 0u64..60), 1..80)) {
        let mut log = Log::default();
        let mut list: Vec<u64> = Vec::new();
        let mut last = 0;
        for (step, number) in steps {
            match step {
                0 | 1 => {
                    last += 1 + number % 3;
                    log.append(id(last), &["f".into(), "v".into()], &small());
                    list.push(last);
                }
                2 => {
                    prop_assert_eq!(log.delete(id(number)), list.contains(&number));
                    list.retain(|ms| *ms != number);
                }
                _ => {
                    let keep = if number % 2 == 0 { Keep::Newest(number as usize) } else { Keep::From(id(number)) };
                    log.trim(&Trim { keep, approximate: false, limit: 0 });
                    match keep {
                        Keep::Newest(count) => drop(list.drain(..list.len().saturating_sub(count))),
                        Keep::From(from) => list.retain(|ms| id(*ms) >= from),
                    }
                }
            }
            prop_assert_eq!(ids(&log), &list[..]);
            prop_assert_eq!(log.len(), list.len());
            prop_assert_eq!(log.bytes(), log.nodes().map(Node::bytes).sum::<usize>());
            prop_assert_eq!(log.first_id.ms, list.first().copied().unwrap_or(0));
            let (from, to) = (id(number), id(number + 10));
            let found: Vec<u64> = log.range(from, to).rev().map(|entry| entry.id().ms).collect();
            let expected: Vec<u64> =
                list.iter().rev().copied().filter(|ms| (from..=to).contains(&id(*ms))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
