//! The names and times that all processes sharing a lock must agree on: its keys, channels and
//! slots, and the part of a lease that no holder may use. The names are Redisson's, so that both
//! kinds of clients can share a lock.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use highway::{HighwayHash, HighwayHasher, Key};

/// Returns the name of the companion key `prefix` of `name`: `prefix:{name}`. The braces make the
/// name a hash tag, so that the companion keys of a lock are in its slot. They are left out if the
/// name already has a brace.
///
/// ```
/// use lockstorm_client::wire::prefixed;
/// assert_eq!(prefixed("redisson_lock_queue", "stock"), "redisson_lock_queue:{stock}");
/// assert_eq!(prefixed("redisson_lock_queue", "{shop}:stock"), "redisson_lock_queue:{shop}:stock");
/// ```
pub fn prefixed(prefix: &str, name: &str) -> String {
    if name.contains('{') { format!("{prefix}:{name}") } else { format!("{prefix}:{{{name}}}") }
}

/// Returns the channel on which the release of the lock `name` is published.
pub fn lock_channel(name: &str) -> String {
    prefixed("redisson_lock__channel", name)
}

/// Returns the channel of one waiter in the queue of the fair lock `name`, on which its turn is
/// published.
pub fn waiter_channel(name: &str, owner: &str) -> String {
    format!("{}:{owner}", lock_channel(name))
}

/// Returns the key that stores the result of one release request, for its retries.
pub fn unlock_latch(name: &str, request: &str) -> String {
    format!("{}{request}", unlock_latches(name))
}

/// Returns the prefix of the keys of all release requests of the lock `name`. Each has a TTL, and a
/// later release may delete it earlier.
pub fn unlock_latches(name: &str) -> String {
    prefixed("redisson_unlock_latch", name) + ":"
}

/// Returns the key of the counter of fencing tokens of the fenced lock `name`.
pub fn fencing_token(name: &str) -> String {
    prefixed("redisson_lock_token", name)
}

/// Returns the key of the list of owners that wait for the fair lock `name`; its head is next.
pub fn fair_queue(name: &str) -> String {
    prefixed("redisson_lock_queue", name)
}

/// Returns the key of the sorted set of deadlines, in Unix milliseconds, until which each waiter of
/// the fair lock `name` counts as alive.
pub fn fair_deadlines(name: &str) -> String {
    prefixed("redisson_lock_timeout", name)
}

/// Returns the key of the sorted set of times, in Unix milliseconds, by which each living waiter of
/// the fair lock `name` asks again. Redisson has no such key and does not touch it. It exists as
/// long as the places in the queue.
pub fn fair_alive(name: &str) -> String {
    prefixed("redisson_lock_alive", name)
}

/// Returns the channel of the read-write lock `name`, which both modes share.
pub fn rw_channel(name: &str) -> String {
    prefixed("redisson_rwlock", name)
}

/// Returns the prefix of the keys of the read holds of `owner` at the read-write lock `name`: `:1`,
/// `:2` and so on follow, one for each level. Each key expires with its lease.
pub fn read_holds(name: &str, owner: &str) -> String {
    suffixed(name, &format!("{owner}:rwlock_timeout"))
}

/// Returns the channel on which the permits of the semaphore `name` are published.
pub fn semaphore_channel(name: &str) -> String {
    prefixed("redisson_sc", name)
}

/// Returns the channel on which the opening of the count-down latch `name` is published. It adds
/// braces even around a name that already has some; its slot then differs from that of the key.
///
/// ```
/// use lockstorm_client::wire::{Slot, latch_channel};
/// assert_eq!(latch_channel("start"), "redisson_countdownlatch__channel__{start}");
/// assert_eq!(Slot::of(&latch_channel("start")), Slot::of("start"));
/// assert_ne!(Slot::of(&latch_channel("my{tag}")), Slot::of("my{tag}"));
/// ```
pub fn latch_channel(name: &str) -> String {
    format!("redisson_countdownlatch__channel__{{{name}}}")
}

/// Returns the key of the number of permits that the rate limiter `name` has left for all clients
/// together.
pub fn rate_permits(name: &str) -> String {
    suffixed(name, "value")
}

/// Returns the key of the sorted set of grants of the rate limiter `name` to all clients together.
/// A member has 21 bytes; the last four are the number of permits. The score is the time of the
/// grant in Unix milliseconds.
pub fn rate_grants(name: &str) -> String {
    suffixed(name, "permits")
}

/// Returns the key of the sorted set of held permits of the expirable semaphore `name`: the 16
/// bytes of each id, by its deadline in Unix milliseconds.
pub fn permit_deadlines(name: &str) -> String {
    suffixed(name, "timeout")
}

