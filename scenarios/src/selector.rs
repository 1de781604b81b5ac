//! Whom a fault or a link is about: hosts by name, or by the part they play.

use std::{fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::Spanned;

use crate::name::Name;

/// One way to say which hosts are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// The host, or the hosts of the group, with this name.
    Named(String),
    /// `@nodes`: every Redis node.
    Nodes,
    /// `@clients`: every client.
    Clients,
    /// `@any-node`: one node, drawn from the seed each time.
    AnyNode,
    /// `@any-client`: one client, drawn from the seed each time.
    AnyClient,
    /// `@minority`: as many nodes as can be lost without losing a majority, drawn from the seed each time.
    Minority,
    /// `@holder`: the client that holds the lock when the fault begins.
    Holder,
    /// `@waiter`: the client that has waited longest when the fault begins.
    Waiter,
    /// `@master`: the master of the lock when the fault begins; of two that are masters of one group of replicas, the one that
    /// was promoted last. A lock on several masters has no such node.
    Master,
    /// `@replica`: a replica when the fault begins, the first by name.
    Replica,
}

/// The selectors that are no names.
pub const ROLES: [(&str, Selector); 9] = [
    ("@nodes", Selector::Nodes),
    ("@clients", Selector::Clients),
    ("@any-node", Selector::AnyNode),
    ("@any-client", Selector::AnyClient),
    ("@minority", Selector::Minority),
    ("@holder", Selector::Holder),
    ("@waiter", Selector::Waiter),
    ("@master", Selector::Master),
    ("@replica", Selector::Replica),
];

/// One line about each of them, for `lockstorm list selectors`.
pub const ABOUT: &[(&str, &str)] = &[
    ("name", "the host, or every host of the group, with this name"),
    ("@nodes", "every Redis node"),
    ("@clients", "every client"),
    ("@any-node", "one node, drawn from the seed for each occurrence"),
    ("@any-client", "one client, drawn from the seed for each occurrence"),
    ("@minority", "as many nodes as can be lost without losing a majority, drawn from the seed"),
    ("@holder", "the client that holds the lock when the fault begins"),
    ("@waiter", "the client that has waited longest when the fault begins"),
    ("@master", "the master of the lock when the fault begins; of two in one group, the one promoted last"),
    ("@replica", "a replica when the fault begins"),
];

impl FromStr for Selector {
    type Err = String;
    fn from_str(text: &str) -> Result<Selector, String> {
        if !text.starts_with('@') {
            return Ok(Selector::Named(text.to_owned()));
        }
        ROLES.iter().find(|(name, _)| *name == text).map(|(_, selector)| selector.clone()).ok_or_else(|| {
            let known: Vec<&str> = ROLES.iter().map(|(name, _)| *name).collect();
            format!("unknown selector `{text}`, expected a host's name or one of `{}`", known.join("`, `"))
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Named(name) => f.write_str(name),
            role => {
                f.write_str(ROLES.iter().find(|(_, selector)| selector == role).map_or("@", |(name, _)| name))
            }
        }
    }
}

/// One selector, `"c1"`, or a list of them, `["a", "@any-client"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts(Vec<Name>);

impl Hosts {
    /// The selectors as written, each with its place in the file.
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
        /// What stands there, before its place is known.
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
            "description": "a host's name, a selector such as \"@any-client\", or a list of them",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
        })
    }
}
