//! Bytes to whole replies, counted, so that a proxy knows which requests a server has answered.

/// The maximum length kept of a line, to read a length from it; the rest of a longer line is
/// skipped.
const LINE_MAX: usize = 32;

/// Counts the replies in a stream of bytes, however it is split. Pushes, which answer no request,
/// are not counted.
///
/// ```
/// use lockstorm_sim::resp::ReplyCounter;
/// let mut replies = ReplyCounter::default();
/// assert_eq!(replies.count(b"+OK\r\n*2\r\n:1\r\n$2\r\n\r"), 1);
/// assert_eq!(replies.count(b"\n\r\n>1\r\n+news\r\n_\r\n"), 2);
/// ```
#[derive(Debug, Default)]
pub struct ReplyCounter {
    /// The number of missing elements of the reply being read; 0 between replies.
    missing: u64,
    /// True while the reply being read is a push.
    is_push: bool,
    /// The number of missing bytes of the string being read, with its line break.
    skip: u64,
    /// The received part of a line.
    line: Vec<u8>,
}

impl ReplyCounter {
    /// Reads the next bytes; returns the number of replies that they complete.
    pub fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut complete = 0;
        while let Some(&byte) = bytes.first() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len() as u64);
                self.skip -= skipped;
                bytes = &bytes[usize::try_from(skipped).unwrap_or(bytes.len())..];
            } else {
                bytes = &bytes[1..];
                if byte != b'\n' {
                    if self.line.len() < LINE_MAX {
                        self.line.push(byte);
                    }
                    continue;
                }
                self.take_in_line();
            }
            if self.skip == 0 && self.missing == 0 {
                complete += u64::from(!self.is_push);
                self.is_push = false;
            }
        }
        complete
    }

    /// Reads the first line of an element, which determines the elements and bytes that follow.
    fn take_in_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let length =
            std::str::from_utf8(line.get(1..).unwrap_or_default()).unwrap_or_default().trim_end().parse();
        // A null has a negative length, and nothing follows it.
        let length = length.map_or(0, |length: i64| u64::try_from(length).unwrap_or(0));
        let is_null = line.get(1) == Some(&b'-');
        let kind = line.first().copied().unwrap_or_default();
        if self.missing == 0 {
            (self.missing, self.is_push) = (1, kind == b'>');
        }
        let elements = match kind {
            b'*' | b'~' | b'>' => length,
            b'%' => length.saturating_mul(2),
            // An attribute precedes the reply it belongs to, so one more element follows.
            b'|' => length.saturating_mul(2).saturating_add(1),
            _ => 0,
        };
        if matches!(kind, b'$' | b'=' | b'!') && !is_null {
            self.skip = length.saturating_add(2);
        }
        self.missing = (self.missing - 1).saturating_add(elements);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_every_type_are_counted_however_they_are_split() {
        let rows: [(&[u8], u64); 12] = [
            (b"+OK\r\n-ERR no\r\n:-1\r\n", 3),
            (b"$2\r\n\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n", 5),
            (b"*0\r\n", 1),
            (b"*2\r\n*2\r\n:1\r\n:2\r\n$1\r\na\r\n", 1),
            (b"*2\r\n*2\r\n:1\r\n:2\r\n", 0),
            (b"%1\r\n+a\r\n~1\r\n#t\r\n,1.5\r\n(12345678901234567890123456789012345678901234567890\r\n", 3),
            (b"=7\r\ntxt:a\r\n\r\n!3\r\nERR\r\n", 2),
            (b"|1\r\n+ttl\r\n:1\r\n+OK\r\n", 1),
            (b">2\r\n+message\r\n$1\r\na\r\n", 0),
            (b">1\r\n*1\r\n+a\r\n+OK\r\n", 1),
            (b"+a line that is longer than any length would be\r\n", 1),
            (b"", 0),
        ];
        for (bytes, expected) in rows {
            let shown = bytes.escape_ascii();
            assert_eq!(ReplyCounter::default().count(bytes), expected, "{shown}");
            let mut replies = ReplyCounter::default();
            let counted: u64 = bytes.iter().map(|byte| replies.count(&[*byte])).sum();
            assert_eq!(counted, expected, "{shown}, byte by byte");
        }
    }
}
