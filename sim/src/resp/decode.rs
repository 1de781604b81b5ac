//! Bytes to commands: multibulk arrays and inline lines, regardless of how the bytes are split.

use bytes::Bytes;

/// The limits of requests. The defaults are those of `redis-server`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one argument (`proto-max-bulk-len`).
    pub bulk_len_max: usize,
    /// Arguments of one command.
    pub multibulk_len_max: i64,
    /// Bytes of an inline command or of a length line.
    pub inline_len_max: usize,
    /// Set while the peer has yet to authenticate, which lowers the limits.
    pub stranger: bool,
}

/// The maximum number of arguments, and of bytes of each, from an unauthenticated peer.
const STRANGER: (i64, i64) = (10, 16 << 10);

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bulk_len_max: 512 << 20,
            multibulk_len_max: i32::MAX as i64,
            inline_len_max: 64 << 10,
            stranger: false,
        }
    }
}

impl Limits {
    /// Returns the limits for an unauthenticated peer.
    pub fn unauthenticated(self) -> Limits {
        Limits { stranger: true, ..self }
    }
}

/// A protocol error. The text is the error reply that the peer gets before the connection is
/// closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ERR Protocol error: {0}")]
pub struct ProtocolError(pub String);

/// Splits a stream of bytes into commands. One per connection.
///
/// ```
/// use lockstorm_sim::resp::Decoder;
/// let mut decoder = Decoder::default();
/// decoder.feed(b"*1\r\n$4\r\nPI");
/// assert_eq!(decoder.next(&Default::default()), Ok(None));
/// decoder.feed(b"NG\r\n");
/// assert_eq!(decoder.next(&Default::default()), Ok(Some(vec!["PING".into()])));
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    /// The received bytes, of which the first `taken` are processed.
    buffer: Vec<u8>,
    taken: usize,
    /// The number of missing arguments of the array being read; 0 between commands.
    missing: usize,
    /// The length of the argument being read, once its length line has arrived.
    bulk: Option<usize>,
    args: Vec<Bytes>,
    /// The first argument of the last array, kept because the next one usually has the same.
    name: Bytes,
    /// The memory of the arguments so far.
    held: usize,
    /// The length of the rest of the buffer that contains no end of a line.
    searched: usize,
    /// Set after an empty line.
    blank: bool,
}

/// The buffer capacity that a connection keeps for its next commands: a pipeline of small ones.
const KEPT: usize = 4 << 10;

/// The maximum length of a first argument that is kept: no command has a longer name.
const NAME_KEPT: usize = 32;

/// The number of arguments that a connection keeps capacity for.
const ARGS_KEPT: usize = 64;

