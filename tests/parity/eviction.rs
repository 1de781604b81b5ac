//! Scripts that EVAL loads are evicted beyond 500, in the generations that evict them.

use libtest_mimic::Failed;
use lockstorm_sim::generation::Generation;

use crate::{
    PATIENCE,
    servers::{Play, Real, Received, START_MS, Simulated},
    wire::Wire,
};

/// Returns the body of script number `n`, and its SHA-1 as the server gives it.
fn body(n: usize) -> String {
    format!("return {n}")
}

/// Sends a command, and returns its reply.
fn ask(server: &mut impl Play, words: &[&str]) -> Result<Wire, Failed> {
    let mut bytes = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| bytes.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    server.send("", bytes.as_bytes());
    match server.receive("", PATIENCE) {
        Received::Reply(reply) => Ok(reply),
        other => Err(format!("{words:?}: {other:?}").into()),
    }
}

/// Loads scripts until some are evicted, and returns what SCRIPT EXISTS says of the first ones: the
/// script of SCRIPT LOAD alone, then those of EVAL, of which number 1 is used again, and number 3
/// is loaded by SCRIPT LOAD as well.
fn left(server: &mut impl Play) -> Result<Vec<Wire>, Failed> {
    let mut shas = Vec::new();
    for n in 0..=500 {
        let text = body(n);
        if n > 0 {
            ask(server, &["EVAL", &text, "0"])?;
        }
        // SHA-1 by the server itself, without loading the script.
        let sha = ask(server, &["EVAL", "return redis.sha1hex(ARGV[1])", "0", &text])?;
        let Wire::Bulk(sha) = sha else { return Err(format!("no SHA-1: {sha:?}").into()) };
        shas.push(String::from_utf8(sha.to_vec())?);
        if n == 0 || n == 3 {
            ask(server, &["SCRIPT", "LOAD", &text])?;
        }
    }
    let mut seen = Vec::new();
    let exist = |server: &mut _| {
        let first = shas[..8].iter().map(String::as_str);
        let words: Vec<&str> = ["SCRIPT", "EXISTS"].into_iter().chain(first).collect();
        ask(server, &words)
    };
    seen.push(exist(server)?);
    seen.push(ask(server, &["EVALSHA", &shas[4], "0"])?);
    for n in 1_000..1_004 {
        ask(server, &["EVAL", &body(n), "0"])?;
    }
    seen.push(exist(server)?);
    ask(server, &["SCRIPT", "FLUSH"])?;
    seen.push(exist(server)?);
    Ok(seen)
}

/// Compares the simulator with the real server of a generation.
pub(crate) fn compare(generation: Generation) -> Result<(), Failed> {
    let simulated = left(&mut Simulated::start_as(generation, START_MS, &[]))?;
    let Some(mut real) = Real::start_as(generation, &[]) else { return Ok(()) };
    let real = left(&mut real)?;
    if simulated == real {
        return Ok(());
    }
    Err(format!("{generation}: simulated {simulated:?}\nreal {real:?}").into())
}
