//! Standard output and standard error, and what to do when they are read no more.

use std::{
    fmt::Arguments,
    io::{ErrorKind, Write, stderr, stdout},
};

use super::Exit;

/// Prints to standard output, for `out!` and `outln!`.
///
/// The reader of a pipe may close it early, as `head` does: then the rest is discarded, and the
/// command still ends with the exit status of its result. When the output cannot be written for any
/// other reason, a result would be lost unnoticed, and the process ends.
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

/// Prints to standard error, for `errln!`. Where it cannot be written there is no place left to say
/// so, and the exit status still shows the result.
pub(super) fn tell(text: Arguments<'_>) {
    let _ = stderr().write_fmt(text);
}

/// `print!` that no closed pipe panics.
macro_rules! out {
    ($($text:tt)*) => { $crate::cli::out::print(format_args!($($text)*)) };
}

/// `println!` that no closed pipe panics.
macro_rules! outln {
    ($text:literal $($rest:tt)*) => { $crate::cli::out::print(format_args!("{}\n", format_args!($text $($rest)*))) };
}

/// `eprintln!` that no closed pipe panics.
macro_rules! errln {
    ($text:literal $($rest:tt)*) => { $crate::cli::out::tell(format_args!("{}\n", format_args!($text $($rest)*))) };
}

pub(super) use {errln, out, outln};
