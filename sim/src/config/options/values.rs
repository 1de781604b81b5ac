//! Checks values that are more than a word or a number, and converts them to their canonical form.

use std::fmt::Display;

use crate::{
    config::{BufferLimit, Config, Notify},
    generation::Feature,
    keyspace,
};

/// Returns the error for a number out of range.
pub(super) fn out_of_range(min: &dyn Display, max: &dyn Display) -> String {
    format!("argument must be between {min} and {max} inclusive")
}

/// Accepts `yes` or `no`.
pub(super) fn flag(word: &str) -> Result<String, String> {
    match &word.to_ascii_lowercase()[..] {
        value @ ("yes" | "no") => Ok(value.to_owned()),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}

/// Accepts an integer between two bounds.
pub(super) fn integer(text: &str, min: i64, max: i64) -> Result<String, String> {
    let value = keyspace::integer(text.as_bytes());
    let value = value.ok_or("argument couldn't be parsed into an integer")?;
    if (min..=max).contains(&value) { Ok(value.to_string()) } else { Err(out_of_range(&min, &max)) }
}

/// Refuses `yes`: memory cannot be defragmented here, as in a server built with a foreign
/// allocator.
pub(super) fn defragmentation(_: &Config, text: &str) -> Result<String, String> {
    match &flag(text)?[..] {
        "yes" => Err(
            "Active defragmentation cannot be enabled: it requires a Redis server compiled with a modified \
                      Jemalloc like the one shipped by default with the Redis source distribution"
                .into(),
        ),
        no => Ok(no.to_owned()),
    }
}

const NO_TLS: &str = "Unable to update TLS configuration. Check server logs.";

/// Refuses `yes`: there is no TLS, as in a server without certificates.
pub(super) fn no_tls(_: &Config, text: &str) -> Result<String, String> {
    flag(text).and_then(|value| if value == "yes" { Err(NO_TLS.into()) } else { Ok(value) })
}

pub(super) fn no_tls_port(_: &Config, text: &str) -> Result<String, String> {
    let port = integer(text, 0, i64::from(u16::MAX))?;
    if port == "0" { Ok(port) } else { Err(NO_TLS.into()) }
}

pub(super) fn host_name(_: &Config, text: &str) -> Result<String, String> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if text.len() >= 256 {
        Err("Hostnames must be less than 256 characters".into())
    } else if !text.bytes().all(is_fine) {
        Err("Hostnames may only contain alphanumeric characters, hyphens or dots".into())
    } else {
        Ok(text.to_owned())
    }
}

/// Accepts a template of process titles, with variables in braces. It must have text besides the
/// title.
pub(super) fn process_title(config: &Config, text: &str) -> Result<String, String> {
    const INVALID: &str = "template format is invalid or contains unknown variables";
    let (mut rest, mut title) = (text, String::new());
    while let Some((before, after)) = rest.split_once('{') {
        title.push_str(before);
        if let Some(after) = after.strip_prefix('{') {
            title.push('{');
            rest = after;
            continue;
        }
        let (name, after) = after.split_once('}').ok_or(INVALID)?;
        match name {
            "title" => {}
            "listen-addr" => title.push_str("*:0"),
            "server-mode" => title.push_str("[server]"),
            "port" | "tls-port" => title.push('0'),
            "config-file" if config.server.config_file.is_empty() => title.push('-'),
            "config-file" => title.push_str(&config.server.config_file),
            "unixsocket" => title.push_str(&config.network.unixsocket),
            _ => return Err(INVALID.into()),
        }
        rest = after;
    }
    title.push_str(rest);
    if title.trim_ascii().is_empty() { Err(INVALID.into()) } else { Ok(text.to_owned()) }
}

/// Parses a number of bytes with an optional unit: `k` is a thousand, `kb` is 1024, and so on. As
/// on a server, a missing number is 0, a number that is too large becomes the largest, and the
/// multiplication by the unit wraps around.
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
    let mut all = config.clients.output_limits;
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

/// Formats a percentage with up to six decimals, without trailing zeros.
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

/// Accepts words of a list, and puts them into its order.
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

pub(super) fn events(config: &Config, text: &str) -> Result<String, String> {
    let wrong = || "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned();
    let known = Notify::parse(text)
        .filter(|classes| !classes.wants(b'n') || config.generation.has(Feature::NewKeyEvents));
    known.map(Notify::in_full).ok_or_else(wrong)
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
