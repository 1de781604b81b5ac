//! The commands and rules for other generations than the reference: those that differ in more than
//! the simulator imitates are left out, or compared by a milder rule.

use lockstorm_sim::generation::Generation;

use crate::{
    rule::Rule,
    servers::REFERENCE,
    steps::{Command, Step},
};

/// Times of a hash's fields may differ by this many milliseconds.
const SLACK_MS: u64 = 20_000;

/// Commands whose replies other generations word or order in their own way, or that not every
/// simulated generation has.
const LEFT_OUT: &[&str] = &[
    "ACL",
    "AUTH",
    "CLUSTER",
    "COMMAND",
    "CLUSTERSCAN",
    "DEBUG",
    "LATENCY",
    "LOLWUT",
    "MEMORY",
    "MODULE",
    "SLOWLOG",
    "XACKDEL",
    "XDELEX",
];

/// Commands that Redis 6.2 checks in another order.
const LEFT_OUT_OF_OLD: &[&str] = &[
    "BITPOS",
    "CLIENT",
    "EVAL_RO",
    "GEORADIUS",
    "GEORADIUSBYMEMBER",
    "GEORADIUSBYMEMBER_RO",
    "GEORADIUS_RO",
    "GEOSEARCH",
    "GEOSEARCHSTORE",
    "GEODIST",
    "GETEX",
    "LPOP",
    "MSET",
    "OBJECT",
    "PUBSUB",
    "RPOP",
    "SCRIPT",
    "XAUTOCLAIM",
    "XGROUP",
    "XINFO",
    "XSETID",
];

fn upper(words: &[Vec<u8>], at: usize) -> Vec<u8> {
    words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default()
}

/// Returns the command that a script passes on; `None` for another command.
fn passed_on(words: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
    let runs = upper(words, 0).starts_with(b"EVAL") && upper(words, 1).ends_with(b"UNPACK(ARGV))");
    runs.then(|| words.get(3..).unwrap_or_default())
}

/// Returns true if the command is compared on servers of a generation.
pub(crate) fn compares(generation: Generation, words: &[Vec<u8>]) -> bool {
    if generation == REFERENCE {
        return true;
    }
    if let Some(inner) = passed_on(words) {
        // Redis 6.2 has other words for errors that a script catches.
        let is_caught = upper(words, 1).windows(5).any(|part| part == b"PCALL");
        return !(generation == Generation::Redis62 && is_caught) && compares(generation, inner);
    }
    let name = upper(words, 0);
    let is_in = |names: &[&str]| names.iter().any(|one| one.as_bytes() == name);
    if is_in(LEFT_OUT) || words.len() == 2 && upper(words, 1) == b"HELP" {
        return false;
    }
    // Containers check their subcommands when they are executed.
    let known = [&b"GET"[..], b"SET", b"RESETSTAT", b"REWRITE"];
    if generation == Generation::Redis62 && name == b"CONFIG" && !known.contains(&&upper(words, 1)[..]) {
        return false;
    }
    if generation == Generation::Redis62 {
        // It takes a timeout of a millisecond for none.
        let waits_for_ever = words.iter().any(|word| word == b"0.001");
        return !waits_for_ever
            && !is_in(LEFT_OUT_OF_OLD)
            && !name.starts_with(b"EVAL")
            && !name.starts_with(b"F");
    }
    // Valkey asks if the last id is that of an entry.
    if name == b"XREAD" && words.iter().any(|word| word == b"+") {
        return false;
    }
    // Of an index beyond 32 bits, servers use the lower ones. HSETEX takes its key for the word
    // FIELDS.
    let is_long = |word: &Vec<u8>| word.len() > 9;
    if name == b"LSET" && words.get(2).is_some_and(is_long)
        || name == b"HSETEX" && upper(words, 1) == b"FIELDS"
    {
        return false;
    }
    if name == b"FUNCTION" && upper(words, 1) == b"LIST" && words.len() > 2 {
        // A line break in the argument ends the real server's error early.
        return false;
    }
    // Valkey 9.1 has errors of its own for members that do not exist.
    if generation == Generation::Valkey91 && name.starts_with(b"GEO") {
        return false;
    }
    // A range by name over a skip list ignores an offset that is negative.
    let is_lex = name.ends_with(b"BYLEX") || words.iter().any(|word| word.eq_ignore_ascii_case(b"BYLEX"));
    if is_lex && words.iter().any(|word| word.eq_ignore_ascii_case(b"LIMIT")) {
        return false;
    }
    // Numbers with a fraction are no longer read by the rules of C.
    let is_odd =
        |word: &Vec<u8>| word.starts_with(b" ") || word.starts_with(b"( ") || word.starts_with(b"0x");
    !words.iter().skip(1).any(is_odd)
}

/// Leaves out what is not compared on servers of a generation.
pub(crate) fn prune(generation: Generation, steps: Vec<Step>) -> Vec<Step> {
    let prune = |step: Step| match step {
        Step::Send(_, ref words) if !compares(generation, words) => None,
        Step::Pipeline(conn, commands, cuts) => {
            let kept: Vec<Command> =
                commands.into_iter().filter(|words| compares(generation, words)).collect();
            (!kept.is_empty()).then_some(Step::Pipeline(conn, kept, cuts))
        }
        step => Some(step),
    };
    steps.into_iter().filter_map(prune).collect()
}

/// Returns the rule for the reply to a command on servers of a generation; `rule` is that of the
/// reference.
pub(crate) fn rule(generation: Generation, words: &[Vec<u8>], rule: Rule) -> Rule {
    if generation == REFERENCE {
        return rule;
    }
    let inner = passed_on(words).unwrap_or(words);
    match &upper(inner, 0)[..] {
        // The size of a key decides if its string is embedded. Groups of streams have another lag.
        b"OBJECT" | b"DUMP" | b"HELLO" | b"XINFO" => Rule::Kind,
        b"LCS" if inner.len() < words.len() => Rule::Kind,
        b"HTTL" | b"HPTTL" | b"HEXPIRETIME" | b"HPEXPIRETIME" => Rule::Each(Box::new(Rule::Near(SLACK_MS))),
        _ => rule,
    }
}
