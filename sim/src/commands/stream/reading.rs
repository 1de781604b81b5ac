//! What XREAD and XREADGROUP have in common: their words, and where their keys are.

use bytes::Bytes;

use crate::commands::{Ctx, Error, Origin, Wait, integer, printable};

/// Entries that a client gets at most when it has waited, without COUNT: its id may be far back.
const AFTER_WAIT: usize = 1000;

/// The words of a command, read.
#[derive(Debug)]
pub(super) struct Words<'a> {
    /// COUNT: at most so many entries of each stream.
    count: Option<usize>,
    /// BLOCK.
    pub(super) wait: Option<Wait>,
    /// GROUP: the group and the consumer.
    pub(super) group: Option<[&'a Bytes; 2]>,
    /// NOACK: what is delivered does not become pending.
    pub(super) unacknowledged: bool,
    /// The keys after STREAMS.
    pub(super) keys: &'a [Bytes],
    /// And as many ids.
    pub(super) ids: &'a [Bytes],
}

impl<'a> Words<'a> {
    /// Reads the words of XREAD, or of XREADGROUP if it is `grouped`.
    pub(super) fn parse(ctx: &Ctx<'_>, args: &'a [Bytes], grouped: bool) -> Result<Words<'a>, Error> {
        let mut parsed =
            Words { count: None, wait: None, group: None, unacknowledged: false, keys: &[], ids: &[] };
        let mut words = &args[1..];
        while let [option, rest @ ..] = words {
            words = match (&option.to_ascii_lowercase()[..], rest) {
                (b"block", [timeout, rest @ ..]) => {
                    if ctx.origin == Origin::Script {
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
                        return Err(Error::of(
                            "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be \
                             specified.",
                        ));
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

    /// At most so many entries of each stream.
    pub(super) fn count(&self) -> usize {
        self.count.unwrap_or(usize::MAX)
    }

    /// At most so many entries for a client that has waited.
    pub(super) fn count_after_wait(&self) -> usize {
        self.count.unwrap_or(AFTER_WAIT)
    }
}

/// The indices of the keys: the first half of the arguments after STREAMS.
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
