//! The memory of one connection, as `redis-server` computes it for CLIENT LIST and for eviction.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;

use super::session::{POINTER, Session, Transaction};
use crate::{generation::Generation, time::Monotonic};

/// The memory that a node holds for a connection, in bytes. The figures were measured on
/// `redis-server`, so that clients see the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Input not yet executed.
    pub query: usize,
    /// The free part of the query buffer.
    pub query_free: usize,
    /// The arguments of the command being read or run.
    pub argv: usize,
    /// The commands of its transaction.
    pub queued: usize,
    /// Replies that wait in the reply buffer.
    pub output: usize,
    /// The number of blocks that hold the replies beyond the reply buffer.
    pub output_blocks: usize,
    /// The bytes of these blocks.
    pub output_listed: usize,
    /// The total, printed as `tot-mem` in CLIENT LIST.
    pub total: usize,
}

impl Session {
    /// Returns the memory that the node holds for this connection at `now`, as `redis-server`
    /// computes it.
    pub fn memory(&self, now: Monotonic) -> Memory {
        let query = self.reading.max(self.decoder.unread());
        // The query buffer grows for a long argument as soon as the argument's length is known. The
        // next cron that no longer finds it needed shrinks it. The query buffer of an idle
        // connection is freed.
        let awaited = self.decoder.awaited();
        let (long, since) = self.long_query;
        let kept = if now.since(since) < Session::LONG_KEPT { long } else { 0 };
        let is_idle = query == 0 && awaited == 0 && now.since(self.last_active) >= Session::IDLE_AFTER;
        let least = if is_idle { 0 } else { Session::QUERY.max(kept) };
        let query_buffer = query.max(least).max(if awaited >= Session::LONG { awaited } else { 0 });
        let sum = |args: &[Bytes]| args.iter().map(Bytes::len).fold(0, usize::saturating_add);
        let parsed = self.blocked.as_ref().map_or(self.decoder.parsed(), |blocked| &blocked.args[..]);
        let (argv, args) = if self.argv.1 > 0 { self.argv } else { (sum(parsed), parsed.len()) };
        let queued =
            self.transaction.as_ref().map(Transaction::queued).or(self.executing).unwrap_or_default();
        let output = self.waiting().min(self.reply_buffer.size());
        let (output_blocks, output_listed) = self.listed();
        // Tables and arrays grow by doubling.
        let slots = |len: usize, least: usize| if len == 0 { 0 } else { len.next_power_of_two().max(least) };
        let table = |len: usize| len * Session::PER_NAME + slots(len, 4) * POINTER;
        let listens =
            table(self.channels.len()) + table(self.shards.len()) + self.patterns.len() * Session::PER_NAME;
        let prefixes =
            self.tracking.iter().flat_map(|tracking| &tracking.prefixes).map(BTreeSet::len).sum::<usize>();
        let total = [
            Session::IDLE,
            self.reply_buffer.size(),
            query_buffer,
            prefixes * Session::PER_PREFIX,
            argv,
            args.saturating_mul(POINTER),
            queued.bytes,
            slots(queued.commands, 2) * Session::PER_COMMAND,
            self.watched.len() * Session::PER_WATCH,
            listens,
            output_listed,
        ];
        let total = total.into_iter().fold(0, usize::saturating_add);
        let query_free = query_buffer - query;
        Memory { query, query_free, argv, queued: queued.bytes, output, output_blocks, output_listed, total }
    }

