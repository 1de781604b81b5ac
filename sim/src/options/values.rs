//! Values that are more than a word or a number: what of them is taken, and their canonical form.

use crate::config::{BufferLimit, Config, Notify};

/// A number of bytes with an optional unit: `k` is a thousand, `kb` is 1024, and so on. As on a server no number is 0, one that
/// is too large is the largest, and what does not fit when the unit is applied is lost.
pub fn memory(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match &unit.to_ascii_lowercase()[..] {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let number = if number.is_empty() { 0 } else { number.parse::<u64>().unwrap_or(u64::MAX) };
    Some(number.wrapping_mul(factor))
}
pub(super) fn save_points(_: &Config, text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (pairs, rest) = words.as_chunks::<2>();
    let fits = |[seconds, changes]: &[&str; 2]| {
        seconds.parse::<u64>().is_ok_and(|seconds| seconds >= 1) && changes.parse::<u32>().is_ok()
    };
    if rest.is_empty() && pairs.iter().all(fits) {
        Ok(words.join(" "))
    } else {
        Err("Invalid save parameters".into())
    }
}

pub(super) fn buffer_limits(config: &Config, text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (limits, rest) = words.as_chunks::<4>();
    if !rest.is_empty() {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    let mut all = config.output_limits;
    for [class, hard, soft, seconds] in limits {
        let class = match &class.to_ascii_lowercase()[..] {
            "normal" => 0,
            "slave" | "replica" => 1,
            "pubsub" => 2,
            _ => return Err("Invalid client class specified in buffer limit configuration.".into()),
        };
        match (memory(hard), memory(soft), seconds.parse()) {
            (Some(hard), Some(soft), Ok(seconds)) => all[class] = BufferLimit { hard, soft, seconds },
            _ => {
                return Err(
                    "Error in hard, soft or soft_seconds setting in buffer limit configuration.".into()
                );
            }
        }
    }
    Ok(BufferLimit::print(&all))
}

pub(super) fn percentiles(_: &Config, text: &str) -> Result<String, String> {
    let words = text.split(' ').filter(|_| !text.is_empty());
    let numbers: Option<Vec<f64>> =
        words.map(|word| word.parse().ok().filter(|n: &f64| !n.is_nan())).collect();
    let numbers = numbers.ok_or("Invalid latency-tracking-info-percentiles parameters")?;
    if numbers.iter().any(|percent| !(0.0..=100.0).contains(percent)) {
        return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".into());
    }
    Ok(print_percentiles(&numbers))
}

pub(super) fn print_percentiles(percentiles: &[f64]) -> String {
    percentiles.iter().map(|percent| percentile(*percent)).collect::<Vec<_>>().join(" ")
}

/// A percentage as it is printed: with six decimals, less the zeros at the end.
pub fn percentile(percent: f64) -> String {
    format!("{percent:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn master(_: &Config, text: &str) -> Result<String, String> {
    match text.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        [] => Ok(String::new()),
        ["no", "one"] => Ok(String::new()),
        [host, port] if port.parse::<u16>().is_ok() => Ok(format!("{host} {port}")),
        [_, _] => Err("Invalid master port".into()),
        _ => Err("wrong number of arguments".into()),
    }
}

/// Words of a list, in its order.
pub(super) fn shutdown_options(_: &Config, text: &str) -> Result<String, String> {
    const WORDS: [&str; 5] = ["default", "save", "nosave", "now", "force"];
    let named: Vec<String> = text.split(' ').map(str::to_ascii_lowercase).collect();
    if named.iter().any(|word| !WORDS.contains(&&word[..])) {
        return Err(format!("argument(s) must be one of the following: {}", WORDS.join(", ")));
    }
    let has = |word: &str| named.iter().any(|named| named == word);
    if has("save") && has("nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    let words: Vec<&str> = WORDS[1..].iter().copied().filter(|word| has(word)).collect();
    Ok(if words.is_empty() { WORDS[0].to_owned() } else { words.join(" ") })
}

pub(super) fn oom_scores(_: &Config, text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.len() != 3 {
        return Err("wrong number of arguments".into());
    }
    let fits = |word: &&str| word.parse::<i32>().is_ok_and(|score| (-2000..=2000).contains(&score));
    if !words.iter().all(fits) {
        return Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".into());
    }
    Ok(words.join(" "))
}

pub(super) fn events(_: &Config, text: &str) -> Result<String, String> {
    let wrong = || "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned();
    Notify::parse(text).map(Notify::in_full).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_units() {
        for (text, bytes) in [
            ("1kb", Some(1024)),
            ("2K", Some(2000)),
            ("1KiB", None),
            ("-1", None),
            ("", Some(0)),
            ("1kb\0x", None),
        ] {
            assert_eq!(memory(text), bytes, "{text}");
        }
        assert_eq!([memory("17179869184gb"), memory("99999999999999999999999")], [Some(0), Some(u64::MAX)]);
    }
}
