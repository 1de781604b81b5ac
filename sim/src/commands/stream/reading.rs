//! Shared code of XREAD and XREADGROUP: parses the arguments, and finds the keys.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Origin, Wait, integer, printable},
    generation::{Feature, Generation},
};

/// Maximum number of entries after a wait without COUNT: the client's id may be far back.
const AFTER_WAIT: usize = 1000;

/// The parsed arguments of a command.
#[derive(Debug)]
pub(super) struct Words<'a> {
    /// COUNT: maximum number of entries per stream.
    count: Option<usize>,
    /// BLOCK.
    pub(super) wait: Option<Wait>,
    /// GROUP: names of the group and the consumer.
    pub(super) group: Option<[&'a Bytes; 2]>,
    /// NOACK: delivered entries do not become pending.
    pub(super) unacknowledged: bool,
    /// The keys after STREAMS.
    pub(super) keys: &'a [Bytes],
    /// The ids, one for each key.
    pub(super) ids: &'a [Bytes],
}

impl<'a> Words<'a> {
    /// Parses the arguments of XREAD, or if `grouped` of XREADGROUP.
    pub(super) fn parse(ctx: &Ctx<'_>, args: &'a [Bytes], grouped: bool) -> Result<Words<'a>, Error> {
        let mut parsed =
            Words { count: None, wait: None, group: None, unacknowledged: false, keys: &[], ids: &[] };
        let generation = ctx.node.config.generation;
        let mut words = &args[1..];
        while let [option, rest @ ..] = words {
            words = match (&option.to_ascii_lowercase()[..], rest) {
                (b"block", [timeout, rest @ ..]) => {
                    if ctx.origin == Origin::Script && !generation.has(Feature::BlockingInScripts) {
                        let name = printable(&args[0], usize::MAX);
                        let why = "command is not allowed with BLOCK option from scripts";
                        return Err(Error(format!("ERR {name} {why}").into()));
                    }
                    parsed.wait = Some(Wait::parse_ms(ctx, timeout)?);
                    rest
                }
                (b"count", [count, rest @ ..]) => {
                    // A negative count means no limit, like 0.
                    parsed.count = usize::try_from(integer(count)?).ok().filter(|count| *count > 0);
                    rest
                }
                (b"streams", rest @ [_, ..]) => {
                    if !rest.len().is_multiple_of(2) {
                        return Err(unbalanced(generation, grouped));
                    }
                    (parsed.keys, parsed.ids) = rest.split_at(rest.len() / 2);
                    &[]
                }
                (b"group", [group, consumer, rest @ ..]) => {
                    if !grouped {
                        return Err(Error::of(
                            "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                        ));
                    }
                    parsed.group = Some([group, consumer]);
                    rest
                }
                (b"noack", rest) => {
                    if !grouped {
                        return Err(Error::of(
                            "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                        ));
                    }
                    parsed.unacknowledged = true;
                    rest
                }
                _ => return Err(Error::SYNTAX),
            };
        }
        if parsed.keys.is_empty() {
            return Err(Error::SYNTAX);
        }
        Ok(parsed)
    }

    /// Returns the maximum number of entries per stream.
    pub(super) fn count(&self) -> usize {
        self.count.unwrap_or(usize::MAX)
    }

    /// Returns the maximum number of entries per stream after a wait.
    pub(super) fn count_after_wait(&self, generation: Generation) -> usize {
        self.count.unwrap_or(if generation.is_before_7_2() { AFTER_WAIT } else { usize::MAX })
    }
}

/// Makes the error for streams without ids.
fn unbalanced(generation: Generation, grouped: bool) -> Error {
    let (command, ids) = match generation {
        Generation::Redis62 | Generation::Redis70 => ("XREAD", "an ID or '$'"),
        _ if grouped => ("'xreadgroup'", "an ID or '>'"),
        Generation::Redis82 => ("'xread'", "an ID, '+', or '$'"),
        Generation::Valkey81 | Generation::Valkey91 => ("'xread'", "an ID or '$'"),
    };
    let text =
        format!("ERR Unbalanced {command} list of streams: for each stream key {ids} must be specified.");
    Error(text.into())
}

/// Returns the indices of the keys: the first half of the arguments after STREAMS.
pub(super) fn keys(args: &[Bytes]) -> Vec<usize> {
    let mut at = 1;
    while let Some(word) = args.get(at) {
        at += match &word.to_ascii_lowercase()[..] {
            b"block" | b"count" => 2,
            b"group" => 3,
            b"noack" => 1,
            b"streams" => {
                let behind = args.len() - at - 1;
                let keys = if behind.is_multiple_of(2) { behind / 2 } else { 0 };
                return (at + 1..=at + keys).collect();
            }
            _ => break,
        };
    }
    Vec::new()
}
