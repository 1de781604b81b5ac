//! Detects the end of a server's parent process by the end of standard input, whose other end the
//! parent keeps open.

use std::{
    io::{self, Read},
    process, thread,
};

/// Ends the process, as a kill would, when standard input ends.
///
/// # Errors
/// Fails if no thread can be created.
pub(super) fn end_with_stdin() -> io::Result<()> {
    // Use a thread: a blocking read cannot be cancelled, and would keep the runtime from ending.
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