/// Returns the name of the companion key `suffix` of `name`: `{name}:suffix`. The braces, which
/// make the name a hash tag, are left out if the name already has one.
///
/// ```
/// use lockstorm_client::wire::suffixed;
/// assert_eq!(suffixed("stock", "timeout"), "{stock}:timeout");
/// assert_eq!(suffixed("{shop}:stock", "timeout"), "{shop}:stock:timeout");
/// ```
pub fn suffixed(name: &str, suffix: &str) -> String {
    format!("{}:{suffix}", suffix_tag(name))
}

/// Returns the prefix of the companion keys of `name` that have a suffix: `name` as a hash tag, or
/// `name` itself if it already has a brace.
pub fn suffix_tag(name: &str) -> String {
    if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") }
}

/// Returns the field that stores the owner of a value in the hash of a faster multi-lock's group:
/// the Base64 of the value's `HighwayHash`, 128 bits with Redisson's key, over its encoded bytes.
/// Two more fields begin with it: `field:owner:expire_time` and `field:owner:lock_count`.
///
/// ```
/// assert_eq!(lockstorm_client::wire::group_field(b"f1"), "uxmtuxwbA6v+mqalmQLIOA");
/// ```
pub fn group_field(encoded: &[u8]) -> String {
    const KEY: Key =
        Key([0x9e37_79b9_7f4a_7c15, 0xf39c_c060_5ced_c834, 0x1082_276b_f3a2_7251, 0xf86c_6a11_d0c1_8e95]);
    let [high, low] = HighwayHasher::new(KEY).hash128(encoded);
    STANDARD_NO_PAD.encode([high.to_be_bytes(), low.to_be_bytes()].concat())
}

/// The default allowance for clocks of different rates, in millionths of a lease: 1 %.
pub const DRIFT_PPM: u32 = 10_000;

/// The allowance for the granularity of Redis's expiry, in addition to that for clock rates.
pub const EXPIRY_MARGIN: Duration = Duration::from_millis(2);

/// Returns the part of a lease that its holder does not use, so that it stops before the server
/// does: 1 % for clocks of different rates and 2 ms for the granularity of Redis's expiry, as the
/// Redlock page proposes.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(lockstorm_client::wire::drift_margin(Duration::from_secs(10)), Duration::from_millis(102));
/// ```
pub fn drift_margin(lease: Duration) -> Duration {
    drift_margin_of(lease, DRIFT_PPM)
}

/// As [`drift_margin`], with another allowance for clock rates, in millionths.
pub fn drift_margin_of(lease: Duration, ppm: u32) -> Duration {
    let (whole, rest) = (lease.as_secs(), u64::from(lease.subsec_nanos()));
    // Both products fit: the seconds saturate, and less than 10^9 ns times 2^32 is less than 2^63.
    let per_second = Duration::from_nanos(u64::from(ppm) * 1000);
    let of_whole = per_second.saturating_mul(u32::try_from(whole).unwrap_or(u32::MAX));
    let of_rest = Duration::from_nanos(rest * u64::from(ppm) / 1_000_000);
    of_whole.saturating_add(of_rest).saturating_add(EXPIRY_MARGIN)
}

/// One of the 16,384 parts into which a Redis Cluster divides its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    /// The number of slots, fixed by Redis Cluster: slots are numbered from 0 to 16,383.
    pub const COUNT: u16 = 16_384;

    /// Returns the slot of a key. It is computed from the hash tag, if the key has one: the text
    /// between the first `{` and the next `}`, if that is not empty.
    ///
    /// ```
    /// use lockstorm_client::wire::{Slot, lock_channel};
    /// assert_eq!(Slot::of("foo"), Slot(12182));
    /// assert_eq!(Slot::of(&lock_channel("foo")), Slot::of("foo"));
    /// ```
    pub fn of(key: &str) -> Self {
        let tag = key.split_once('{').and_then(|(_, behind)| behind.split_once('}')).map(|(tag, _)| tag);
        let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
        Self(crc16(hashed.as_bytes()) % Self::COUNT)
    }
}