impl Decoder {
    /// Adds received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.taken));
        self.buffer.extend_from_slice(bytes);
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Marks `count` more bytes as processed.
    fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.buffer.len() {
            self.taken = 0;
            self.buffer.clear();
            self.buffer.shrink_to(KEPT);
        }
    }

    /// Takes back the arguments of a processed command, to reuse their vector.
    pub fn recycle(&mut self, mut args: Vec<Bytes>) {
        if self.args.capacity() == 0 && args.capacity() <= ARGS_KEPT {
            args.clear();
            self.args = args;
        }
    }

    /// Returns the number of bytes held, of the command being read and of those after it. Each
    /// argument adds the size of its handle, so that even empty arguments count.
    pub fn buffered(&self) -> usize {
        self.unread() + self.held
    }

    /// Returns true if an empty line has arrived since the last call: a replica sends empty lines
    /// to show that it is alive.
    pub fn take_blank(&mut self) -> bool {
        std::mem::take(&mut self.blank)
    }

    /// Returns the number of received bytes from which nothing was parsed yet.
    pub fn unread(&self) -> usize {
        self.buffer.len() - self.taken
    }

    /// Returns the length of the argument being read with its line break; 0 if it is not known.
    pub fn awaited(&self) -> usize {
        self.bulk.map_or(0, |len| len + 2)
    }

    /// Returns the parsed arguments of the command being read.
    pub fn parsed(&self) -> &[Bytes] {
        &self.args
    }

    /// Returns the next complete command, or `None` until more bytes have arrived. Never returns an
    /// empty command.
    ///
    /// # Errors
    /// If the bytes are no command; the rest of the stream cannot be read then.
    pub fn next(&mut self, limits: &Limits) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        loop {
            if self.missing == 0 {
                match self.rest().first() {
                    None => return Ok(None),
                    Some(b'*') => {
                        let Some(count) = self.length_line(limits, "too big mbulk count string")? else {
                            return Ok(None);
                        };
                        let count = count.filter(|n| *n <= limits.multibulk_len_max);
                        let count = count.ok_or_else(|| error("invalid multibulk length"))?;
                        if limits.stranger && count > STRANGER.0 {
                            return Err(error("unauthenticated multibulk length"));
                        }
                        if count <= 0 {
                            continue;
                        }
                        self.missing = count as usize;
                        // The count is not trustworthy, so memory is only allocated as arguments
                        // arrive.
                        self.args.reserve(self.missing.min(ARGS_KEPT));
                    }
                    Some(_) => match self.inline(limits)? {
                        None => return Ok(None),
                        Some(args) if args.is_empty() => {
                            self.blank = true;
                            continue;
                        }
                        Some(args) => return Ok(Some(args)),
                    },
                }
            }
            while self.missing > 0 {
                let len = match self.bulk {
                    Some(len) => len,
                    None => {
                        match self.rest().first() {
                            None => return Ok(None),
                            Some(b'$') => {}
                            Some(&other) => {
                                return Err(error(format!("expected '$', got '{}'", char::from(other))));
                            }
                        }
                        let Some(len) = self.length_line(limits, "too big bulk count string")? else {
                            return Ok(None);
                        };
                        let len = len.filter(|n| (0..=limits.bulk_len_max as i64).contains(n));
                        let len = len.ok_or_else(|| error("invalid bulk length"))?;
                        if limits.stranger && len > STRANGER.1 {
                            return Err(error("unauthenticated bulk length"));
                        }
                        *self.bulk.insert(len as usize)
                    }
                };
                let Some(bytes) = self.rest().get(..len + 2) else { return Ok(None) };
                let bytes = &bytes[..len];
                // Copy the bytes, so that a stored argument does not keep the whole read buffer
                // alive.
                let arg = if !self.args.is_empty() || len > NAME_KEPT {
                    Bytes::copy_from_slice(bytes)
                } else {
                    if self.name != bytes {
                        self.name = Bytes::copy_from_slice(bytes);
                    }
                    self.name.clone()
                };
                self.args.push(arg);
                self.held += len + size_of::<Bytes>();
                self.take(len + 2);
                self.bulk = None;
                self.missing -= 1;
            }
            self.held = 0;
            return Ok(Some(std::mem::take(&mut self.args)));
        }
    }

    /// Reads `*3\r\n` or `$3\r\n`: `None` until the line is complete, `Some(None)` if it holds no
    /// number.
    fn length_line(&mut self, limits: &Limits, too_long: &str) -> Result<Option<Option<i64>>, ProtocolError> {
        if let Some((number, len)) = short_line(self.rest()) {
            self.take(len);
            self.searched = 0;
            return Ok(Some(Some(number)));
        }
        let Some(end) = self.find(b'\r') else {
            if self.unread() > limits.inline_len_max {
                return Err(error(too_long));
            }
            return Ok(None);
        };
        if self.unread() < end + 2 {
            return Ok(None);
        }
        let number = parse_integer(&self.rest()[1..end]);
        self.take(end + 2);
        self.searched = 0;
        Ok(Some(number))
    }

    fn inline(&mut self, limits: &Limits) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        let Some(end) = self.find(b'\n') else {
            if self.unread() > limits.inline_len_max {
                return Err(error("too big inline request"));
            }
            return Ok(None);
        };
        let line = &self.rest()[..end];
        let words = split_words(line.strip_suffix(b"\r").unwrap_or(line));
        self.take(end + 1);
        self.searched = 0;
        words.map(Some).ok_or_else(|| error("unbalanced quotes in request"))
    }

    fn find(&mut self, byte: u8) -> Option<usize> {
        let ends = |&b: &u8| b == byte || b == 0;
        let rest = &self.buffer[self.taken..];
        let found = rest[self.searched..].iter().position(ends).map(|at| at + self.searched);
        // The last byte is searched again: that costs nothing, and keeps `searched` inside the
        // buffer.
        self.searched = found.unwrap_or(rest.len().saturating_sub(1));
        // As in C, a zero byte ends the search: such a line never ends.
        found.filter(|at| rest[*at] == byte)
    }
}

