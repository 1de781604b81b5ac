//! An operator who moves slots of a cluster with their keys between masters, like `redis-cli
//! --cluster reshard`, but through the consoles of the nodes.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use lockstorm_sim::cluster::{SlotSet, key_slot};
use lockstorm_world::HostCtx;

use super::{Stage, operator::Operated};
use crate::{
    file::fault::Moved,
    judge::history::{Lock, Serving},
};

/// The timeout of MIGRATE in milliseconds, equal to that of `redis-cli`.
const TIMEOUT_MS: u32 = 60_000;

/// Moves the slots to the master `to`, and waits `step` between the stages. Stops if a node refuses
/// a command, as `redis-cli` does.
pub(super) async fn reshard(ctx: HostCtx, stage: Rc<Stage>, moved: Moved, to: String, step: Duration) {
    let slots = slots_of(&stage, moved);
    let moved = async {
        let target = node(&stage, &to)?;
        let target_id = target.cluster_id()?;
        let mut sources = Vec::new();
        for slot in slots {
            let Some((name, source)) = master(&stage, slot).filter(|(name, _)| *name != to) else { continue };
            let source_id = source.cluster_id()?;
            sources.push((slot, name, source, source_id));
        }
        for (slot, _, source, source_id) in &sources {
            set_slot(&*target, *slot, &["IMPORTING", source_id]).await?;
            set_slot(&**source, *slot, &["MIGRATING", &target_id]).await?;
        }
        ctx.wire_delay(step).await;
        for (slot, _, source, _) in &sources {
            let keys = match source.is_process() {
                true => asked_keys(&**source, *slot).await?,
                false => source.keys_of(*slot),
            };
            if keys.is_empty() {
                continue;
            }
            let timeout = TIMEOUT_MS.to_string();
            let words = ["MIGRATE", &to, "6379", "", "0", &timeout, "REPLACE", "KEYS"].map(str::to_owned);
            ask(&**source, words.into_iter().chain(keys).collect()).await?;
        }
        ctx.wire_delay(step).await;
        for (slot, _, source, _) in &sources {
            set_slot(&*target, *slot, &["NODE", &target_id]).await?;
            set_slot(&**source, *slot, &["NODE", &target_id]).await?;
        }
        Some(())
    };
    let done = moved.await.is_some();
    ctx.observe("reshard", format!("to {to}: {}", if done { "done" } else { "given up" }));
}

/// Asks each old master of the slots to move them by itself.
pub(super) async fn migrate(ctx: HostCtx, stage: Rc<Stage>, moved: Moved, to: String) {
    let slots = slots_of(&stage, moved);
    let asked = async {
        let target_id = node(&stage, &to)?.cluster_id()?;
        let mut sources: BTreeMap<String, (Rc<dyn Operated>, SlotSet)> = BTreeMap::new();
        for slot in slots {
            let Some((name, source)) = master(&stage, slot).filter(|(name, _)| *name != to) else { continue };
            sources.entry(name).or_insert_with(|| (source, SlotSet::default())).1.add(slot);
        }
        for (source, slots) in sources.into_values() {
            let ranges = slots.ranges().into_iter();
            let ranges = ranges.flat_map(|(first, last)| [first.to_string(), last.to_string()]);
            let words =
                ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE"].map(str::to_owned).into_iter().chain(ranges);
            let words = words.chain(["NODE".to_owned(), target_id.clone()]);
            ask(&*source, words.collect()).await?;
        }
        Some(())
    };
    let asked = asked.await.is_some();
    ctx.observe("reshard", format!("to {to}: {}", if asked { "asked for" } else { "given up" }));
}

/// Returns the slots to move.
fn slots_of(stage: &Stage, moved: Moved) -> Vec<u16> {
    match moved {
        Moved::Slots(slots) => slots.0.iter().collect(),
        Moved::OfLock(name) => {
            let lock = name.and_then(|name| stage.plan.lock(&name)).unwrap_or(Lock(0));
            vec![key_slot(stage.plan.entries_of(lock).next().expect("it is on trial").key.as_bytes())]
        }
    }
}

async fn set_slot(node: &dyn Operated, slot: u16, what: &[&str]) -> Option<()> {
    let slot = slot.to_string();
    let words = ["CLUSTER", "SETSLOT", &slot].into_iter().chain(what.iter().copied());
    ask(node, words.map(str::to_owned).collect()).await
}

/// Sends a command through a node's console. Returns `None` if the node refuses it.
async fn ask(node: &dyn Operated, command: Vec<String>) -> Option<()> {
    node.console().ask(command).await.filter(|answer| answer.starts_with('+')).map(|_| ())
}

/// The most keys of a slot that a real node is asked for at a time; a test has fewer.
const KEYS_MAX: usize = 100;

/// Asks a real node for its keys in a slot.
async fn asked_keys(node: &dyn Operated, slot: u16) -> Option<Vec<String>> {
    let words = ["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &KEYS_MAX.to_string()];
    let answer = node.console().ask(words.map(str::to_owned).to_vec()).await?;
    keys_of(&answer)
}

/// Reads an array of keys. Returns `None` if the answer is an error.
fn keys_of(answer: &str) -> Option<Vec<String>> {
    let mut lines = answer.strip_prefix('*')?.split("\r\n");
    lines.next()?;
    let mut keys = Vec::new();
    while let (Some(_), Some(key)) = (lines.next(), lines.next()) {
        keys.push(key.to_owned());
    }
    Some(keys)
}

fn node(stage: &Stage, name: &str) -> Option<Rc<dyn Operated>> {
    stage.nodes.borrow().get(name).cloned()
}

/// Returns the node that considers itself the master of a slot. Of several, prefers one that
/// answers.
pub(super) fn master(stage: &Stage, slot: u16) -> Option<(String, Rc<dyn Operated>)> {
    let nodes = stage.nodes.borrow();
    let of = |wanted: fn(Serving) -> bool| {
        let mut of = nodes.iter().filter(|(_, node)| node.serving(slot).is_some_and(wanted));
        of.next().map(|(name, node)| (name.clone(), node.clone()))
    };
    of(Serving::answers).or_else(|| of(Serving::is_master))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_slot_are_read_from_the_answer() {
        let keys = |answer| keys_of(answer).map(|keys| keys.join(","));
        assert_eq!(keys("*0"), Some(String::new()));
        assert_eq!(keys("*2\r\n$3\r\na b\r\n$1\r\nc"), Some("a b,c".to_owned()));
        assert_eq!(keys("-ERR This instance has cluster support disabled"), None);
    }
}
