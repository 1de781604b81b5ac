//! The hosts of a fault or a link, selected by name or by role.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::Spanned;

use crate::file::name::Name;

/// A selection of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The host, or the hosts of the group, with this name.
    Named(String),
    /// `@nodes`: every Redis node.
    Nodes,
    /// `@clients`: every client.
    Clients,
    /// `@sentinels`: every Sentinel.
    Sentinels,
    /// `@any-node`: one node, drawn from the seed for each occurrence.
    AnyNode,
    /// `@any-client`: one client, drawn from the seed for each occurrence.
    AnyClient,
    /// `@any-sentinel`: one Sentinel, drawn from the seed for each occurrence.
    AnySentinel,
    /// `@leader`: the Sentinel that was last elected to lead a failover before the fault begins.
    Leader,
    /// `@minority`: as many nodes as can be lost without losing a majority, drawn from the seed for
    /// each occurrence; in a cluster, as many of its masters.
    Minority,
    /// `@sentinel-minority`: as many Sentinels as can be lost without losing a majority of them,
    /// drawn from the seed for each occurrence.
    SentinelMinority,
    /// `@holder`, or `@holder of stock`: the client that holds the lock when the fault begins; of
    /// several, the one that has held it longest.
    Holder(Option<String>),
    /// `@waiter`, or `@waiter of stock`: the client that has waited longest for the lock when the
    /// fault begins.
    Waiter(Option<String>),
    /// `@master`, or `@master of stock`: the master of the lock when the fault begins. If two nodes
    /// of one group of replicas are masters, it is the one that was promoted last. In a cluster it
    /// is the master of the lock's slot. A lock on several masters has no such node.
    Master(Option<String>),
    /// `@replica`, or `@replica of stock`: a replica of the lock's master when the fault begins,
    /// the first by name.
    Replica(Option<String>),
}

