//! Options of XADD and XTRIM, and their propagated form.

use bytes::Bytes;

use super::ids::{Wanted, id, wanted, word};
use crate::{
    commands::{Ctx, Error, Origin, integer},
    keyspace::{Keep, Log, StreamId, Trim},
};

/// Maximum number of entries that approximate trimming removes without LIMIT, if stream nodes have
/// no maximum size.
const LIMIT_DEFAULT: usize = 10_000;
/// The upper bound, for any maximum size of nodes.
const LIMIT_MAX: usize = 1_000_000;

/// The parsed options.
#[derive(Debug)]
pub(super) struct Options {
    /// The trim to perform.
    pub(super) trim: Option<Trim>,
    /// NOMKSTREAM.
    pub(super) only_existing: bool,
    /// The id argument of XADD.
    pub(super) id: Wanted,
    /// Index of the id among the arguments, or its index if it were given.
    pub(super) id_at: usize,
    /// Index of the threshold among the arguments.
    trim_at: usize,
}

/// Parses a count that must not be negative; `negative` is the text of the error.
fn count(text: &[u8], negative: &'static str) -> Result<usize, Error> {
    usize::try_from(integer(text)?).map_err(|_| Error::of(negative))
}

impl Options {
    /// Parses the options from the third argument on; for XADD up to the id.
    pub(super) fn parse(ctx: &Ctx<'_>, args: &[Bytes], adding: bool) -> Result<Options, Error> {
        let (mut keep, mut approximate, mut limit) = (None, false, None);
        let mut options =
            Options { trim: None, only_existing: false, id: Wanted::Auto, id_at: args.len(), trim_at: 0 };
        let mut at = 2;
        while at < args.len() {
            let more = args.len() - 1 - at;
            match &args[at].to_ascii_lowercase()[..] {
                b"*" if adding => {
                    options.id_at = at;
                    break;
                }
                strategy @ (b"maxlen" | b"minid") if more > 0 => {
                    if keep.is_some() {
                        return Err(Error::of(
                            "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                        ));
                    }
                    let how = Some(&args[at + 1][..]).filter(|how| more >= 2 && matches!(*how, b"~" | b"="));
                    approximate = how == Some(b"~");
                    at += 1 + usize::from(how.is_some());
                    options.trim_at = at;
                    keep = Some(if strategy == b"maxlen" {
                        Keep::Newest(count(&args[at], "ERR The MAXLEN argument must be >= 0.")?)
                    } else {
                        Keep::From(id(&args[at], 0)?)
                    });
                }
                b"limit" if more > 0 => {
                    at += 1;
                    limit = Some(count(&args[at], "ERR The LIMIT argument must be >= 0.")?);
                }
                b"nomkstream" if adding => options.only_existing = true,
                _ if adding => {
                    options.id = wanted(&args[at], ctx.node.config.generation)?;
                    options.id_at = at;
                    break;
                }
                _ => return Err(Error::SYNTAX),
            }
            at += 1;
        }
        if keep.is_none() && limit.is_some_and(|limit| limit > 0) {
            return Err(Error::of(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if keep.is_none() && !adding {
            return Err(Error::of("ERR syntax error, XTRIM must be called with a trimming strategy"));
        }
        let limit = match limit {
            // The master has limited a propagated command already.
            _ if ctx.origin == Origin::Replication => 0,
            Some(_) if !approximate => {
                return Err(Error::of("ERR syntax error, LIMIT cannot be used without the special ~ option"));
            }
            Some(limit) => limit,
            None if approximate => {
                match ctx.node.config.keyspace.encodings.stream_node_entries_max.saturating_mul(100) {
                    0 => LIMIT_DEFAULT,
                    limit => limit.min(LIMIT_MAX),
                }
            }
            None => 0,
        };
        options.trim = keep.map(|keep| Trim { keep, approximate, limit });
        Ok(options)
    }

    /// Returns the command to propagate, with the exact result of an approximate trim. `None` for
    /// an exact trim.
    pub(super) fn repeated(&self, args: &[Bytes], log: &Log) -> Option<Vec<Bytes>> {
        let trim = self.trim.filter(|trim| trim.approximate)?;
        let mut args = args.to_vec();
        args[self.trim_at - 1] = Bytes::from_static(b"=");
        args[self.trim_at] = match trim.keep {
            Keep::Newest(_) => word(log.len()),
            Keep::From(_) if log.is_empty() => word(StreamId::MAX),
            Keep::From(_) => word(log.first_id),
        };
        Some(args)
    }
}
