//! Reads the replies and pushed messages of a server that speaks RESP3.

/// The most bytes that wait for their end; a server that sends more is left.
const UNREAD_MAX: usize = 64 << 20;

/// The most lists within each other; no reply that the audit asks for is deeper.
const DEPTH_MAX: usize = 8;

/// A reply, or a message that the server pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// Text of any kind, numbers that are not integers included.
    Text(Vec<u8>),
    Error(String),
    Integer(i64),
    Null,
    /// An array, a set, or a map as its keys and values in turn.
    List(Vec<Item>),
    /// A message that is no reply.
    Push(Vec<Item>),
}

impl Item {
    /// Returns the bytes of a text; none of another item.
    pub(super) fn text(&self) -> &[u8] {
        if let Item::Text(text) = self { text } else { &[] }
    }

    /// Returns the texts and numbers of a reply as one list, with inner lists in their places.
    pub(super) fn flat(self) -> Vec<Item> {
        match self {
            Item::List(items) | Item::Push(items) => items.into_iter().flat_map(Item::flat).collect(),
            item => vec![item],
        }
    }
}

/// The bytes are no reply, or exceed the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoReply;

/// Splits a stream of bytes into items, regardless of how the bytes are split.
#[derive(Debug, Default)]
pub(super) struct Reader {
    buffer: Vec<u8>,
    taken: usize,
}

impl Reader {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.taken));
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next item; `None` until it is complete.
    pub(super) fn next(&mut self) -> Result<Option<Item>, NoReply> {
        let mut rest = &self.buffer[self.taken..];
        let item = one(&mut rest, 0)?;
        if item.is_some() {
            self.taken = self.buffer.len() - rest.len();
        } else if rest.len() > UNREAD_MAX {
            return Err(NoReply);
        }
        Ok(item)
    }
}

/// Takes one item off the front; `None` if it is incomplete.
fn one(rest: &mut &[u8], depth: usize) -> Result<Option<Item>, NoReply> {
    let whole = *rest;
    let Some(end) = whole.windows(2).position(|two| two == b"\r\n") else {
        return if whole.len() > UNREAD_MAX { Err(NoReply) } else { Ok(None) };
    };
    let (line, after) = (&whole[..end], &whole[end + 2..]);
    let Some((kind, text)) = line.split_first() else { return Err(NoReply) };
    let number = || std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok()).ok_or(NoReply);
    *rest = after;
    Ok(Some(match kind {
        b'+' | b',' | b'(' | b'#' => Item::Text(text.to_vec()),
        b'-' => Item::Error(String::from_utf8_lossy(text).into_owned()),
        b':' => Item::Integer(number()?),
        b'_' => Item::Null,
        b'$' | b'*' if number()? < 0 => Item::Null,
        b'$' | b'=' | b'!' => {
            let len = usize::try_from(number()?).ok().filter(|len| *len <= UNREAD_MAX).ok_or(NoReply)?;
            let Some((bytes, after)) = after.split_at_checked(len) else { return Ok(None) };
            let Some((mark, after)) = after.split_at_checked(2) else { return Ok(None) };
            if mark != b"\r\n" {
                return Err(NoReply);
            }
            *rest = after;
            match kind {
                b'!' => Item::Error(String::from_utf8_lossy(bytes).into_owned()),
                // Three letters of a format precede the text.
                b'=' => Item::Text(bytes.get(4..).unwrap_or_default().to_vec()),
                _ => Item::Text(bytes.to_vec()),
            }
        }
        b'*' | b'~' | b'%' | b'>' => {
            let count = usize::try_from(number()?).ok().filter(|len| *len <= UNREAD_MAX).ok_or(NoReply)?;
            if depth == DEPTH_MAX {
                return Err(NoReply);
            }
            let mut items = Vec::new();
            for _ in 0..if *kind == b'%' { 2 * count } else { count } {
                let Some(item) = one(rest, depth + 1)? else { return Ok(None) };
                items.push(item);
            }
            if *kind == b'>' { Item::Push(items) } else { Item::List(items) }
        }
        _ => return Err(NoReply),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Item {
        Item::Text(text.into())
    }

    #[test]
    fn replies_and_messages_are_read_however_they_are_cut() {
        let stream =
            b"%1\r\n$5\r\nproto\r\n:3\r\n>3\r\n$10\r\npsubscribe\r\n$1\r\na\r\n:1\r\n=7\r\ntxt:a\r\n\r\n\
            *1\r\n*2\r\n$3\r\nu:1\r\n$1\r\n1\r\n-WRONGTYPE no\r\n_\r\n$-1\r\n+hash\r\n:-2\r\n";
        let expected = vec![
            Item::List(vec![text("proto"), Item::Integer(3)]),
            Item::Push(vec![text("psubscribe"), text("a"), Item::Integer(1)]),
            text("a\r\n"),
            Item::List(vec![Item::List(vec![text("u:1"), text("1")])]),
            Item::Error("WRONGTYPE no".into()),
            Item::Null,
            Item::Null,
            text("hash"),
            Item::Integer(-2),
        ];
        for cut in 0..=stream.len() {
            let (mut reader, mut read) = (Reader::default(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                reader.feed(part);
                while let Some(item) = reader.next().expect("items") {
                    read.push(item);
                }
            }
            assert_eq!(read, expected, "cut at {cut}");
        }
        assert_eq!(expected[3].clone().flat(), [text("u:1"), text("1")]);
    }

    #[test]
    fn bytes_that_are_no_reply_are_refused() {
        let deep = "*1\r\n".repeat(DEPTH_MAX + 1) + ":1\r\n";
        for bytes in ["HTTP/1.1\r\n", "\r\n", ":x\r\n", "$3\r\nabcde", "$99999999999\r\n", "*-2\r\n", &deep] {
            let mut reader = Reader::default();
            reader.feed(bytes.as_bytes());
            let read = reader.next();
            assert!(read == Err(NoReply) || bytes == "*-2\r\n" && read == Ok(Some(Item::Null)), "{bytes:?}");
        }
    }
}
