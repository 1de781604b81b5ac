//! Bytes to replies, for a node that is itself the client of another.

use bytes::Bytes;

use super::Reply;

/// The maximum number of bytes of unread replies; a peer that sends more is an error.
const UNREAD_MAX: usize = 4 << 20;

/// The maximum depth of nested arrays; no server sends deeper replies.
const DEPTH_MAX: usize = 8;

/// The peer does not speak the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer sends what is no reply")]
pub struct NoReply;

/// Splits a stream of bytes into RESP2 replies, regardless of how the bytes are split.
///
/// ```
/// use lockstorm_sim::resp::{Reply, ReplyReader};
/// let mut answers = ReplyReader::default();
/// answers.feed(b"+PONG\r\n*2\r\n:1\r\n$1\r\n");
/// assert_eq!(answers.next(), Ok(Some(Reply::Status("PONG".into()))));
/// assert_eq!(answers.next(), Ok(None));
/// answers.feed(b"*\r\n");
/// assert_eq!(answers.next(), Ok(Some(Reply::Array(vec![Reply::Integer(1), Reply::bulk("*")]))));
/// ```
#[derive(Debug, Default)]
pub struct ReplyReader {
    buffer: Vec<u8>,
    taken: usize,
}

impl ReplyReader {
    /// Adds received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.taken));
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next reply; `None` until it is complete.
    ///
    /// # Errors
    /// If the bytes are no reply, or exceed the limits.
    #[expect(clippy::should_implement_trait, reason = "an iterator ends for good at `None`")]
    pub fn next(&mut self) -> Result<Option<Reply>, NoReply> {
        let mut rest = &self.buffer[self.taken..];
        if rest.len() > UNREAD_MAX {
            return Err(NoReply);
        }
        let Some(reply) = one(&mut rest, 0)? else { return Ok(None) };
        self.taken = self.buffer.len() - rest.len();
        Ok(Some(reply))
    }
}

/// Takes one reply off the front; `None` if it is incomplete.
fn one(rest: &mut &[u8], depth: usize) -> Result<Option<Reply>, NoReply> {
    let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let (line, after) = (&rest[..end], &rest[end + 2..]);
    let Some((kind, text)) = line.split_first() else { return Err(NoReply) };
    let words = || String::from_utf8_lossy(text).into_owned();
    let number = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok()).ok_or(NoReply);
    *rest = after;
    Ok(Some(match kind {
        b'+' => Reply::Status(words().into()),
        b'-' => Reply::Error(words().into()),
        b':' => Reply::Integer(number()?),
        b'$' | b'*' if number()? < 0 => Reply::Null,
        b'$' => {
            let len = usize::try_from(number()?).ok().filter(|len| *len <= UNREAD_MAX).ok_or(NoReply)?;
            let Some((bytes, after)) = after.split_at_checked(len) else { return Ok(None) };
            let Some((mark, after)) = after.split_at_checked(2) else { return Ok(None) };
            if mark != b"\r\n" {
                return Err(NoReply);
            }
            *rest = after;
            Reply::from(Bytes::copy_from_slice(bytes))
        }
        b'*' => {
            let len = usize::try_from(number()?).map_err(|_| NoReply)?;
            if depth == DEPTH_MAX || len > UNREAD_MAX {
                return Err(NoReply);
            }
            let mut items = Vec::new();
            for _ in 0..len {
                let Some(item) = one(rest, depth + 1)? else { return Ok(None) };
                items.push(item);
            }
            Reply::Array(items)
        }
        _ => return Err(NoReply),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_however_they_are_cut() {
        let stream = b"+OK\r\n-ERR no\r\n:-7\r\n$-1\r\n*-1\r\n$2\r\n\r\n\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n";
        let expected = vec![
            Reply::Status("OK".into()),
            Reply::Error("ERR no".into()),
            Reply::Integer(-7),
            Reply::Null,
            Reply::Null,
            Reply::bulk("\r\n"),
            Reply::Array(vec![Reply::bulk("a"), Reply::Array(vec![Reply::Integer(1)])]),
        ];
        for cut in 0..=stream.len() {
            let (mut answers, mut read) = (ReplyReader::default(), vec![]);
            for part in [&stream[..cut], &stream[cut..]] {
                answers.feed(part);
                while let Some(reply) = answers.next().expect("replies") {
                    read.push(reply);
                }
            }
            assert_eq!(read, expected, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused_and_nothing_grows_without_bound() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 1) + ":1\r\n";
        let rows =
            ["HTTP/1.1\r\n", "\r\n", ":x\r\n", "$3\r\nabcde", "$99999999999\r\n", "*99999999999\r\n", &deep];
        for bytes in rows {
            let mut answers = ReplyReader::default();
            answers.feed(bytes.as_bytes());
            assert_eq!(answers.next(), Err(NoReply), "{bytes:?}");
        }
        let mut answers = ReplyReader::default();
        answers.feed(&vec![b'+'; UNREAD_MAX + 1]);
        assert_eq!(answers.next(), Err(NoReply));
    }
}
