//! The exit status of the process.

use std::process::ExitCode;

/// Shown under every help.
pub(super) const HELP: &str =
    "Exit status: 0 as expected, 1 not as expected, 2 undecided, 64 wrong usage or a bad file.";

/// The exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything came out as expected.
    Expected,
    /// Something could not be decided; that is never a pass.
    Undecided,
    /// Something came out otherwise than expected.
    Unexpected,
    /// The command line or a file is wrong.
    Usage,
}

impl Exit {
    /// The number that the process ends with.
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
