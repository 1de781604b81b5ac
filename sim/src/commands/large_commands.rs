//! Records commands with large requests or replies (COMMANDLOG).

use bytes::Bytes;

use super::{Ctx, Flags, Origin, Spec, timing::entry};
use crate::{
    generation::{Feature, Generation},
    resp::{Reply, Sink},
};

/// Counts bytes.
#[derive(Default)]
struct Count(usize);

impl Sink for Count {
    fn push(&mut self, _: u8) {
        self.0 += 1;
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

/// Records the size of the request that a client has just sent.
pub(super) fn begin(ctx: &mut Ctx<'_>, args: &[Bytes]) {
    if ctx.origin == Origin::Client
        && ctx.node.config.generation.has(Feature::CommandLog)
        && let Some(session) = ctx.node.clients.sessions.get_mut(ctx.conn)
    {
        (session.request_len, session.reply_len) = (request_len(args), 0);
    }
}

/// Logs a command that has ended, if its request or its reply is large.
///
/// The commands of a transaction have the size of EXEC's request, and of the reply so far. The same
/// holds for the calls of a script up to Valkey 8.1; later the calls have no request.
pub(super) fn end(ctx: &mut Ctx<'_>, spec: &Spec, args: &[Bytes], reply: &Reply) {
    let generation = ctx.node.config.generation;
    let is_logged = ctx.origin != Origin::Replication && !spec.flags.contains(Flags::SKIP_SLOWLOG);
    if !is_logged || ctx.block.is_some() || !generation.has(Feature::CommandLog) {
        return;
    }
    let Some(session) = ctx.node.clients.sessions.get_mut(ctx.conn) else { return };
    let mut count = Count::default();
    if !session.is_silent() {
        reply.encode(session.protocol, &mut count);
    }
    let of_script = ctx.origin == Origin::Script;
    let (request_len, reply_len) = match of_script && generation != Generation::Valkey81 {
        true => (0, count.0),
        false => {
            if let Some(queued) = session.executing.filter(|_| session.reply_len == 0) {
                session.reply_len = header_len(queued.commands);
            }
            if !of_script {
                session.reply_len += count.0;
            }
            (session.request_len, session.reply_len)
        }
    };
    let config = &ctx.node.config;
    let (requests, replies) = (config.monitoring.large_requests, config.monitoring.large_replies);
    let is_large = |len: usize, least: i64| usize::try_from(least).is_ok_and(|least| len >= least);
    if is_large(request_len, requests.least) {
        let large = entry(ctx.node, ctx.env, Some(ctx.conn), spec, args, request_len as i64);
        ctx.node.large_requests.push(large, requests.max_len);
    }
    if is_large(reply_len, replies.least) {
        let large = entry(ctx.node, ctx.env, Some(ctx.conn), spec, args, reply_len as i64);
        ctx.node.large_replies.push(large, replies.max_len);
    }
}

/// Returns the bytes of a command as an array of bulk strings.
fn request_len(args: &[Bytes]) -> usize {
    let each = args.iter().map(|arg| header_len(arg.len()) + arg.len() + 2);
    header_len(args.len()) + each.sum::<usize>()
}

/// Returns the bytes of the line that begins an array or a bulk string of this length.
fn header_len(len: usize) -> usize {
    let digits = len.checked_ilog10().unwrap_or(0) as usize + 1;
    digits + 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that Valkey 9.1 logs for these commands.
    #[test]
    fn a_request_has_the_bytes_of_its_array() {
        let words = |line: &str| line.split(' ').map(|word| Bytes::from(word.to_owned())).collect::<Vec<_>>();
        for (line, len) in [("PING", 14), ("HGETALL h", 24), ("BLPOP l 0.01", 32), ("CLIENT SETNAME me", 37)]
        {
            assert_eq!(request_len(&words(line)), len, "{line}");
        }
        assert_eq!(request_len(&words(&format!("SET k {}", "a".repeat(76)))), 103);
    }
}