    /// Returns the memory as a server of a generation computes it for CLIENT LIST. Tables of
    /// subscriptions count as in 7.0.
    pub(super) fn memory_in(&self, now: Monotonic, generation: Generation) -> Memory {
        let memory = self.memory(now);
        if generation == Generation::Redis70 {
            return memory;
        }
        let buffers = Session::IDLE + self.reply_buffer.size() + memory.query + memory.query_free;
        let rest = memory.total.saturating_sub(buffers);
        let query = memory.query;
        let (idle, query, query_buffer) = match generation {
            // The reply buffer is part of the connection. The query buffer is freed once it is
            // empty.
            Generation::Redis62 => (20_488, query, if query > 0 { query.max(40_954) } else { 0 }),
            // Connections share a query buffer while nothing is left in it.
            Generation::Redis82 => {
                let query_buffer = if query > 0 { query.max(Session::QUERY) } else { 0 };
                (896 + self.reply_buffer.size(), query, query_buffer)
            }
            _ => {
                let idle = if generation == Generation::Valkey81 { 520 } else { 584 };
                // The shared query buffer does not count, not even while a command runs.
                let query = if self.reading > 0 { 0 } else { query };
                (idle + self.reply_buffer_in(generation).0, query, query)
            }
        };
        // The sizes of the query buffer count its header, or what replaces it, beside it.
        let header = match (generation, query_buffer) {
            (_, 0) => 0,
            (Generation::Redis62, _) => -2,
            _ => 6,
        };
        let per_watch = self.watched.len() * (if generation == Generation::Redis62 { 0 } else { 24 });
        let total = idle.saturating_add(rest).saturating_add(per_watch).saturating_add(query_buffer);
        Memory {
            query,
            query_free: query_buffer - query,
            total: total.saturating_add_signed(header),
            ..memory
        }
    }

    /// Returns the size of the reply buffer and the most that it held lately, as a server of a
    /// generation reports them.
    pub(super) fn reply_buffer_in(&self, generation: Generation) -> (usize, usize) {
        let (size, peak) = (self.reply_buffer.size(), self.reply_buffer.peak());
        // Valkey keeps a header in the buffer.
        let more = if generation.is_valkey() { 8 } else { 0 };
        (size + more, if peak == size { peak + more } else { peak })
    }

    /// Returns the memory that counts against `maxmemory`: all of it except the query buffer that
    /// every connection has.
    pub(crate) fn evictable_memory(&self) -> usize {
        // Compute it as if nothing had been read since, and the enlarged query buffer had just been
        // freed.
        let memory = self.memory(self.last_active + Session::LONG_KEPT);
        memory.total - memory.query_free.min(Session::QUERY)
    }

    /// Records that an argument of `bytes` is being read, for which the query buffer grows.
    pub(crate) fn note_length(&mut self, bytes: usize, now: Monotonic) {
        if bytes >= Session::LONG {
            self.long_query = (bytes, now);
        }
    }

    /// Returns the number of bytes that wait to be sent.
    fn waiting(&self) -> usize {
        self.out.len().saturating_add(self.unsent)
    }

    /// Returns the number of blocks that hold the replies beyond the reply buffer, and the bytes of
    /// these blocks. `client-output-buffer-limit` applies to the latter.
    pub fn listed(&self) -> (usize, usize) {
        let blocks = self.waiting().saturating_sub(self.reply_buffer.size()).div_ceil(Session::BLOCK);
        (blocks, blocks * (Session::BLOCK + Session::PER_BLOCK))
    }

    /// A connection without any buffer.
    const IDLE: usize = 774;
    /// A connection that has been idle for this long has no query buffer.
    const IDLE_AFTER: Duration = Duration::from_secs(3);
    /// The most that a connection uses besides its evictable memory: the query buffer that every
    /// connection has, or a larger one kept after a longer command.
    pub(crate) const QUERY_BUFFER_MAX: usize = Session::QUERY;
    /// The minimum length of an argument for which the query buffer grows immediately.
    const LONG: usize = 32 << 10;
    /// The time for which the enlarged query buffer is kept.
    const LONG_KEPT: Duration = Duration::from_millis(200);
    /// The size of the query buffer, which grows for longer commands.
    const QUERY: usize = 20_474;
    /// The bytes of replies in a listed block, and its overhead.
    const BLOCK: usize = 20_464;
    const PER_BLOCK: usize = 40;
    /// A channel or a pattern, without its name.
    const PER_NAME: usize = 24;
    /// A tracked prefix of keys.
    const PER_PREFIX: usize = 32;
    /// A watched key, without its name.
    const PER_WATCH: usize = 56;
    /// A queued command, without its arguments.
    const PER_COMMAND: usize = 24;
}
