//! The manifest: the files of the append-only file, in the order in which they are read.
//!
//! It has a line for each: `file appendonly.aof.1.base.rdb seq 1 type b`. There is at most one base
//! (`b`); then come the files that were written after it (`i`). History files (`h`) are no longer
//! needed and will be removed.

use crate::{config::file::quoted, resp::split_words};

/// The longest line, without its end.
const LINE_LEN_MAX: usize = 1023;

/// A file of the append-only file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name in the folder.
    pub name: String,
    /// Its number among the files of its kind.
    pub seq: u64,
}

/// The files of one append-only file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The file with all data up to some moment.
    pub base: Option<Part>,
    /// The files that are no longer needed, the latest first.
    pub history: Vec<Part>,
    /// The files with the commands since, in order.
    pub incremental: Vec<Part>,
    base_seq: u64,
    incremental_seq: u64,
}

/// The reason why a manifest cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It has no line.
    #[error("Found an empty AOF manifest")]
    Empty,
    /// A line is too long, or does not end.
    #[error("The AOF manifest file contains too long line")]
    Long,
    /// A line is not made of pairs, or lacks one.
    #[error("Invalid AOF manifest file format")]
    Format,
    /// A name leads out of the folder.
    #[error("A file of the AOF manifest is in another folder")]
    Path,
    /// There is more than one base.
    #[error("Found duplicate base file information")]
    Bases,
    /// The numbers of the files do not rise.
    #[error("Found a non-monotonic sequence number")]
    Order,
    /// The kind of a file is unknown.
    #[error("Unknown AOF file type")]
    Type,
}

impl Manifest {
    /// Parses the text of a manifest.
    ///
    /// # Errors
    /// Returns the error with the number of its line, from 1; 0 for an empty text.
    ///
    /// ```
    /// use lockstorm_sim::durability::Manifest;
    /// let text = "file a.2.base.rdb seq 2 type b\nfile a.5.incr.aof seq 5 type i\n";
    /// let manifest = Manifest::parse(text.as_bytes()).unwrap();
    /// assert_eq!(manifest.incremental[0].seq, 5);
    /// assert_eq!(manifest.to_string(), text);
    /// ```
    pub fn parse(text: &[u8]) -> Result<Manifest, (ManifestError, usize)> {
        let mut manifest = Manifest::default();
        if text.is_empty() {
            return Err((ManifestError::Empty, 0));
        }
        for (at, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            manifest.line(line).map_err(|why| (why, at + 1))?;
        }
        Ok(manifest)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), ManifestError> {
        let line = line.strip_suffix(b"\n").ok_or(ManifestError::Long)?;
        if line.starts_with(b"#") {
            return Ok(());
        }
        if line.len() > LINE_LEN_MAX {
            return Err(ManifestError::Long);
        }
        let words = split_words(line).ok_or(ManifestError::Format)?;
        let (pairs, []) = words.as_chunks::<2>() else { return Err(ManifestError::Format) };
        let (mut name, mut seq, mut kind) = (None, None, None);
        // Ignore pairs that a later version adds.
        for [key, value] in pairs {
            match &key.to_ascii_lowercase()[..] {
                b"file" => name = Some(String::from_utf8_lossy(value).into_owned()),
                b"seq" => seq = std::str::from_utf8(value).ok().and_then(|seq| seq.parse().ok()),
                b"type" => kind = value.first().copied(),
                _ => {}
            }
        }
        let (Some(name), Some(seq @ 1..), Some(kind)) = (name, seq, kind) else {
            return Err(ManifestError::Format);
        };
        if name.contains(['/', '\\']) {
            return Err(ManifestError::Path);
        }
        let part = Part { name, seq };
        match kind {
            b'b' if self.base.is_some() => return Err(ManifestError::Bases),
            b'b' => {
                self.base_seq = seq;
                self.base = Some(part);
            }
            b'h' => self.history.push(part),
            b'i' if seq <= self.incremental_seq => return Err(ManifestError::Order),
            b'i' => {
                self.incremental_seq = seq;
                self.incremental.push(part);
            }
            _ => return Err(ManifestError::Type),
        }
        Ok(())
    }

    /// Creates a manifest whose base is the single file of versions before 7.0.
    pub fn of_single(name: &str) -> Manifest {
        let base = Part { name: name.into(), seq: 1 };
        Manifest { base: Some(base), base_seq: 1, ..Manifest::default() }
    }

    /// Returns true if there is no file to read.
    pub fn is_empty(&self) -> bool {
        self.base.is_none() && self.incremental.is_empty()
    }

