//! Maps keys to the 16,384 slots.

/// Number of slots.
pub const SLOTS: u16 = 16_384;

/// The CRC of each byte: XMODEM, polynomial 0x1021.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// Returns the slot of a key. Keys with the same non-empty text between the first `{` and the first
/// `}` after it share a slot.
pub fn key_slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let len = rest.iter().position(|byte| *byte == b'}')?;
        (len > 0).then(|| &rest[..len])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// Returns the slot of all keys that a pattern can match; `None` if they may be in several.
pub fn pattern_slot(pattern: &[u8]) -> Option<u16> {
    let mut open = None;
    for (at, byte) in pattern.iter().enumerate() {
        match byte {
            b'*' | b'?' | b'[' | b'\\' => return None,
            b'{' => open = open.or(Some(at)),
            b'}' if open.is_some_and(|open| at > open + 1) => break,
            _ => {}
        }
    }
    Some(key_slot(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_a_slot_if_its_hash_tag_comes_before_what_it_leaves_open() {
        for (pattern, slot) in [
            ("foo", Some(12182)),
            ("w_{foo}*", Some(12182)),
            ("w_*", None),
            ("*{foo}", None),
            ("{fo?}", None),
            ("{}*", None),
        ] {
            assert_eq!(pattern_slot(pattern.as_bytes()), slot, "{pattern}");
        }
    }

    #[test]
    fn keys_belong_to_the_slots_that_redis_gives_them() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        for (key, slot) in [
            ("", 0),
            ("foo", 12182),
            ("bar", 5061),
            ("hello", 866),
            ("foo{bar}", 5061),
            ("{bar}foo", 5061),
            ("foo{bar}{zap}", 5061),
            ("foo{{bar}}zap", 4015),
            ("{}", 15257),
            ("{}a", 10875),
            ("a{}b", 13694),
            ("foo{}{bar}", 8363),
            ("a{b", 13340),
            ("}{bar}", 5061),
            ("a}b{c}d", 7365),
            ("{a}{b}", 15495),
            ("}a{", 11710),
            ("{user1000}.following", 3443),
            ("redisson_lock__channel:{myLock}", 12769),
            ("{é}", 10180),
            ("my{tag}", 8338),
        ] {
            assert_eq!(key_slot(key.as_bytes()), slot, "{key}");
        }
    }
}
