//! The steps of an episode: each is one action on both servers.

use crate::wire::{command, quote};

/// The words of a command.
pub(crate) type Command = Vec<Vec<u8>>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A command on a connection, which its first use opens. In the words `{id:2}` stands for the
    /// reply to CLIENT ID on connection `2`.
    Send(usize, Command),
    /// Commands delivered together, in pieces that end at these bytes.
    Pipeline(usize, Vec<Command>, Vec<usize>),
    /// A question, and a command in which [`ANSWER`] stands for the other server's reply to it:
    /// payloads go across.
    Cross(usize, Command, Command),
    /// Bytes that need not be a command.
    Raw(usize, Vec<u8>),
    /// Milliseconds.
    Sleep(u64),
    /// The client closes the connection.
    Close(usize),
}

/// Stands for the other server's answer in [`Step::Cross`].
pub(crate) const ANSWER: &[u8] = b"{answer}";

impl Step {
    /// The connection that the step writes to.
    pub(crate) fn conn(&self) -> Option<usize> {
        match self {
            Step::Send(conn, _) | Step::Pipeline(conn, ..) | Step::Cross(conn, ..) | Step::Raw(conn, _) => {
                Some(*conn)
            }
            Step::Sleep(_) | Step::Close(_) => None,
        }
    }

    /// The bytes that the step writes; `None` if they depend on a reply or the step writes none.
    pub(crate) fn bytes(&self, id: &dyn Fn(usize) -> u64) -> Option<Vec<u8>> {
        match self {
            Step::Send(_, words) => Some(encode(words, id)),
            Step::Pipeline(_, commands, _) => {
                Some(commands.iter().flat_map(|words| encode(words, id)).collect())
            }
            Step::Raw(_, bytes) => Some(bytes.clone()),
            Step::Cross(..) | Step::Sleep(_) | Step::Close(_) => None,
        }
    }

    /// The words of a command that is sent alone.
    pub(crate) fn words(&self) -> &[Vec<u8>] {
        if let Step::Send(_, words) | Step::Cross(_, _, words) = self { words } else { &[] }
    }

    pub(crate) fn commands(&self) -> &[Command] {
        match self {
            Step::Send(_, words) | Step::Cross(_, _, words) => std::slice::from_ref(words),
            Step::Pipeline(_, commands, _) => commands,
            Step::Raw(..) | Step::Sleep(_) | Step::Close(_) => &[],
        }
    }

    /// The same step with other commands: a pipeline of one becomes a command, a step of none
    /// `None`.
    pub(crate) fn with(&self, commands: Vec<Command>) -> Option<Step> {
        match (self, commands.len()) {
            (_, 0) => None,
            (Step::Pipeline(conn, _, cuts), 2..) => Some(Step::Pipeline(*conn, commands, cuts.clone())),
            (Step::Pipeline(conn, ..) | Step::Send(conn, _), _) => {
                commands.into_iter().next().map(|words| Step::Send(*conn, words))
            }
            (Step::Cross(conn, ask, _), _) => {
                commands.into_iter().next().map(|words| Step::Cross(*conn, ask.clone(), words))
            }
            (other, _) => Some(other.clone()),
        }
    }

    /// The step as a line of a transcript.
    pub(crate) fn line(&self) -> String {
        match self {
            Step::Send(conn, words) => format!("{}> {}", name(*conn), plain(words)),
            // A transcript has one stream of bytes, the same for both servers.
            Step::Pipeline(conn, commands, _) => {
                let bytes: Vec<u8> = commands.iter().flat_map(|words| command(words)).collect();
                format!("{}>> {}", name(*conn), quote(&bytes))
            }
            Step::Cross(conn, ask, words) => {
                format!("{}> {} (with what the other answers to {})", name(*conn), plain(words), plain(ask))
            }
            Step::Raw(conn, bytes) => format!("{}>> {}", name(*conn), quote(bytes)),
            Step::Sleep(ms) => format!("! sleep {ms}"),
            Step::Close(conn) => format!("! close {}", name(*conn)),
        }
    }
}

/// Encodes a command for the wire, with the IDs of connections in place of `{id:N}`.
pub(crate) fn encode(words: &[Vec<u8>], id: &dyn Fn(usize) -> u64) -> Vec<u8> {
    let numbered = |word: &Vec<u8>| {
        let inner = word.strip_prefix(b"{id:").and_then(|rest| rest.strip_suffix(b"}"));
        let number = inner.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<usize>().ok());
        number.map_or_else(|| word.clone(), |named| id(named.saturating_sub(1)).to_string().into_bytes())
    };
    command(&words.iter().map(numbered).collect::<Command>())
}

/// The placeholder for the ID of a connection in a command.
pub(crate) fn id_of(conn: usize) -> Vec<u8> {
    format!("{{id:{}}}", name(conn)).into_bytes()
}

/// The name of a connection. A transcript cannot close the connection without a name, so each has
/// one.
pub(crate) fn name(conn: usize) -> String {
    (conn + 1).to_string()
}

/// Words as redis-cli takes them: bare where that is possible.
pub(crate) fn plain(words: &[Vec<u8>]) -> String {
    let bare = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    let word = |word: &Vec<u8>| {
        if !word.is_empty() && word.iter().all(bare) {
            String::from_utf8_lossy(word).into_owned()
        } else {
            quote(word)
        }
    };
    words.iter().map(word).collect::<Vec<String>>().join(" ")
}
