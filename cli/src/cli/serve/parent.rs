//! The end of the parent process of a server, detected by the standard input that the parent holds
//! open.

use std::{
    io::{self, Read},
    process, thread,
};

/// Ends the process, as a kill would, when standard input ends.
///
/// # Errors
/// When the operating system has no thread for it.
pub(super) fn end_with_stdin() -> io::Result<()> {
    // A thread, because reading cannot be given up: it would keep the runtime from its end.
    thread::Builder::new().name("stdin".into()).spawn(|| {
        let mut input = io::stdin().lock();
        let mut bytes = [0; 512];
        loop {
            match input.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) if read > 0 => {}
                _ => process::exit(0),
            }
        }
    })?;
    Ok(())
}
