//! What is done to both servers, one thing at a time.

use crate::wire::{command, quote};

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A command on a connection, which is made when it is first named.
    Send(usize, Vec<Vec<u8>>),
    /// Bytes that may be no command.
    Raw(usize, Vec<u8>),
    /// Milliseconds.
    Sleep(u64),
    /// The client hangs up.
    Close(usize),
}

impl Step {
    /// The connection that is written to, and what.
    pub(crate) fn bytes(&self) -> Option<(usize, Vec<u8>)> {
        match self {
            Step::Send(conn, words) => Some((*conn, command(words))),
            Step::Raw(conn, bytes) => Some((*conn, bytes.clone())),
            Step::Sleep(_) | Step::Close(_) => None,
        }
    }

    /// The words of a command.
    pub(crate) fn words(&self) -> &[Vec<u8>] {
        if let Step::Send(_, words) = self { words } else { &[] }
    }

    /// The step as a line of a transcript.
    pub(crate) fn line(&self) -> String {
        match self {
            Step::Send(conn, words) => {
                let words: Vec<String> = words.iter().map(|word| plain(word)).collect();
                format!("{}> {}", name(*conn), words.join(" "))
            }
            Step::Raw(conn, bytes) => format!("{}>> {}", name(*conn), quote(bytes)),
            Step::Sleep(ms) => format!("! sleep {ms}"),
            Step::Close(conn) => format!("! close {}", name(*conn)),
        }
    }
}

/// What a connection is called. The one without a name cannot be closed in a transcript.
pub(crate) fn name(conn: usize) -> String {
    (conn + 1).to_string()
}

/// A word as redis-cli takes it: bare where that is possible.
fn plain(word: &[u8]) -> String {
    let bare = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !word.is_empty() && word.iter().all(bare) {
        String::from_utf8_lossy(word).into_owned()
    } else {
        quote(word)
    }
}
