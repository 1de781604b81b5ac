//! Slots of a cluster in the notation of scenario files.

use std::{fmt, str::FromStr};

use lockstorm_sim::cluster::{SLOTS, SlotSet};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Slots, written as in CLUSTER NODES: `"0-5460 9000"`; an empty text contains none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots(pub SlotSet);

/// The error for a text that is not a list of slots.
const EXPECTED: &str = "expected slots such as \"0-5460 9000\", each from 0 to 16383";

impl Slots {
    /// Divides slots among this number of nodes, evenly and in order.
    pub(crate) fn share(slots: &[u16], nodes: usize) -> Vec<Slots> {
        let part = |number: usize| (number * slots.len() + nodes / 2) / nodes.max(1);
        let shares = (0..nodes).map(|number| {
            let mut share = Slots::default();
            slots[part(number)..part(number + 1)].iter().for_each(|slot| _ = share.0.add(*slot));
            share
        });
        shares.collect()
    }
}

impl FromStr for Slots {
    type Err = String;
    fn from_str(text: &str) -> Result<Slots, String> {
        let mut slots = Slots::default();
        for word in text.split_whitespace() {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let number = |text: &str| text.parse::<u16>().ok().filter(|slot| *slot < SLOTS);
            let (first, last) = number(first).zip(number(last)).ok_or_else(|| EXPECTED.to_owned())?;
            if first > last {
                return Err(format!("{word:?} ends before it begins"));
            }
            for slot in first..=last {
                if !slots.0.add(slot) {
                    return Err(format!("slot {slot} is named twice"));
                }
            }
        }
        Ok(slots)
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.words())
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Slots, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Slots {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Slots".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^\s*(\d+(-\d+)?(\s+\d+(-\d+)?)*\s*)?$",
            "description": "slots of a cluster, such as \"0-5460 9000\""
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_printed_as_they_are_written() {
        for text in ["", "0", "0-5460 9000", "16383"] {
            assert_eq!(text.parse::<Slots>().expect("slots").to_string(), text);
        }
        for (text, wrong) in [
            ("16384", EXPECTED),
            ("-1", EXPECTED),
            ("a", EXPECTED),
            ("0-16384", EXPECTED),
            ("9-1", "\"9-1\" ends before it begins"),
            ("0-9 9", "slot 9 is named twice"),
        ] {
            assert_eq!(text.parse::<Slots>(), Err(wrong.to_owned()), "{text}");
        }
    }

    #[test]
    fn slots_are_shared_out_as_redis_cli_does() {
        let all: Vec<u16> = (0..SLOTS).collect();
        let shared = |nodes| Slots::share(&all, nodes).iter().map(Slots::to_string).collect::<Vec<_>>();
        assert_eq!(shared(1), ["0-16383"]);
        assert_eq!(shared(2), ["0-8191", "8192-16383"]);
        assert_eq!(shared(3), ["0-5460", "5461-10922", "10923-16383"]);
        assert_eq!(Slots::share(&[7], 3).iter().map(Slots::to_string).collect::<Vec<_>>(), ["", "7", ""]);
        assert_eq!(Slots::share(&all, 0), []);
    }
}