    /// Replaces all files by a new base, except the last `kept` files of commands. The replaced
    /// files become history. Returns the name of the base.
    pub fn rebase(&mut self, filename: &str, extension: &str, kept: usize) -> String {
        self.base_seq += 1;
        let seq = self.base_seq;
        let name = format!("{filename}.{seq}.base.{extension}");
        let old = self.base.replace(Part { name: name.clone(), seq });
        let replaced = self.incremental.len().saturating_sub(kept);
        let replaced = self.incremental.drain(..replaced).chain(old);
        self.history.splice(..0, replaced);
        name
    }

    /// Adds a new file of commands, and returns its name.
    pub fn extend(&mut self, filename: &str) -> String {
        self.incremental_seq += 1;
        let seq = self.incremental_seq;
        let name = format!("{filename}.{seq}.incr.aof");
        self.incremental.push(Part { name: name.clone(), seq });
        name
    }

    /// The files to read, in order.
    pub fn read_order(&self) -> impl Iterator<Item = &Part> {
        self.base.iter().chain(&self.incremental)
    }
}

impl std::fmt::Display for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = self.base.iter().map(|part| (part, 'b'));
        let parts = parts.chain(self.history.iter().map(|part| (part, 'h')));
        for (Part { name, seq }, kind) in parts.chain(self.incremental.iter().map(|part| (part, 'i'))) {
            let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
            if name.bytes().all(plain) {
                writeln!(f, "file {name} seq {seq} type {kind}")?;
            } else {
                writeln!(f, "file {} seq {seq} type {kind}", quoted(name))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_followed_is_told_with_its_line() {
        use ManifestError::{Bases, Empty, Format, Long, Order, Path, Type};
        let long = format!("file {} seq 1 type b\n", "x".repeat(1024));
        for (text, expected) in [
            ("", (Empty, 0)),
            ("file a seq 1 type b", (Long, 1)),
            (&long[..], (Long, 1)),
            ("file a seq 1 type i\n\nfile b seq 2 type i\n", (Format, 2)),
            ("file a seq 1 type i\nfilx b seq 2 type i\n", (Format, 2)),
            ("file a seq 1\n", (Format, 1)),
            ("file a seq 1 type i more\n", (Format, 1)),
            ("file a seq x type i\n", (Format, 1)),
            ("file a seq 0 type i\n", (Format, 1)),
            ("file \"a seq 1 type i\n", (Format, 1)),
            ("file ../a seq 1 type i\n", (Path, 1)),
            ("file a seq 1 type b\nfile b seq 2 type b\n", (Bases, 2)),
            ("file a seq 2 type i\nfile b seq 2 type i\n", (Order, 2)),
            ("file a seq 1 type x\n", (Type, 1)),
        ] {
            assert_eq!(Manifest::parse(text.as_bytes()), Err(expected), "{text}");
        }
        // The longest line that redis-server reads.
        let padded = |length: usize| format!("{:x<length$}\n", "file a.aof seq 1 type i pad ");
        assert!(Manifest::parse(padded(1023).as_bytes()).is_ok());
        assert_eq!(Manifest::parse(padded(1024).as_bytes()), Err((Long, 1)));
        let text = "# mine\nfile a seq 1 type i newkey newvalue\n";
        let manifest = Manifest::parse(text.as_bytes()).expect("comments and new pairs are passed over");
        assert_eq!(manifest.to_string(), "file a seq 1 type i\n");
    }

    #[test]
    fn a_new_base_makes_history_of_what_it_replaces() {
        let mut manifest = Manifest::default();
        manifest.rebase("a", "rdb", 0);
        for _ in 0..3 {
            manifest.extend("a");
        }
        assert_eq!(manifest.rebase("a", "aof", 1), "a.2.base.aof");
        let expected = "file a.2.base.aof seq 2 type b\nfile a.1.incr.aof seq 1 type h\nfile a.2.incr.aof seq 2 type h\n\
                        file a.1.base.rdb seq 1 type h\nfile a.3.incr.aof seq 3 type i\n";
        assert_eq!(manifest.to_string(), expected);
        assert_eq!(Manifest::parse(expected.as_bytes()).as_ref(), Ok(&manifest));
    }

    #[test]
    fn odd_names_are_quoted_and_read_again() {
        for name in [" file seq \n\n.aof ", "it's", "a\\b\"c", "\u{7}é"] {
            let manifest = Manifest::of_single(name);
            let text = manifest.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
            // A backslash counts as part of a path, as on a server.
            if !name.contains('\\') {
                assert_eq!(Manifest::parse(text.as_bytes()), Ok(manifest), "{text}");
            }
        }
    }
}
