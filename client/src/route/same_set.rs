//! Checks that the endpoints of a configuration form one replicated set.
//!
//! A lock is safe only if all clients find the same master. Two deployments in one list, or one
//! server under two names, look like a set until the first failover.

use std::sync::Arc;

use futures_util::future::join_all;
use redis::Value;

use super::connection::Connection;
use crate::endpoint::Endpoint;
use crate::env::{Env, Monotonic, within};
use crate::error::{Error, Result};

/// A server's description of itself.
struct Server<'a> {
    endpoint: &'a Endpoint,
    run: String,
    is_master: bool,
    /// The replication IDs of its data: its own, and that of the former master whose history it
    /// continues.
    histories: Vec<String>,
}

/// Compares the servers that answer until `limit`. Servers that do not answer, or do not let this
/// user ask, are not compared.
///
/// # Errors
/// When two endpoints are one server, or two are masters and neither has taken over from the other.
pub(super) async fn check(env: &Arc<dyn Env>, endpoints: &[Endpoint], limit: Monotonic) -> Result<()> {
    let asked = endpoints.iter().map(|endpoint| within(&**env, limit, Box::pin(ask(env, endpoint, limit))));
    let servers: Vec<Server<'_>> = join_all(asked).await.into_iter().flatten().flatten().collect();
    for (at, one) in servers.iter().enumerate() {
        for other in &servers[..at] {
            judge(one, other)?;
        }
    }
    Ok(())
}

fn judge(one: &Server<'_>, other: &Server<'_>) -> Result<()> {
    if one.run == other.run {
        let (one, other) = (one.endpoint, other.endpoint);
        return Err(Error::config(format!(
            "{other} and {one} are the same server, and one server is no set"
        )));
    }
    let related = one.histories.iter().any(|history| other.histories.contains(history));
    if one.is_master && other.is_master && !related {
        let (one, other) = (one.endpoint, other.endpoint);
        return Err(Error::config(format!(
            "{other} and {one} are both masters and neither has the other's data: they are not one replicated set"
        )));
    }
    Ok(())
}

async fn ask<'a>(env: &Arc<dyn Env>, endpoint: &'a Endpoint, limit: Monotonic) -> Option<Server<'a>> {
    let connection = Connection::open(env, endpoint, None, limit).await.ok()?;
    let mut text = String::new();
    for section in ["server", "replication"] {
        match connection.call(redis::cmd("INFO").arg(section)).await {
            Ok(Value::BulkString(info)) => text.push_str(&String::from_utf8_lossy(&info)),
            _ => return None,
        }
    }
    read(endpoint, &text)
}

fn read<'a>(endpoint: &'a Endpoint, info: &str) -> Option<Server<'a>> {
    let value = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    // A replication ID of zeros means none.
    let histories = ["master_replid", "master_replid2"].into_iter().filter_map(value);
    let histories =
        histories.filter(|history| !history.trim_matches('0').is_empty()).map(ToOwned::to_owned).collect();
    Some(Server {
        endpoint,
        run: value("run_id")?.to_owned(),
        is_master: value("role")? == "master",
        histories,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_that_are_no_relatives_were_taken_for_a_set() {
        const NONE: &str = "0000000000000000000000000000000000000000";
        let endpoint = Endpoint::parse("redis://10.0.0.1").unwrap();
        let server = |(run, role, own, before): (&str, &str, &str, &str)| {
            let replication = format!("role:{role}\r\nmaster_replid:{own}\r\nmaster_replid2:{before}\r\n");
            read(&endpoint, &format!("# Server\r\nrun_id:{run}\r\n# Replication\r\n{replication}")).unwrap()
        };
        for (one, other, fits) in [
            (("r1", "master", "a", NONE), ("r2", "slave", "a", NONE), true),
            // A replica that has not found its master yet.
            (("r1", "master", "a", NONE), ("r2", "slave", "b", NONE), true),
            (("r1", "master", "a", NONE), ("r2", "master", "b", NONE), false),
            // One has taken over from the other, which has not noticed yet.
            (("r1", "master", "a", NONE), ("r2", "master", "b", "a"), true),
            (("r1", "master", "a", NONE), ("r1", "master", "a", NONE), false),
        ] {
            assert_eq!(judge(&server(one), &server(other)).is_ok(), fits, "{one:?} {other:?}");
        }
    }
}
