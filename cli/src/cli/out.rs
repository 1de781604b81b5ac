//! Prints to standard output and standard error, also after their reader has closed the pipe.

use std::{
    fmt::Arguments,
    io::{ErrorKind, Write, stderr, stdout},
};

use super::Exit;

/// Prints to standard output, for `out!` and `outln!`.
///
/// The reader of a pipe may close it early, as `head` does. Then the rest is discarded, and the
/// command still ends with the exit status of its result. Any other error ends the process, because
/// a result would be lost unnoticed.
pub(super) fn print(text: Arguments<'_>) {
    match stdout().write_fmt(text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => {
            tell(format_args!("standard output cannot be written: {error}\n"));
            std::process::exit(Exit::Usage.code().into());
        }
    }
}

/// Prints to standard error, for `errln!`. Ignores errors: there is no other place to report them,
/// and the exit status still shows the result.
pub(super) fn tell(text: Arguments<'_>) {
    let _ = stderr().write_fmt(text);
}

/// Like `print!`, but does not panic when the pipe is closed.
macro_rules! out {
    ($($text:tt)*) => { $crate::cli::out::print(format_args!($($text)*)) };
}

/// Like `println!`, but does not panic when the pipe is closed.
macro_rules! outln {
    ($text:literal $($rest:tt)*) => { $crate::cli::out::print(format_args!("{}\n", format_args!($text $($rest)*))) };
}

/// Like `eprintln!`, but does not panic when the pipe is closed.
macro_rules! errln {
    ($text:literal $($rest:tt)*) => { $crate::cli::out::tell(format_args!("{}\n", format_args!($text $($rest)*))) };
}

pub(super) use {errln, out, outln};
