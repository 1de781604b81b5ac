//! The verdict that a scenario expects of a checker, and its comparison with the finding.

use std::{borrow::Cow, collections::BTreeMap, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    Finding, Range, Verdict, lateness,
    share::{CONFIDENCE, Count, Share, percent, read_percent},
};

/// The verdict that a scenario expects: `"holds"`, `"violated"`, or either with bounds on measures,
/// such as `{ violated = { overlap = "20s.." } }`, or with its share of many runs, such as `{
/// violated = "<= 1%", confidence = "95%" }`. *Undecided* cannot be expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// True if the property is expected to hold, false if it is expected to be violated.
    pub holds: bool,
    /// The expected ranges of measures, by name.
    pub measures: BTreeMap<String, Range>,
    /// The expected share of the runs; `None` if every run must agree.
    pub share: Option<Share>,
}

/// The result of comparing a finding with the expectation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "match", content = "because", rename_all = "kebab-case")]
pub enum Match {
    /// The finding agrees.
    AsExpected,
    /// The finding disagrees, in the respect that the text names.
    Otherwise(String),
    /// The history does not decide, for the reason that the text gives.
    Undecided(String),
}

impl Expectation {
    /// Expects the property to hold, whatever the measures are.
    pub fn holds() -> Self {
        Self { holds: true, measures: BTreeMap::new(), share: None }
    }

    /// Expects a violation, of any extent.
    pub fn violated() -> Self {
        Self { holds: false, measures: BTreeMap::new(), share: None }
    }

    /// Adds the expectation that this measure lies in this range.
    #[must_use]
    pub fn with(mut self, measure: &str, range: Range) -> Self {
        self.measures.insert(measure.to_owned(), range);
        self
    }

    /// Returns `holds` or `violated`.
    pub fn word(&self) -> &'static str {
        if self.holds { "holds" } else { "violated" }
    }

    /// Returns the expected share, and the count of runs that it applies to. If the property is
    /// expected to hold, the runs in which it holds count; otherwise the violated ones.
    pub fn share_of(&self, violated: Count) -> Option<(&Share, Count)> {
        let holds = Count { yes: violated.no, no: violated.yes, ..violated };
        self.share.as_ref().map(|share| (share, if self.holds { holds } else { violated }))
    }

    /// Compares a finding with the expectation. A time that misses its bounds by no more than the
    /// [tolerance](Finding::tolerance) decides nothing. An expected share of many runs does not
    /// apply to a single run, so any finding is as expected; see [`Share::judge`].
    pub fn matches(&self, finding: &Finding) -> Match {
        if self.share.is_some() {
            return Match::AsExpected;
        }
        let holds = match &finding.verdict {
            Verdict::Undecided { because } => return Match::Undecided(because.clone()),
            Verdict::Holds { .. } => true,
            Verdict::Violated { .. } => false,
        };
        if holds != self.holds {
            return Match::Otherwise(format!("expected {}, found {}", self.word(), finding.verdict.word()));
        }
        if let Some(off) = self.off(finding, finding.tolerance) {
            return Match::Otherwise(off);
        }
        self.off(finding, Duration::ZERO).map_or(Match::AsExpected, |off| {
            Match::Undecided(format!("{off}, which is off by no more than {}", lateness(finding.tolerance)))
        })
    }

    /// Describes the first measure that misses its bounds by more than the tolerance.
    fn off(&self, finding: &Finding, tolerance: Duration) -> Option<String> {
        self.measures.iter().find_map(|(name, range)| {
            match finding.measures.iter().find(|measure| measure.name == name) {
                None => Some(format!("`{}` measures no {name}", finding.checker)),
                Some(found) if !range.widened(tolerance).contains(found.quantity) => {
                    let names = names(&found.owners);
                    Some(format!("expected {name} {range}, found {}{names}", found.quantity))
                }
                Some(_) => None,
            }
        })
    }
}