/// Computes CRC-16/XMODEM, as Redis Cluster specifies. The table holds the result for each byte.
fn crc16(bytes: &[u8]) -> u16 {
    const TABLE: [u16; 256] = {
        let (mut table, mut byte) = ([0; 256], 0_u16);
        while byte < 256 {
            let (mut crc, mut bit) = (byte << 8, 0);
            while bit < 8 {
                crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
                bit += 1;
            }
            table[byte as usize] = crc;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| crc << 8 ^ TABLE[usize::from((crc >> 8).to_be_bytes()[1] ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companion_names_share_the_slot_of_the_lock() {
        for (name, channel) in [
            ("lk", "redisson_lock__channel:{lk}"),
            ("a{tag}b", "redisson_lock__channel:a{tag}b"),
            // Not a valid hash tag, but Redisson only checks for the brace.
            ("a{b", "redisson_lock__channel:a{b"),
        ] {
            assert_eq!(lock_channel(name), channel);
        }
        assert_eq!(waiter_channel("fl", "c:1"), "redisson_lock__channel:{fl}:c:1");
        assert_eq!(unlock_latch("lk", "q1"), "redisson_unlock_latch:{lk}:q1");
        assert_eq!(fencing_token("f"), "redisson_lock_token:{f}");
        assert_eq!(fair_queue("fl"), "redisson_lock_queue:{fl}");
        assert_eq!(fair_deadlines("fl"), "redisson_lock_timeout:{fl}");
        assert_eq!(fair_alive("fl"), "redisson_lock_alive:{fl}");
        assert_eq!(rw_channel("rw"), "redisson_rwlock:{rw}");
        assert_eq!(read_holds("rw", "c:1"), "{rw}:c:1:rwlock_timeout");
        assert_eq!(read_holds("{a}b", "c:1"), "{a}b:c:1:rwlock_timeout");
        assert_eq!(semaphore_channel("s"), "redisson_sc:{s}");
        assert_eq!(permit_deadlines("p"), "{p}:timeout");
        assert_eq!((rate_permits("r"), rate_grants("a{t}b")), ("{r}:value".into(), "a{t}b:permits".into()));
    }

    /// Observed from Redisson 4.7 with its `StringCodec`, for values that repeat the start of the
    /// alphabet.
    #[test]
    fn fields_of_values() {
        for (length, field) in [
            (0, "t6rZwibGo2uy1OSmNVe8pg"),
            (1, "qwvAS12pR0CgRitaypEjUw"),
            (7, "P6TpLrU4Dz8XExotmdI1nA"),
            (8, "omG782WBnZu4wQ1oFrUAfQ"),
            (15, "fbvr+UR0uYE5hcFqmrwKxg"),
            (16, "DRQHuJNg2ZB9Ji9kknWISA"),
            (31, "k8mw06+nH0D67fe7BlHcPQ"),
            (32, "l2YtAgD1nadzYggCR0ESHQ"),
            (33, "eAMZ7B2IDHAjz89MlTcbUA"),
            (64, "aX1VUsoxKHuF7Bk0q0wukg"),
            (69, "uWpixRl9RKfCElywctUQrQ"),
        ] {
            let value: Vec<u8> = (b'a'..=b'z').cycle().take(length).collect();
            assert_eq!(group_field(&value), field, "{length} letters");
        }
    }

    /// Observed from CLUSTER KEYSLOT of a real server.
    #[test]
    fn slots() {
        for (key, slot) in [
            ("", 0),
            ("foo", 12182),
            ("123456789", 0x31c3),
            ("{foo}bar", 12182),
            ("my{tag}", 8338),
            // No tag: nothing between the braces, or no closing brace.
            ("a{}b", 13694),
            ("a{b", 13340),
            ("a}{foo}", 12182),
        ] {
            assert_eq!(Slot::of(key), Slot(slot), "{key}");
        }
        for name in ["stock", "a{tag}b"] {
            for companion in [
                fair_queue(name),
                fair_deadlines(name),
                fair_alive(name),
                fencing_token(name),
                permit_deadlines(name),
                read_holds(name, "c:1"),
            ] {
                assert_eq!(Slot::of(&companion), Slot::of(name), "{companion}");
            }
        }
    }

    #[test]
    fn drift_margins() {
        let (ms, secs) = (Duration::from_millis, Duration::from_secs);
        for (lease, ppm, margin) in [
            (Duration::ZERO, DRIFT_PPM, ms(2)),
            (ms(1500), DRIFT_PPM, ms(17)),
            (secs(30), DRIFT_PPM, ms(302)),
            (secs(30), 0, ms(2)),
            (secs(10), 1_000_000, ms(10_002)),
            (Duration::from_nanos(999_999_999), u32::MAX, Duration::from_nanos(4_294_967_290_705) + ms(2)),
        ] {
            assert_eq!(drift_margin_of(lease, ppm), margin, "{lease:?} {ppm}");
        }
        assert!(drift_margin_of(Duration::MAX, u32::MAX) > secs(u64::from(u32::MAX)));
    }
}