/// A selector by its word. The selectors in [`OF_A_LOCK`] accept the name of a lock as well.
type Word = (&'static str, fn(Option<String>) -> Selector);

/// The selectors that are not about a lock.
const ALONE: &[Word] = &[
    ("@nodes", |_| Selector::Nodes),
    ("@clients", |_| Selector::Clients),
    ("@sentinels", |_| Selector::Sentinels),
    ("@any-node", |_| Selector::AnyNode),
    ("@any-client", |_| Selector::AnyClient),
    ("@any-sentinel", |_| Selector::AnySentinel),
    ("@leader", |_| Selector::Leader),
    ("@minority", |_| Selector::Minority),
    ("@sentinel-minority", |_| Selector::SentinelMinority),
];

/// The selectors that may name a lock after ` of `.
const OF_A_LOCK: &[Word] = &[
    ("@holder", Selector::Holder),
    ("@waiter", Selector::Waiter),
    ("@master", Selector::Master),
    ("@replica", Selector::Replica),
];

/// A line about each selector, for `lockstorm list selectors`.
pub const ABOUT: &[(&str, &str)] = &[
    ("name", "the host, or every host of the group, with this name"),
    ("@nodes", "every Redis node"),
    ("@clients", "every client"),
    ("@sentinels", "every Sentinel"),
    ("@any-node", "one node, drawn from the seed for each occurrence"),
    ("@any-client", "one client, drawn from the seed for each occurrence"),
    ("@any-sentinel", "one Sentinel, drawn from the seed for each occurrence"),
    ("@leader", "the Sentinel that was last elected to lead a failover when the fault begins"),
    (
        "@minority",
        "as many nodes as can be lost without losing a majority, drawn from the seed for each occurrence; in a cluster of its masters",
    ),
    (
        "@sentinel-minority",
        "as many Sentinels as can be lost without losing a majority of them, drawn from the seed for each occurrence",
    ),
    (
        "@holder",
        "the client that holds a lock when the fault begins; of one of several: \"@holder of stock\"",
    ),
    ("@waiter", "the client that has waited longest when the fault begins, or \"@waiter of stock\""),
    (
        "@master",
        "the master of the lock (in a cluster: of its slot) when the fault begins, or \"@master of stock\"; of two the one promoted last",
    ),
    ("@replica", "a replica when the fault begins, or \"@replica of stock\""),
];

impl Selector {
    /// Returns true if the selector can select a node.
    pub fn may_be_node(&self) -> bool {
        match self {
            Selector::Named(_)
            | Selector::Nodes
            | Selector::AnyNode
            | Selector::Minority
            | Selector::Master(_)
            | Selector::Replica(_) => true,
            Selector::Clients
            | Selector::AnyClient
            | Selector::Sentinels
            | Selector::AnySentinel
            | Selector::Leader
            | Selector::SentinelMinority
            | Selector::Holder(_)
            | Selector::Waiter(_) => false,
        }
    }

    /// Returns the lock that it names, if any.
    pub fn lock(&self) -> Option<&str> {
        match self {
            Selector::Holder(lock)
            | Selector::Waiter(lock)
            | Selector::Master(lock)
            | Selector::Replica(lock) => lock.as_deref(),
            _ => None,
        }
    }
}

impl FromStr for Selector {
    type Err = String;
    fn from_str(text: &str) -> Result<Selector, String> {
        if !text.starts_with('@') {
            return Ok(Selector::Named(text.to_owned()));
        }
        let (word, lock) = match text.split_once(" of ") {
            Some((word, lock)) => (word, Some(lock.to_owned())),
            None => (text, None),
        };
        let is_meant = |(known, _): &&Word| *known == word;
        if let Some((_, selector)) = OF_A_LOCK.iter().find(is_meant) {
            return Ok(selector(lock));
        }
        match (ALONE.iter().find(is_meant), lock) {
            (Some((_, selector)), None) => Ok(selector(None)),
            (Some(_), Some(_)) => {
                let words: Vec<&str> = OF_A_LOCK.iter().map(|(word, _)| *word).collect();
                Err(format!("`{word}` is of no lock: only `{}` may name one", words.join("`, `")))
            }
            (None, _) => {
                let known: Vec<&str> = ALONE.iter().chain(OF_A_LOCK).map(|(word, _)| *word).collect();
                Err(format!(
                    "unknown selector `{word}`, expected a host's name or one of `{}`",
                    known.join("`, `")
                ))
            }
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, lock) = match self {
            Selector::Named(name) => (name.as_str(), &None),
            Selector::Nodes => ("@nodes", &None),
            Selector::Clients => ("@clients", &None),
            Selector::Sentinels => ("@sentinels", &None),
            Selector::AnyNode => ("@any-node", &None),
            Selector::AnyClient => ("@any-client", &None),
            Selector::AnySentinel => ("@any-sentinel", &None),
            Selector::Leader => ("@leader", &None),
            Selector::Minority => ("@minority", &None),
            Selector::SentinelMinority => ("@sentinel-minority", &None),
            Selector::Holder(lock) => ("@holder", lock),
            Selector::Waiter(lock) => ("@waiter", lock),
            Selector::Master(lock) => ("@master", lock),
            Selector::Replica(lock) => ("@replica", lock),
        };
        f.write_str(word)?;
        lock.iter().try_for_each(|lock| write!(f, " of {lock}"))
    }
}

/// One selector, `"c1"`, or a list of them, `["a", "@any-client"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts(Vec<Name>);

impl Hosts {
    /// Returns the selectors as written, each with its position in the file.
    pub fn names(&self) -> &[Name] {
        &self.0
    }
}

impl<S: Into<String>> From<S> for Hosts {
    fn from(name: S) -> Hosts {
        Hosts(vec![Name::new(name)])
    }
}

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hosts, D::Error> {
        /// The value as written, without its position.
        enum Written {
            One(String),
            Many(Vec<Name>),
        }
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Written;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a host's name, a selector such as \"@any-client\", or a list of them")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Written, E> {
                Ok(Written::One(name.to_owned()))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut names: A) -> Result<Written, A::Error> {
                let mut all = Vec::new();
                while let Some(name) = names.next_element()? {
                    all.push(name);
                }
                Ok(Written::Many(all))
            }
        }
        impl<'de> Deserialize<'de> for Written {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Written, D::Error> {
                deserializer.deserialize_any(Visitor)
            }
        }
        let written = Spanned::<Written>::deserialize(deserializer)?;
        let span = written.span();
        Ok(Hosts(match written.into_inner() {
            Written::One(name) => vec![Name::at(span, name)],
            Written::Many(names) => names,
        }))
    }
}

impl Serialize for Hosts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }
}

impl JsonSchema for Hosts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hosts".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "a host's name, a selector such as \"@any-client\" or \"@holder of stock\", or a list of them",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_selector_is_printed_as_it_is_written() {
        let words = ALONE.iter().chain(OF_A_LOCK).map(|(word, _)| (*word).to_owned());
        let of_a_lock = OF_A_LOCK.iter().map(|(word, _)| format!("{word} of the stock of gold"));
        for written in words.chain(of_a_lock).chain(["m".to_owned()]) {
            let selector: Selector = written.parse().expect("a selector");
            assert_eq!(selector.to_string(), written);
            assert_eq!(selector.lock(), written.split_once(" of ").map(|(_, lock)| lock));
        }
        let listed: Vec<&str> = ABOUT.iter().skip(1).map(|(word, _)| *word).collect();
        assert_eq!(listed, ALONE.iter().chain(OF_A_LOCK).map(|(word, _)| *word).collect::<Vec<_>>());
    }
}
