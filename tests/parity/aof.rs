//! An append-only file that the disk refuses: compares the replies of both servers to the same
//! steps.

use std::{os::unix::fs::symlink, path::Path, time::Duration};

use libtest_mimic::Failed;
use lockstorm_lab::support::redis::RedisServer;

use crate::{
    servers::{Play, Real, Received, Simulated},
    transcript::{Action, parse},
};

/// Commands while nothing can be written.
const REFUSED: &str = r##"
> SET a 1
> SET a 2
> PING
> GET a
> PUBLISH a b
> EVAL "return redis.call('set', 'a', '1')" 0
> EVAL "return redis.call('get', 'a')" 0
> EVAL "#!lua\nreturn 1" 0
> EVAL "#!lua flags=no-writes\nreturn 1" 0
> MULTI
> GET a
> SET a 1
> EXEC
> CONFIG SET stop-writes-on-bgsave-error no
> SET a 3
> FLUSHALL
"##;

/// Commands after the disk has room again.
const TAKEN: &str = "
> SET a 4
> PING
> GET a
";

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn compare() -> Result<(), Failed> {
    let (mut real, mut simulated) = (on_full_disk(), simulated());
    simulated.fill_disk(true);
    let same = |real: &mut Real, simulated: &mut Simulated, text: &str| -> Result<(), Failed> {
        for step in parse(text).map_err(|why| why.to_string())? {
            let Action::Send(name, sent) = &step.action else { continue };
            let bytes = sent.encode(|_| 0);
            let [wanted, got] = [ask(real, name, &bytes), ask(simulated, name, &bytes)];
            if wanted != got {
                return Err(format!("{}: {got:?} instead of {wanted:?}", step.text).into());
            }
        }
        Ok(())
    };
    same(&mut real, &mut simulated, REFUSED)?;
    statuses(&mut real, "err")?;
    statuses(&mut simulated, "err")?;
    // The rewritten file of the real server is another one, which has room.
    ask(&mut real, "", b"BGREWRITEAOF\r\n");
    simulated.fill_disk(false);
    real.sleep(Duration::from_millis(500));
    same(&mut real, &mut simulated, TAKEN)?;
    statuses(&mut real, "ok")?;
    statuses(&mut simulated, "ok")
}

/// With `appendfsync always` a failed write is fatal: the process ends without a reply.
pub(crate) fn give_up() -> Result<(), Failed> {
    let (mut real, mut simulated) = (on_full_disk(), simulated());
    simulated.fill_disk(true);
    for server in [&mut real as &mut dyn Play, &mut simulated] {
        ask(server, "", b"CONFIG SET appendfsync always\r\n");
        let got = ask(server, "", b"SET a 1\r\n");
        if got != Received::Closed {
            return Err(format!("{got:?} instead of an end").into());
        }
    }
    Ok(())
}

/// Starts a server whose append-only file is the device that is always full.
fn on_full_disk() -> Real {
    let prepare = |directory: &Path| {
        let folder = directory.join("appendonlydir");
        std::fs::create_dir_all(&folder)?;
        symlink("/dev/full", folder.join("appendonly.aof.1.incr.aof"))
    };
    Real::of(RedisServer::start_in(&["--appendonly", "yes"], prepare))
}

fn simulated() -> Simulated {
    let mut simulated = Simulated::start();
    ask(&mut simulated, "", b"CONFIG SET appendonly yes\r\n");
    // Its first base file is written in the background.
    simulated.sleep(Duration::from_millis(200));
    simulated
}

fn ask(server: &mut (impl Play + ?Sized), name: &str, bytes: &[u8]) -> Received {
    server.send(name, bytes);
    server.receive(name, PATIENCE)
}

fn statuses(server: &mut impl Play, wanted: &str) -> Result<(), Failed> {
    let Received::Reply(reply) = ask(server, "", b"INFO persistence\r\n") else {
        return Err("INFO is not answered".into());
    };
    let mut lines = Vec::new();
    reply.lines(0, &mut lines);
    let line = format!("aof_last_write_status:{wanted}");
    if lines.concat().contains(&line) { Ok(()) } else { Err(format!("no {line} in {lines:?}").into()) }
}