/// Lists the first owners that a measure counts, after a colon; empty if it counts no owners.
fn names(owners: &[String]) -> String {
    /// The most owners in one sentence.
    const NAMED_MAX: usize = 8;
    let (named, others) = owners.split_at(owners.len().min(NAMED_MAX));
    let colon = if named.is_empty() { "" } else { ": " };
    let others = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    format!("{colon}{}{others}", named.join(", "))
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        if let Some(share) = &self.share {
            write!(f, " in {share} of the runs")?;
        }
        for (at, (name, range)) in self.measures.iter().enumerate() {
            write!(f, "{} {name} {range}", if at == 0 { " with" } else { "," })?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Expectation {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Expectation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    r#""holds", "violated" or one of them with bounds, as { violated = { overlap = "20s.." } } or { violated = "<= 1%" }"#,
                )
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Expectation, E> {
                match word {
                    "holds" => Ok(Expectation::holds()),
                    "violated" => Ok(Expectation::violated()),
                    _ => Err(E::unknown_variant(word, &["holds", "violated"])),
                }
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Expectation, A::Error> {
                let nothing = || de::Error::invalid_length(0, &"`holds` or `violated`");
                let word: String = map.next_key()?.ok_or_else(nothing)?;
                let mut expectation: Expectation = self.visit_str(&word)?;
                match map.next_value()? {
                    Bounds::Measures(measures) => expectation.measures = measures,
                    Bounds::Share(share) => expectation.share = Some(share),
                }
                match (map.next_key::<String>()?, &mut expectation.share) {
                    (None, _) => Ok(expectation),
                    (Some(more), Some(share)) if more == "confidence" => {
                        let text: String = map.next_value()?;
                        share.confidence = read_percent(&text)
                            .filter(|sure| (0.5..1.0).contains(sure))
                            .ok_or_else(|| {
                                de::Error::custom(format!(
                                    "expected a confidence such as \"95%\", found {text:?}"
                                ))
                            })?;
                        Ok(expectation)
                    }
                    (Some(more), None) if more == "confidence" => Err(de::Error::custom(
                        "only a share of the runs, as { violated = \"<= 1%\" }, has a confidence",
                    )),
                    (Some(more), _) => {
                        Err(de::Error::custom(format!("`{word}` and `{more}` cannot both be expected")))
                    }
                }
            }
        }
        from.deserialize_any(Visitor)
    }
}

/// The value of the key `holds` or `violated`.
enum Bounds {
    Measures(BTreeMap<String, Range>),
    Share(Share),
}

impl<'de> Deserialize<'de> for Bounds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Bounds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"bounds, as { overlap = "20s.." }, or a share of the runs, as "<= 1%""#)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bounds, E> {
                text.parse().map(Bounds::Share).map_err(E::custom)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Bounds, A::Error> {
                BTreeMap::deserialize(de::value::MapAccessDeserializer::new(map)).map(Bounds::Measures)
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl Serialize for Expectation {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Some(share) = &self.share {
            let mut written = vec![(self.word(), share.to_string())];
            if share.confidence != CONFIDENCE {
                written.push(("confidence", percent(share.confidence)));
            }
            return to.collect_map(written);
        }
        if self.measures.is_empty() {
            return to.serialize_str(self.word());
        }
        BTreeMap::from([(self.word(), &self.measures)]).serialize(to)
    }
}

