//! Reads the commands of an AOF, each with its offset.

use bytes::Bytes;

/// The reason why no command can be read at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The file ends in the middle of a command.
    Short,
    /// The bytes are not a command.
    Damaged,
}

/// Reads commands from the bytes of a file.
///
/// ```
/// use lockstorm_sim::durability::Commands;
/// let mut commands = Commands::new(b"*1\r\n$4\r\nPING\r\n#TS:1\r\n*1\r\n".as_slice().into(), 0);
/// assert_eq!(commands.next(), Some(Ok(vec!["PING".into()])));
/// assert!(matches!(commands.next(), Some(Err(_))));
/// assert_eq!((commands.begun(), commands.stamp_secs()), (21, Some(1)));
/// ```
#[derive(Debug)]
pub struct Commands {
    bytes: Bytes,
    at: usize,
    begun: usize,
    stamp_secs: Option<i64>,
}

impl Commands {
    /// Begins to read at an offset.
    pub fn new(bytes: Bytes, at: usize) -> Commands {
        Commands { bytes, at, begun: at, stamp_secs: None }
    }

    /// The last timestamp annotation that was read, in seconds since 1970. A server with
    /// `aof-timestamp-enabled` writes one before the first command of each second.
    pub fn stamp_secs(&self) -> Option<i64> {
        self.stamp_secs
    }

    /// The offset of the last command, valid or not.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// The bytes from the last command on, valid or not.
    pub fn rest(&self) -> Bytes {
        self.bytes.slice(self.begun..)
    }

    fn line(&mut self) -> Result<&[u8], Unread> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Unread::Short)?;
        self.at += end + 1;
        Ok(rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]))
    }

    /// Reads the number after a type byte.
    fn count(&mut self, mark: u8) -> Result<usize, Unread> {
        if self.bytes.get(self.at).is_some_and(|byte| *byte != mark) {
            return Err(Unread::Damaged);
        }
        let digits = self.line()?.get(1..).and_then(|digits| std::str::from_utf8(digits).ok());
        digits.and_then(|digits| digits.parse().ok()).ok_or(Unread::Damaged)
    }

    fn command(&mut self) -> Result<Vec<Bytes>, Unread> {
        let count = self.count(b'*')?;
        if count == 0 {
            return Err(Unread::Damaged);
        }
        let mut args = Vec::new();
        for _ in 0..count {
            let len = self.count(b'$')?;
            // A line end must follow, but its bytes are not checked.
            let end = self.at.checked_add(len).and_then(|end| end.checked_add(2)).ok_or(Unread::Short)?;
            if end > self.bytes.len() {
                return Err(Unread::Short);
            }
            args.push(self.bytes.slice(self.at..end - 2));
            self.at = end;
        }
        Ok(args)
    }
}

impl Iterator for Commands {
    type Item = Result<Vec<Bytes>, Unread>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.begun = self.at;
            match self.bytes.get(self.at)? {
                // A timestamp annotation of the following commands, which is for tools.
                b'#' => {
                    let stamp = match self.line() {
                        Ok(line) => {
                            line.strip_prefix(b"#TS:").and_then(|secs| std::str::from_utf8(secs).ok())
                        }
                        Err(unread) => return Some(Err(unread)),
                    };
                    if let Some(secs) = stamp.and_then(|secs| secs.parse().ok()) {
                        self.stamp_secs = Some(secs);
                    }
                }
                _ => return Some(self.command()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_command_is_told_from_one_that_is_cut_off() {
        let whole = "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n";
        for (text, expected, begun) in [
            ("".to_owned(), None, 0),
            (whole.into(), Some(Ok(2)), 0),
            (format!("#TS:17\r\n#TS:18\r\n{whole}"), Some(Ok(2)), 16),
            ("#TS:17\r\n".into(), None, 8),
            ("#TS".into(), Some(Err(Unread::Short)), 0),
            ("!!!".into(), Some(Err(Unread::Damaged)), 0),
            ("*0\r\n".into(), Some(Err(Unread::Damaged)), 0),
            ("*-1\r\n".into(), Some(Err(Unread::Damaged)), 0),
            ("*1\r\n$x\r\n".into(), Some(Err(Unread::Damaged)), 0),
            ("*1\r\n+OK\r\n".into(), Some(Err(Unread::Damaged)), 0),
            ("*99999999999\r\n$1\r\na\r\n".into(), Some(Err(Unread::Short)), 0),
            (format!("*1\r\n${}\r\na\r\n", usize::MAX), Some(Err(Unread::Short)), 0),
        ] {
            let mut commands = Commands::new(Bytes::from(text.clone()), 0);
            let got = commands.next().map(|read| read.map(|args| args.len()));
            assert_eq!((got, commands.begun()), (expected, begun), "{text:?}");
        }
        for end in 1..whole.len() {
            let mut commands = Commands::new(Bytes::from(&whole[..end]), 0);
            assert_eq!(commands.next(), Some(Err(Unread::Short)), "cut at {end}");
        }
    }
}
