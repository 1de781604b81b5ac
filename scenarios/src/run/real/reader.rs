//! The connections of a watcher to its node: one that reads the keys, and one with MONITOR.

use bytes::Bytes;
use lockstorm_world::{HostCtx, TcpStream, time::Wall};
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, RedisResult, aio::MultiplexedConnection};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, ReadHalf};

use super::reads::Reads;
use crate::{
    judge::{history::Role, object::Value},
    run::operator::BACK_DOOR,
};

/// Returns true if the node on this host answers PING.
pub(super) async fn answers(ctx: &HostCtx, reads: Reads) -> bool {
    let Some(mut reader) = connect(ctx, reads).await else { return false };
    let pong: Result<String, _> = redis::cmd("PING").query_async(&mut reader.connection).await;
    pong.is_ok()
}

async fn connect(ctx: &HostCtx, reads: Reads) -> Option<Reader> {
    let stream = ctx.dial(ctx.name(), BACK_DOOR).await.ok()?;
    let port = stream.local_addr().ok()?.port();
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let made = MultiplexedConnection::new_with_config(&RedisConnectionInfo::default(), stream, config).await;
    let (connection, driver) = made.ok()?;
    ctx.spawn(driver);
    Some(Reader { connection, port, reads })
}

/// A watcher's connections to a node. A replica of a cluster answers only a reader that wants it to
/// (READONLY).
pub(super) type Connections = (Reader, Lines<BufReader<ReadHalf<TcpStream>>>);

pub(super) async fn connections(ctx: &HostCtx, reads: Reads) -> Option<Connections> {
    let mut reader = connect(ctx, reads).await?;
    let stream = ctx.dial(ctx.name(), BACK_DOOR).await.ok()?;
    let (reading, mut writing) = tokio::io::split(stream);
    writing.write_all(b"MONITOR\r\n").await.ok()?;
    let mut monitor = BufReader::new(reading).lines();
    // From this reply on, MONITOR shows the commands of all connections.
    monitor.next_line().await.ok()??;
    // A node outside of a cluster refuses it.
    let _: RedisResult<()> = redis::cmd("READONLY").query_async(&mut reader.connection).await;
    Some((reader, monitor))
}

/// Opens a connection that waits for an entry of a stream, which no client writes. A master that
/// becomes a replica ends it at that moment.
pub(super) async fn tripwire(ctx: &HostCtx) -> Option<TcpStream> {
    let mut stream = ctx.dial(ctx.name(), BACK_DOOR).await.ok()?;
    stream.write_all(b"XREAD BLOCK 0 STREAMS (role) $\r\n").await.ok()?;
    Some(stream)
}

/// The connection that reads the keys.
pub(super) struct Reader {
    pub(super) connection: MultiplexedConnection,
    /// The local port, by which MONITOR identifies the connection.
    pub(super) port: u16,
    pub(super) reads: Reads,
}

/// Reads the keys in one step of the server, and its count of evicted keys.
pub(super) async fn read(
    connection: &mut MultiplexedConnection,
    reads: Reads,
    keys: &[(Bytes, String)],
) -> RedisResult<(Vec<Value>, u64)> {
    let mut command: Cmd = redis::cmd(reads.command);
    command.arg(reads.script()).arg(keys.len());
    keys.iter().for_each(|(key, _)| {
        command.arg(&key[..]);
    });
    keys.iter().for_each(|(_, tag)| {
        command.arg(tag);
    });
    type Answered = (String, Vec<Vec<u8>>, i64, Vec<(String, u32, i64)>, i64);
    let (evicted, raw): (u64, Vec<Answered>) = command.query_async(connection).await?;
    let values = raw.into_iter().map(|(kind, words, expires_ms, leases, field_expires_ms)| {
        Value::answered(&kind, words, expires_ms, leases, field_expires_ms)
    });
    Ok((values.collect(), evicted))
}

pub(super) async fn role(connection: &mut MultiplexedConnection) -> Option<Role> {
    let answer: Vec<redis::Value> = redis::cmd("ROLE").query_async(connection).await.ok()?;
    match answer.first()? {
        redis::Value::BulkString(word) if word == b"master" => Some(Role::Master),
        _ => Some(Role::Replica),
    }
}

/// The state of the keys at one moment.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) values: Vec<Value>,
    pub(super) at: Wall,
    /// The number of keys that the server had evicted.
    pub(super) evicted: u64,
}

/// The outcome of reading the keys.
pub(super) enum Answer {
    /// The keys and the time of the read.
    Kept(Reading),
    /// The server refused: it runs a script, or loads its data.
    NotNow,
    /// The node of a cluster does not serve the slot of the locks, or not all its keys.
    NotHere,
    /// The connection is closed.
    Gone,
}
