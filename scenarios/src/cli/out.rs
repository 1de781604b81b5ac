//! Standard output, and what to do when nobody reads it any more.

use std::{
    fmt::Arguments,
    io::{ErrorKind, Write, stdout},
};

use super::Exit;

/// Prints to standard output, for `out!` and `outln!`.
///
/// Whoever reads may stop when they have seen enough, as `head` does: then the rest goes nowhere, and the command still ends
/// with the exit status of what it found. When the output cannot be written for any other reason, a result would be lost
/// unnoticed, and the process ends.
pub(super) fn print(text: Arguments<'_>) {
    match stdout().write_fmt(text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => {
            eprintln!("standard output cannot be written: {error}");
            std::process::exit(Exit::Usage.code().into());
        }
    }
}

/// `print!` that no closed pipe panics.
macro_rules! out {
    ($($text:tt)*) => { $crate::cli::out::print(format_args!($($text)*)) };
}

/// `println!` that no closed pipe panics.
macro_rules! outln {
    ($text:literal $($rest:tt)*) => { $crate::cli::out::print(format_args!("{}\n", format_args!($text $($rest)*))) };
}

pub(super) use {out, outln};
