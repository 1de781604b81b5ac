//! Locks that share a name, and so a key in Redis: the conditions that they must meet.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::{Lock, Scenario, error::Mistake, limits, places::Places, word};
use crate::judge::object;

/// Checks that locks with one name are of kinds that can form one lock, and that they live on the
/// same nodes.
pub(super) fn check(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    let mut by_key: IndexMap<&str, Vec<(&String, &Lock)>> = IndexMap::new();
    for (named, key) in scenario.lock.iter().zip(scenario.lock.keys_in_redis()) {
        if key.is_empty() && limits::are_of_client(named.1) {
            let message = "the client takes no lock without a name: give it one";
            return Err(Mistake::at(places.of_key(&["lock", named.0]), message));
        }
        let before = by_key.entry(key).or_default();
        before.push(named);
        let (&[.., (name, lock)], true) = (&before[..], before.len() > 1) else { continue };
        let wrong = |path: &str, message: String| {
            Err(Mistake::at(places.of_value(&["lock", name.as_str(), path]), message))
        };
        let is_same = |(_, other): &&(&String, &Lock)| {
            (other.kind, other.subject, &other.traits) == (lock.kind, lock.subject, &lock.traits)
        };
        if before[..before.len() - 1].iter().any(|other| is_same(&other)) {
            let message = format!("two locks live in the key {key:?}: give each a `name` of its own");
            return Err(Mistake::at(places.of_key(&["lock", name, "name"]), message));
        }
        let kinds: Vec<_> = before.iter().map(|(_, lock)| lock.kind).collect();
        if let Err(object::Apart { kind, other, why }) = object::of_one_name(&kinds) {
            let (kind, other) = (word(kind), word(other));
            let message = format!(
                "locks of the kinds \"{kind}\" and \"{other}\" cannot have one name, {key:?}: \"{kind}\" {why}"
            );
            return wrong("kind", message);
        }
        let nodes = |lock: &Lock| scenario.lock_nodes(lock).into_iter().collect::<BTreeSet<_>>();
        let (first, here) = (nodes(before[0].1), nodes(lock));
        if first != here {
            let list = |nodes: &BTreeSet<String>| nodes.iter().cloned().collect::<Vec<_>>().join(", ");
            let message = format!(
                "locks under one name live on the same nodes: {name} on {}, and {} on {}",
                list(&here),
                before[0].0,
                list(&first)
            );
            return wrong("nodes", message);
        }
        if kinds.iter().any(|kind| kind.needs_quorum()) && here.len() > 1 && !scenario.is_cluster() {
            let others = before.iter().map(|(_, lock)| lock.kind).find(|kind| !kind.needs_quorum());
            let Some(other) = others else { continue };
            let message = format!(
                "a \"redlock\" needs most of {} masters, and a \"{}\" lock is on one of them, so that they do not keep each \
                 other out: give both one node",
                here.len(),
                word(other)
            );
            return wrong("nodes", message);
        }
    }
    Ok(())
}