impl JsonSchema for Expectation {
    fn schema_name() -> Cow<'static, str> {
        "Expectation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let bounds =
            json_schema!({ "type": "object", "additionalProperties": { "type": ["string", "integer"] } });
        let share = json_schema!({ "type": "string", "pattern": "^ *(<=|>=) *[0-9]+(\\.[0-9]+)? *%$" });
        let percent = json_schema!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *%$" });
        json_schema!({
            "description": "holds or violated, with bounds on what is measured or a share of the runs",
            "oneOf": [
                { "enum": ["holds", "violated"] },
                {
                    "type": "object",
                    "properties": { "holds": bounds, "violated": bounds },
                    "minProperties": 1, "maxProperties": 1, "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": { "holds": share, "violated": share, "confidence": percent },
                    "oneOf": [{ "required": ["holds"] }, { "required": ["violated"] }],
                    "additionalProperties": false
                }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::verdict::{Measure, Witness};

    #[test]
    fn owners_of_a_count_that_is_off_are_named() {
        let of = |count: u32| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>();
        for (owners, named) in [
            (of(0), ""),
            (of(2), ": c0, c1"),
            (of(8), ": c0, c1, c2, c3, c4, c5, c6, c7"),
            (of(64), ": c0, c1, c2, c3, c4, c5, c6, c7 and 56 more"),
        ] {
            assert_eq!(names(&owners), named);
        }
    }

    fn expectation(toml: &str) -> Result<Expectation, String> {
        let table: BTreeMap<String, Expectation> =
            toml::from_str(toml).map_err(|error| error.message().to_owned())?;
        Ok(table["l1"].clone())
    }

    fn finding(verdict: Verdict, overlap_ms: u64) -> Finding {
        let measures =
            vec![Measure::time("overlap", Duration::from_millis(overlap_ms)), Measure::count("times", 1)];
        Finding { checker: "l1", question: "?", verdict, measures, tolerance: Duration::ZERO }
    }

    fn violated() -> Verdict {
        let witness = Witness {
            summary: "both".to_owned(),
            story: Vec::new(),
            from: lockstorm_world::time::True::ZERO,
            until: lockstorm_world::time::True::ZERO,
            lock: None,
            owners: Vec::new(),
        };
        Verdict::Violated { witness }
    }

    #[test]
    fn an_expectation_meets_its_findings() {
        let otherwise = |words: &str| Match::Otherwise(words.to_owned());
        for (expected, found, verdict) in [
            (r#"l1 = "holds""#, finding(Verdict::holds(""), 0), Match::AsExpected),
            (r#"l1 = "holds""#, finding(violated(), 5), otherwise("expected holds, found violated")),
            (r#"l1 = "violated""#, finding(violated(), 5), Match::AsExpected),
            (r#"l1 = { violated = { overlap = "20s.." } }"#, finding(violated(), 20_000), Match::AsExpected),
            (
                r#"l1 = { violated = { overlap = "20s.." } }"#,
                finding(violated(), 19_999),
                otherwise("expected overlap 20s.., found 19.999s"),
            ),
            (r#"l1 = { violated = { times = 1 } }"#, finding(violated(), 5), Match::AsExpected),
            (
                r#"l1 = { violated = { herd = 1 } }"#,
                finding(violated(), 5),
                otherwise("`l1` measures no herd"),
            ),
            // Undecided is never a pass, whatever was expected.
            (r#"l1 = "holds""#, finding(Verdict::undecided("why"), 0), Match::Undecided("why".to_owned())),
            (r#"l1 = "violated""#, finding(Verdict::undecided("why"), 0), Match::Undecided("why".to_owned())),
        ] {
            assert_eq!(expectation(expected).unwrap().matches(&found), verdict, "{expected}");
        }
    }

    /// The measure that decides is named, although another one is off as well.
    #[test]
    fn a_measure_that_is_off_by_more_than_the_tolerance_is_named() {
        let expected = expectation(r#"l1 = { violated = { overlap = "20s..", times = 2 } }"#).unwrap();
        let found = Finding { tolerance: Duration::from_millis(100), ..finding(violated(), 19_950) };
        assert_eq!(expected.matches(&found), Match::Otherwise("expected times 2, found 1".to_owned()));
    }

    /// In real time the bounds on times have a tolerance, here 100 ms, and nothing else has one.
    #[test]
    fn what_a_busy_machine_may_be_late_by_decides_nothing() {
        for (expected, found, decided) in [
            (r#"l1 = { violated = { overlap = "20s.." } }"#, finding(violated(), 20_000), Some(true)),
            (r#"l1 = { violated = { overlap = "20s.." } }"#, finding(violated(), 19_900), None),
            (r#"l1 = { violated = { overlap = "20s.." } }"#, finding(violated(), 19_899), Some(false)),
            (r#"l1 = { violated = { overlap = "..20ms" } }"#, finding(violated(), 120), None),
            (r#"l1 = { violated = { overlap = "..20ms" } }"#, finding(violated(), 121), Some(false)),
            (r#"l1 = { violated = { times = 2 } }"#, finding(violated(), 5), Some(false)),
            (r#"l1 = "holds""#, finding(violated(), 5), Some(false)),
            (r#"l1 = "holds""#, finding(Verdict::undecided("why"), 5), None),
        ] {
            let found = Finding { tolerance: Duration::from_millis(100), ..found };
            let found = match expectation(expected).unwrap().matches(&found) {
                Match::AsExpected => Some(true),
                Match::Otherwise(_) => Some(false),
                Match::Undecided(_) => None,
            };
            assert_eq!(found, decided, "{expected}");
        }
    }

    #[test]
    fn what_cannot_be_expected_is_refused() {
        for (toml, words) in [
            (r#"l1 = "undecided""#, "unknown variant `undecided`"),
            (r#"l1 = { violated = {}, holds = {} }"#, "cannot both be expected"),
            (r#"l1 = {}"#, "invalid length 0"),
            (r#"l1 = { violated = { overlap = "soon" } }"#, "expected a range such as"),
            (r#"l1 = { violated = "1%" }"#, "expected a share of the runs such as"),
            (r#"l1 = { violated = "<= 101%" }"#, "expected a share of the runs such as"),
            (r#"l1 = { violated = "<= 1%", confidence = "100%" }"#, "expected a confidence such as"),
            (r#"l1 = { violated = {}, confidence = "95%" }"#, "only a share of the runs"),
            (r#"l1 = { violated = "<= 1%", holds = ">= 1%" }"#, "cannot both be expected"),
        ] {
            let error = expectation(toml).unwrap_err();
            assert!(error.contains(words), "{toml}: {error}");
        }
    }

    #[test]
    fn an_expectation_is_written_as_it_was_read() {
        for toml in [
            "l1 = \"holds\"\n",
            "[l1.violated]\noverlap = \"20s..\"\n",
            "[l1]\nviolated = \"<= 1%\"\n",
            "[l1]\nholds = \">= 99.5%\"\nconfidence = \"99%\"\n",
        ] {
            let table: BTreeMap<String, Expectation> = toml::from_str(toml).unwrap();
            assert_eq!(toml::to_string(&table).unwrap(), toml);
        }
    }
}
