//! Reduces the size of a suspect in a scenario.

use crate::study::shrink::{leaves, put, to_table};
use lockstorm::{
    file::scenario::{Scenario, Source, parse},
    units::Span,
};

use super::Suspect;

/// The keys of a fault that set its time, not its size.
const WHEN: [&str; 4] = ["at", "on", "every", "until"];

/// Returns the scenario with every size of a suspect multiplied by this fraction: lengths, delays,
/// steps, rates and shares, or both ends of their ranges. `None` if the suspect has no size, like a
/// crash without an end, or if the result is not valid.
pub(super) fn weakened(scenario: &Scenario, suspect: &Suspect, fraction: f64) -> Option<Scenario> {
    let whole = to_table(scenario).ok()?;
    let path: Vec<String> = match suspect {
        Suspect::Fault(name) => vec!["fault".into(), name.clone()],
        Suspect::NodeClock(name) => vec!["node".into(), name.clone(), "clock".into()],
        Suspect::ClientClock(name) => vec!["client".into(), name.clone(), "clock".into()],
        Suspect::SentinelClock(name) => vec!["sentinel".into(), name.clone(), "clock".into()],
        Suspect::Link(name) => vec!["link".into(), name.clone(), "latency".into()],
        Suspect::Latency => vec!["network".into(), "latency".into()],
        Suspect::Occurrence(_) => return None,
    };
    let (first, rest) = path.split_first()?;
    let below = rest.iter().try_fold(whole.get(first)?, |below, key| below.get(key))?;
    let mut found = Vec::new();
    leaves(below, &mut path.clone(), &mut found);
    let mut changed = whole.clone();
    let mut has_size = false;
    for (at, value) in found {
        let is_when = matches!(suspect, Suspect::Fault(_))
            && at.get(path.len()).is_some_and(|key| WHEN.contains(&&**key));
        let smaller = value.as_str().filter(|_| !is_when).and_then(|text| scaled(text, fraction));
        if let Some(smaller) = smaller {
            put(&mut changed, &at, toml::Value::String(smaller));
            has_size = true;
        }
    }
    let text = toml::to_string(&changed).ok().filter(|_| has_size)?;
    let Source { variants, .. } = parse("weakened", &text).ok()?;
    variants.into_iter().next().map(|variant| variant.scenario)
}

/// Multiplies a time or a percentage, or a range of them, by a fraction.
fn scaled(text: &str, fraction: f64) -> Option<String> {
    if let Some((low, high)) = text.split_once("..") {
        return Some(format!("{}..{}", scaled(low, fraction)?, scaled(high, fraction)?));
    }
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'+' | b'-' => text.split_at(1),
        _ => ("", text),
    };
    let smaller = match unsigned.strip_suffix('%') {
        // Round to a millionth of a percent, the finest notation.
        Some(number) => format!("{}%", (number.parse::<f64>().ok()? * fraction * 1e6).round() / 1e6),
        None => Span(unsigned.parse::<Span>().ok()?.0.mul_f64(fraction)).to_string(),
    };
    Some(format!("{sign}{smaller}"))
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn times_percentages_and_their_ranges_have_a_size() {
        for (text, half) in [
            ("10s", Some("5s")),
            ("+31s", Some("+15.5s")),
            ("-3ms", Some("-1.5ms")),
            ("1s..3s", Some("500ms..1.5s")),
            ("-2%..+2%", Some("-1%..+1%")),
            ("0.5%", Some("0.25%")),
            // Names, counts and slots of a cluster have no size.
            ("m", None),
            ("3", None),
            ("0..5460", None),
            ("", None),
        ] {
            assert_eq!(scaled(text, 0.5).as_deref(), half, "{text}");
        }
    }
}
