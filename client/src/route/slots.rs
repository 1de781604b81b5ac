//! Reads a cluster node's report: the replies to CLUSTER SLOTS and CLUSTER NODES. Pure.

use std::collections::{BTreeMap, BTreeSet};

use redis::Value;

use crate::error::{Error, Result};
use crate::wire::Slot;

/// A range of slots and the server that has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    /// `None` stands for the host that was asked: the node does not know its own address.
    pub(super) host: Option<String>,
    pub(super) port: u16,
    /// The node id in the cluster.
    pub(super) id: Option<String>,
    /// The number of replicas that the cluster knows, including those that are down.
    pub(super) replicas: usize,
    /// The addresses of the replicas that can be asked.
    pub(super) others: Vec<(Option<String>, u16)>,
}

/// The report of one node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct View {
    /// The highest configuration epoch that the node knows.
    pub(super) epoch: u64,
    pub(super) ranges: Vec<Range>,
    /// The ids of masters that are down and have no slots any more. They come back as replicas.
    pub(super) fallen: BTreeSet<String>,
}

impl View {
    pub(super) fn read(slots: &Value, nodes: &Value) -> Result<Self> {
        let text = match nodes {
            Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::VerbatimString { text, .. } | Value::SimpleString(text) => text.clone(),
            other => return Err(Error::unexpected(other)),
        };
        let Value::Array(ranges) = slots else { return Err(Error::unexpected(slots)) };
        let Nodes { epoch, replicas, fallen } = Nodes::read(&text);
        let ranges = ranges.iter().map(|range| read_range(range, &replicas)).collect::<Option<_>>();
        Ok(Self { epoch, ranges: ranges.ok_or_else(|| Error::unexpected(slots))?, fallen })
    }
}

/// The contents of CLUSTER NODES.
#[derive(Default)]
struct Nodes {
    /// The highest configuration epoch.
    epoch: u64,
    /// The number of replicas of each master, by its id.
    replicas: BTreeMap<String, usize>,
    fallen: BTreeSet<String>,
}

impl Nodes {
    fn read(text: &str) -> Self {
        let mut nodes = Self::default();
        for line in text.lines() {
            let fields: Vec<_> = line.split_whitespace().collect();
            let [id, _, flags, master, _, _, epoch, _, slots @ ..] = fields.as_slice() else { continue };
            let is = |wanted: &str| flags.split(',').any(|flag| flag == wanted);
            nodes.epoch = nodes.epoch.max(epoch.parse().unwrap_or(0));
            if is("slave") {
                *nodes.replicas.entry((*master).to_owned()).or_default() += 1;
            } else if is("master") && is("fail") && slots.is_empty() {
                nodes.fallen.insert((*id).to_owned());
            }
        }
        nodes
    }
}

fn read_range(range: &Value, replicas: &BTreeMap<String, usize>) -> Option<Range> {
    let Value::Array(parts) = range else { return None };
    let [Value::Int(first), Value::Int(last), master, others @ ..] = parts.as_slice() else { return None };
    let slot = |number: &i64| u16::try_from(*number).ok().filter(|slot| *slot < Slot::COUNT);
    let (first, last) = (slot(first)?, slot(last)?);
    let (host, port, id) = read_node(master)?;
    let known = id.as_ref().and_then(|id| replicas.get(id)).copied().unwrap_or(0).max(others.len());
    let others = others.iter().filter_map(read_node).map(|(host, port, _)| (host, port)).collect();
    (first <= last).then_some(Range { first, last, host, port, id, replicas: known, others })
}

fn read_node(node: &Value) -> Option<(Option<String>, u16, Option<String>)> {
    let Value::Array(parts) = node else { return None };
    let [host, Value::Int(port), rest @ ..] = parts.as_slice() else { return None };
    let host = text(host).filter(|host| !host.is_empty() && host != "?");
    Some((host, u16::try_from(*port).ok()?, rest.first().and_then(text)))
}

/// Returns the text of a string or number; `None` for other values.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn node(host: Value, port: i64, id: &str) -> Value {
        Value::Array(vec![host, Value::Int(port), bulk(id), Value::Array(Vec::new())])
    }

    #[test]
    fn a_view_of_the_cluster() {
        let slots = Value::Array(vec![
            Value::Array(vec![
                Value::Int(0),
                Value::Int(8191),
                node(bulk("10.0.0.1"), 7000, "a"),
                node(bulk("10.0.0.3"), 7002, "c"),
            ]),
            // A node that does not know its own address.
            Value::Array(vec![Value::Int(8192), Value::Int(16383), node(Value::Nil, 7001, "b")]),
        ]);
        let nodes = "a 10.0.0.1:7000@17000 master - 0 1 1 connected 0-8191\n\
                     c 10.0.0.3:7002@17002,host slave a 0 1 1 connected\n\
                     d :0@0 slave,fail,noaddr a 0 1 1 disconnected\n\
                     e 10.0.0.5:7004@17004 master,fail - 0 1 3 disconnected\n\
                     b :7001@17001 myself,master - 0 1 7 connected 8192-16383 [5->-a]\n";
        let range = |first, last, host: Option<&str>, port, id: &str, replicas, others| Range {
            first,
            last,
            host: host.map(str::to_owned),
            port,
            id: Some(id.to_owned()),
            replicas,
            others,
        };
        let view = View::read(&slots, &bulk(nodes)).unwrap();
        let others = vec![(Some("10.0.0.3".to_owned()), 7002)];
        let first = range(0, 8191, Some("10.0.0.1"), 7000, "a", 2, others);
        let ranges = vec![first, range(8192, 16383, None, 7001, "b", 0, vec![])];
        assert_eq!(view, View { epoch: 7, ranges, fallen: ["e".to_owned()].into() });
        let empty = View::read(&Value::Array(Vec::new()), &bulk("")).unwrap();
        assert_eq!(empty, View { epoch: 0, ranges: Vec::new(), fallen: BTreeSet::new() });
    }

    /// A master that is only suspected, or that has slots still, comes back as a master. A replica
    /// that is down never was one.
    #[test]
    fn a_master_has_fallen_if_it_is_down_and_has_no_slots_any_more() {
        for (flags, slots, has_fallen) in [
            ("master,fail", "", true),
            ("master,fail", "0-5", false),
            ("master,fail?", "", false),
            ("master", "", false),
            ("slave,fail", "", false),
        ] {
            let text = format!("x 10.0.0.1:7000@17000 {flags} - 0 1 3 disconnected {slots}\n");
            let Nodes { fallen, .. } = Nodes::read(&text);
            assert_eq!(fallen.contains("x"), has_fallen, "{flags} {slots}");
        }
    }

    #[test]
    fn what_is_no_view_is_an_error() {
        let node = || node(bulk("h"), 1, "a");
        for bad in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(16384), node()])]),
            Value::Array(vec![Value::Array(vec![Value::Int(2), Value::Int(1), node()])]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(1)])]),
        ] {
            View::read(&bad, &bulk("")).unwrap_err();
        }
        View::read(&Value::Array(Vec::new()), &Value::Int(1)).unwrap_err();
    }
}
