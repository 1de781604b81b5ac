//! The limits of memory, in bytes, and the keys to evict above them.

use std::fmt;

use crate::keyspace::Lfu;

/// The limits of memory, eviction and lazy freeing (`MEMORY MANAGEMENT` and `LAZY FREEING` in
/// `redis.conf`).
#[derive(Debug, Clone)]
pub struct MemoryOptions {
    /// `maxmemory` in bytes; 0 for no limit.
    pub maxmemory: u64,
    /// `maxmemory-clients`: the limit for all clients together; 0 for no limit.
    pub maxmemory_clients: Share,
    /// `maxmemory-policy`: the keys to evict above `maxmemory`. Default `noeviction`.
    pub maxmemory_policy: Eviction,
    /// `maxmemory-samples`: the number of keys sampled for each eviction.
    pub maxmemory_samples: usize,
    /// `lfu-log-factor` and `lfu-decay-time`: the growth and the decay of access counters.
    pub lfu: Lfu,
    /// `lazyfree-lazy-*`
    pub lazy_free: LazyFree,
}

impl Default for MemoryOptions {
    fn default() -> MemoryOptions {
        MemoryOptions {
            maxmemory: 0,
            maxmemory_clients: Share::Bytes(0),
            maxmemory_policy: Eviction::NoEviction,
            maxmemory_samples: 5,
            lfu: Lfu::default(),
            lazy_free: LazyFree::default(),
        }
    }
}

/// The policy to choose keys to evict when memory is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Eviction {
    /// Writes are refused with OOM instead.
    #[default]
    NoEviction,
    /// The least recently used of all keys.
    AllKeysLru,
    /// The least frequently used of all keys.
    AllKeysLfu,
    /// A random key of all keys.
    AllKeysRandom,
    /// The least recently used key that has an expiry.
    VolatileLru,
    /// The least frequently used key that has an expiry.
    VolatileLfu,
    /// Any key that has an expiry.
    VolatileRandom,
    /// The key that expires soonest.
    VolatileTtl,
}

impl Eviction {
    const ALL: [(Eviction, &'static str); 8] = [
        (Eviction::NoEviction, "noeviction"),
        (Eviction::AllKeysLru, "allkeys-lru"),
        (Eviction::AllKeysLfu, "allkeys-lfu"),
        (Eviction::AllKeysRandom, "allkeys-random"),
        (Eviction::VolatileLru, "volatile-lru"),
        (Eviction::VolatileLfu, "volatile-lfu"),
        (Eviction::VolatileRandom, "volatile-random"),
        (Eviction::VolatileTtl, "volatile-ttl"),
    ];

    /// Returns the value in `redis.conf`, such as `allkeys-lru`.
    pub fn name(self) -> &'static str {
        Eviction::ALL[self as usize].1
    }

    /// True for the LFU policies.
    pub fn counts_uses(self) -> bool {
        matches!(self, Eviction::AllKeysLfu | Eviction::VolatileLfu)
    }

    /// True for the LRU and LFU policies.
    pub fn heeds_use(self) -> bool {
        self.counts_uses() || matches!(self, Eviction::AllKeysLru | Eviction::VolatileLru)
    }

    /// Returns the policy of this name; the default for any other text.
    pub fn named(name: &str) -> Eviction {
        let known = Eviction::ALL.iter().find(|(_, known)| *known == name);
        known.map_or_else(Eviction::default, |(eviction, _)| *eviction)
    }
}

/// The values that are freed in the background, as far as options select them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LazyFree {
    /// Values of evicted keys.
    pub eviction: bool,
    /// Values of expired keys.
    pub expire: bool,
    /// Values of overwritten keys.
    pub server_del: bool,
    /// Values of keys deleted by DEL.
    pub user_del: bool,
    /// Values of keys deleted by FLUSHALL and FLUSHDB without SYNC or ASYNC.
    pub user_flush: bool,
}

/// An amount of memory, absolute or as a percentage of `maxmemory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of `maxmemory`.
    Percent(u8),
}

impl Share {
    /// Returns the limit in bytes for this `maxmemory`; a percentage of no limit is no limit (0).
    pub fn of(self, maxmemory: u64) -> u64 {
        match self {
            Share::Bytes(bytes) => bytes,
            Share::Percent(percent) => maxmemory / 100 * u64::from(percent),
        }
    }

    /// Parses the printed form; invalid text counts as 0.
    pub fn parse(text: &str) -> Share {
        match text.strip_suffix('%') {
            Some(percent) => Share::Percent(percent.parse().unwrap_or(0)),
            None => Share::Bytes(text.parse().unwrap_or(0)),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Share::Bytes(bytes) => write!(f, "{bytes}"),
            Share::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}
