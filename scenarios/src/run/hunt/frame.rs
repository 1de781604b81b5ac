//! The lines of JSON that the processes of a search write into the pipe that they share.

use std::io::{self, PipeWriter, Write};

use serde::{Deserialize, Serialize};

/// A line that a process sends to the search.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Frame {
    /// A piece of the result of a run of the batch.
    Piece { run: usize, text: String, is_last: bool },
    /// A process has died, and with it those of these runs that have no result.
    Died { runs: Vec<usize>, why: String },
    /// The batch is finished.
    Done,
}

/// Writes a line into the pipe that all processes share.
pub(super) fn send(mut answers: &PipeWriter, frame: &Frame) -> io::Result<()> {
    let mut line = serde_json::to_vec(frame)?;
    line.push(b'\n');
    answers.write_all(&line)
}
