//! The exit status of the process.

use std::process::ExitCode;

use lockstorm::judge::verdict::Match;

/// The end of `lockstorm --help`.
pub(super) const HELP: &str =
    "Exit status: 0 as expected, 1 not as expected, 2 undecided, 64 wrong usage or a bad file.";

/// The exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything came out as expected.
    Expected,
    /// Something is undecided, which is never a pass.
    Undecided,
    /// Something came out differently than expected.
    Unexpected,
    /// The command line or a file is wrong.
    Usage,
}

impl Exit {
    /// Returns the exit status of one comparison.
    pub(crate) fn of(verdict: &Match) -> Exit {
        match verdict {
            Match::AsExpected => Exit::Expected,
            Match::Undecided(_) => Exit::Undecided,
            Match::Otherwise(_) => Exit::Unexpected,
        }
    }

    /// Returns the exit status of the process.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Expected => 0,
            Exit::Unexpected => 1,
            Exit::Undecided => 2,
            // EX_USAGE of sysexits.h.
            Exit::Usage => 64,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
