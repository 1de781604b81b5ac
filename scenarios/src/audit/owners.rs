//! The names of owners as Redisson forms them.

/// The end of a writer's field.
pub(super) const WRITE: &str = ":write";

/// Returns true for the name of an owner as Redisson forms it: a UUID, a colon and the number of a
/// thread. Other hashes may have counters whose names have colons, too.
pub(super) fn is_redisson_owner(field: &[u8]) -> bool {
    let Some((id, [b':', thread @ ..])) = field.split_at_checked(36) else { return false };
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let is_id =
        |(at, byte): (usize, &u8)| if is_hyphen(at) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    let digits = thread.strip_prefix(b"-").unwrap_or(thread);
    id.iter().enumerate().all(is_id) && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Returns true for the name of a reader or a writer as Redisson forms it.
pub(super) fn is_member(word: &[u8]) -> bool {
    is_redisson_owner(word.strip_suffix(WRITE.as_bytes()).unwrap_or(word))
}
