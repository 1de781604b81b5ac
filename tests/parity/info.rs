//! Compares the fields of INFO with the real server's: their names and their order.

use libtest_mimic::Failed;

use crate::{
    PATIENCE,
    servers::{Play, Real, Received, Simulated},
    wire::{Wire, command},
};

/// The arguments of INFO, with every way of choosing sections.
const ASKED: [&[&str]; 8] = [
    &[],
    &["default"],
    &["all"],
    &["everything"],
    &["Server", "CPU"],
    &["memory", "stats", "nosuch"],
    &["clients", "all"],
    &["nosuch"],
];

/// Compares the names of sections and fields; the error is the first difference.
pub(crate) fn compare() -> Result<(), Failed> {
    let (mut real, mut own) = (Real::start(), Simulated::start());
    for server in [&mut real as &mut dyn Play, &mut own] {
        // The keyspace section has a line for each database that is not empty.
        tell(server, &["SET", "k", "v"])?;
    }
    for asked in ASKED {
        let words: Vec<&str> = ["INFO"].iter().chain(asked).copied().collect();
        let (ours, theirs) = (fields(&mut own, &words)?, fields(&mut real, &words)?);
        for at in 0..ours.len().max(theirs.len()) {
            let (ours, theirs) = (ours.get(at), theirs.get(at));
            if ours != theirs {
                return Err(format!("{words:?}: line {at} is {ours:?}, the real one's {theirs:?}").into());
            }
        }
    }
    Ok(())
}

fn tell(server: &mut (impl Play + ?Sized), words: &[&str]) -> Result<Wire, Failed> {
    server.send("", &command(&words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>()));
    match server.receive("", PATIENCE) {
        Received::Reply(reply) => Ok(reply),
        _ => Err(format!("{words:?} is not answered").into()),
    }
}

/// The lines without their values, and without the counts of single commands.
fn fields(server: &mut impl Play, words: &[&str]) -> Result<Vec<String>, Failed> {
    let Wire::Bulk(text) = tell(server, words)? else {
        return Err(format!("{words:?} answers no text").into());
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    let names = text.split("\r\n").map(|line| line.split(':').next().unwrap_or_default().to_owned());
    let of_commands = ["cmdstat_", "latency_percentiles_usec_"];
    Ok(names.filter(|name| !of_commands.iter().any(|prefix| name.starts_with(prefix))).collect())
}
