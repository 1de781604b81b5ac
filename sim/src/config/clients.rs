//! The limits of clients, in bytes or numbers of connections and keys.

/// The limits of clients and of their buffers (`CLIENTS` in `redis.conf`).
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// `maxclients`: the greatest number of connections at a time; further ones are refused.
    pub maxclients: usize,
    /// `tracking-table-max-keys`; 0 for no limit.
    pub tracking_table_max_keys: usize,
    /// `proto-max-bulk-len`: the length in bytes above which an argument is refused.
    pub proto_max_bulk_len: usize,
    /// `client-query-buffer-limit`: the bytes of unread input above which a client is disconnected.
    pub query_buffer_limit: usize,
    /// `client-output-buffer-limit`: the limits for clients, replicas and subscribers, in this
    /// order.
    pub output_limits: [BufferLimit; 3],
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            maxclients: 10_000,
            tracking_table_max_keys: 1_000_000,
            proto_max_bulk_len: 512 << 20,
            query_buffer_limit: 1 << 30,
            output_limits: [
                BufferLimit { hard: 0, soft: 0, seconds: 0 },
                BufferLimit { hard: 256 << 20, soft: 64 << 20, seconds: 60 },
                BufferLimit { hard: 32 << 20, soft: 8 << 20, seconds: 60 },
            ],
        }
    }
}

/// The limit of unread output above which a client is disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferLimit {
    /// Disconnect immediately above this many bytes; 0 for never.
    pub hard: u64,
    /// Disconnect above this many bytes for `seconds`; 0 for never.
    pub soft: u64,
    /// The time in seconds for which `soft` may be exceeded.
    pub seconds: u64,
}

impl BufferLimit {
    /// Returns all three limits as CONFIG GET prints them.
    pub fn print(limits: &[BufferLimit; 3]) -> String {
        let class = |(name, limit): (&str, &BufferLimit)| {
            format!("{name} {} {} {}", limit.hard, limit.soft, limit.seconds)
        };
        ["normal", "slave", "pubsub"].into_iter().zip(limits).map(class).collect::<Vec<_>>().join(" ")
    }

    /// Parses the text of [`BufferLimit::print`]; missing numbers mean no limit.
    pub fn parse(text: &str) -> [BufferLimit; 3] {
        let mut numbers = text.split(' ').filter_map(|word| word.parse().ok());
        let mut next = || numbers.next().unwrap_or(0);
        [(); 3].map(|()| BufferLimit { hard: next(), soft: next(), seconds: next() })
    }
}
