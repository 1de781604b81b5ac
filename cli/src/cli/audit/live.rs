//! Audits a server while it runs.

use std::time::Duration;

use lockstorm::{
    audit::{Audit, Server},
    run::real,
};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::interval,
};

/// The interval between two looks at the clock and for Ctrl-C.
const TICK: Duration = Duration::from_millis(100);

/// The longest time for connecting and logging in.
const PATIENCE: Duration = Duration::from_secs(10);

/// The audit ends when it is this far behind: the server keeps in memory all that is not read yet.
const BEHIND_MAX_US: i64 = 5_000_000;

/// The most bytes of a line that are kept.
const LINE_MAX: usize = 1 << 20;

/// Audits a server for a time, or until Ctrl-C or the end of the connection.
pub(super) fn watch(audit: &mut Audit, server: &Server, length: Option<Duration>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().into_diagnostic()?;
    runtime.block_on(watching(audit, server, length))
}

#[expect(clippy::disallowed_methods, reason = "a server in production has an ambient wire")]
async fn dial(server: &Server) -> std::io::Result<TcpStream> {
    TcpStream::connect((&*server.host, server.port)).await
}

async fn watching(audit: &mut Audit, server: &Server, length: Option<Duration>) -> Result<()> {
    let name = server.name();
    let mut ticks = interval(TICK);
    let begun = real::wall();
    let mut dialing = std::pin::pin!(dial(server));
    let mut stream = loop {
        tokio::select! {
            biased;
            dialed = &mut dialing => {
                break dialed.into_diagnostic().wrap_err_with(|| format!("{name} does not answer"))?;
            }
            _ = ticks.tick() => {
                if real::interrupted() || real::wall().since(begun) > PATIENCE {
                    return Err(miette!("{name} does not answer"));
                }
            }
        }
    };
    let requests = server.requests();
    stream.write_all(&requests.concat()).await.into_diagnostic()?;
    let node = audit.node(&name);
    let mut stream_state = Stream { replies: requests.len(), ..Stream::default() };
    let begun = real::wall();
    let mut buffer = vec![0; 1 << 16];
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                let passed = real::wall().since(begun);
                if real::interrupted() || length.is_some_and(|length| passed >= length) {
                    return Ok(());
                }
                if stream_state.replies > 0 && passed > PATIENCE {
                    return Err(miette!("{name} does not answer"));
                }
            }
            read = stream.read(&mut buffer) => {
                let count = read.into_diagnostic().wrap_err_with(|| format!("the connection to {name} broke"))?;
                if count == 0 {
                    return match stream_state.replies {
                        0 => Ok(()),
                        _ => Err(miette!("{name} closed the connection")),
                    };
                }
                stream_state.take(audit, node, &buffer[..count])?;
            }
        }
    }
}

/// The state of the stream of lines.
#[derive(Debug, Default)]
struct Stream {
    /// The number of replies that come before the first line of MONITOR.
    replies: usize,
    /// The line that has not ended.
    line: Vec<u8>,
    number: u64,
    /// The least difference between the clock here and the server's, in microseconds.
    nearest_us: Option<i64>,
}

impl Stream {
    /// Takes bytes from the server.
    fn take(&mut self, audit: &mut Audit, node: usize, bytes: &[u8]) -> Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.last() != Some(&b'\n') {
                continue;
            }
            let mut line = std::mem::take(&mut self.line);
            while matches!(line.last(), Some(b'\r' | b'\n')) {
                line.pop();
            }
            if self.replies > 0 {
                self.replies -= 1;
                // A server may forbid CLIENT SETNAME, but neither the login nor MONITOR.
                let is_needed = self.replies != 1;
                if line.first() == Some(&b'-') && is_needed {
                    return Err(miette!("the server refuses: {}", String::from_utf8_lossy(&line[1..])));
                }
            } else {
                self.number += 1;
                audit.take_text(node, self.number, &line);
            }
            line.clear();
            self.line = line;
        }
        self.is_near(audit, node)
    }

    /// Returns an error if the audit falls behind the server.
    fn is_near(&mut self, audit: &Audit, node: usize) -> Result<()> {
        let Some(at_us) = audit.now_us(node) else { return Ok(()) };
        let apart_us = real::wall().as_micros() - at_us;
        let nearest_us = self.nearest_us.map_or(apart_us, |nearest| nearest.min(apart_us));
        self.nearest_us = Some(nearest_us);
        match apart_us - nearest_us > BEHIND_MAX_US {
            true => Err(miette!(
                "the server runs more commands than this audit can follow; it was left alone, \
                 because it keeps in memory what a monitor has not read"
            )),
            false => Ok(()),
        }
    }
}