fn error(text: impl Into<String>) -> ProtocolError {
    ProtocolError(text.into())
}

/// Returns the number of a length line and the length of that line, if it is complete and short.
/// Most lines are, and a single pass reads them.
fn short_line(rest: &[u8]) -> Option<(i64, usize)> {
    let mut number = 0;
    for (at, byte) in rest.iter().enumerate().skip(1).take(8) {
        match byte {
            b'0'..=b'9' => number = number * 10 + i64::from(byte - b'0'),
            // A leading zero is an error.
            b'\r' if at == 2 || (at > 2 && rest[1] != b'0') => {
                return (rest.len() > at + 1).then_some((number, at + 2));
            }
            _ => return None,
        }
    }
    None
}

/// Parses a decimal integer in the protocol's form for lengths: no spaces, no plus, no leading
/// zeros.
fn parse_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    let negative = digits.len() < text.len();
    digits.iter().try_fold(0i64, |number, digit| {
        let digit = i64::from(char::from(*digit).to_digit(10)?);
        let number = number.checked_mul(10)?;
        if negative { number.checked_sub(digit) } else { number.checked_add(digit) }
    })
}

/// Splits a line at spaces, with quotes and escapes as in a shell; `None` for unbalanced quotes.
pub fn split_words(line: &[u8]) -> Option<Vec<Bytes>> {
    let mut words = Vec::new();
    let mut rest = line.iter().copied().peekable();
    loop {
        while rest.next_if(u8::is_ascii_whitespace).is_some() {}
        if rest.peek().is_none() {
            return Some(words);
        }
        let mut word = Vec::new();
        loop {
            match rest.next() {
                None => break,
                Some(b) if b.is_ascii_whitespace() => break,
                Some(b'"') => {
                    quoted(&mut rest, &mut word)?;
                    // A closing quote must end the word.
                    if rest.peek().is_some_and(|b| !b.is_ascii_whitespace()) {
                        return None;
                    }
                }
                Some(b'\'') => {
                    loop {
                        match rest.next()? {
                            b'\'' => break,
                            b'\\' if rest.peek() == Some(&b'\'') => word.extend(rest.next()),
                            b => word.push(b),
                        }
                    }
                    if rest.peek().is_some_and(|b| !b.is_ascii_whitespace()) {
                        return None;
                    }
                }
                Some(b) => word.push(b),
            }
        }
        words.push(Bytes::from(word));
    }
}

/// Reads the inside of a double-quoted word, including its closing quote.
fn quoted(rest: &mut (impl Iterator<Item = u8> + Clone), word: &mut Vec<u8>) -> Option<()> {
    loop {
        match rest.next()? {
            b'"' => return Some(()),
            b'\\' => {
                let mut ahead = rest.clone();
                if let (Some(b'x'), Some(high), Some(low)) =
                    (ahead.next(), ahead.next().and_then(hex), ahead.next().and_then(hex))
                {
                    *rest = ahead;
                    word.push(high << 4 | low);
                    continue;
                }
                word.push(match rest.next()? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
            }
            b => word.push(b),
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}
