//! The read-write lock, Redisson's `RReadWriteLock`: many readers, or one writer, who may also
//! read.

mod read;
mod write;

use redis::Value;

use crate::attempt::{ForceRelease, Taken};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::script::{Call, script};
use crate::wake::Wakes;
use crate::wire::rw_channel;

script!(FORCE_RELEASE, "publish.lua", "force_release.lua");
script!(LOOK, "look.lua");

impl Client {
    /// Returns handles on a lock that many owners may hold for reading, or one for writing.
    ///
    /// Both halves nest. The writer may also read. If it gives up writing before reading, it
    /// becomes a reader without an interruption (*downgrade*). A reader that asks to write waits
    /// for itself until its own lease ends, so it must give up reading first. Readers do not wait
    /// for waiting writers: readers that never leave a gap keep a writer out. Neither here nor in
    /// Redisson does a fair lock of this kind exist.
    ///
    /// The [plain lock](Client::lock) of the same name shares its key and excludes readers and
    /// writers. But each has a channel of its own, as in Redisson, so a release of the one wakes no
    /// waiter of the other. The waiter asks again when the lease that the server named is over.
    ///
    /// Each level of a read hold has its own key for its lease,
    /// `{doc}:<owner>:rwlock_timeout:<level>`, which the user [must be allowed to
    /// use](crate#what-the-user-of-the-server-must-be-allowed-to-do).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// use lockstorm_client::OwnerId;
    /// let (doc, me) = (client.rw_lock("doc"), OwnerId::new(1));
    /// let writing = doc.write().acquire().owner(me).await?;
    /// assert!(doc.read().try_acquire().await?.is_none(), "another owner may not read");
    /// let reading = doc.read().acquire().owner(me).await?;
    /// writing.release().await?;
    /// assert!(doc.read().try_acquire().await?.is_some(), "all may read now");
    /// reading.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn rw_lock(&self, name: &str) -> ReadWriteLock {
        ReadWriteLock {
            read: Lock::new(self.session.clone(), read::Read, name),
            write: Lock::new(self.session.clone(), write::Write, name),
        }
    }
}

/// The two halves of a [read-write lock](Client::rw_lock). Cheap to clone; it holds nothing by
/// itself.
#[derive(Clone, Debug)]
pub struct ReadWriteLock {
    read: Lock,
    write: Lock,
}

impl ReadWriteLock {
    /// Returns the lock for reading, which many owners may hold together.
    /// [`Handle::remaining`](crate::Handle::remaining) is the rest of the longest hold of any
    /// owner. [`Handle::force_release`](crate::Handle::force_release) frees nothing while the lock
    /// is held for writing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let doc = client.rw_lock("doc");
    /// let (one, other) = (doc.read().acquire().await?, doc.read().acquire().await?);
    /// assert!(doc.write().try_acquire().await?.is_none());
    /// one.release().await?;
    /// other.release().await?;
    /// # Ok(()) }
    /// ```
    pub fn read(&self) -> Lock {
        self.read.clone()
    }

    /// Returns the lock for writing, which one owner holds alone.
    /// [`Handle::force_release`](crate::Handle::force_release) also ends the writer's read holds.
    /// It frees nothing while the lock is held for reading only.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// # let client = lockstorm_client::Client::connect(&url).await?;
    /// let writing = client.rw_lock("doc").write().try_acquire_for(Duration::from_secs(2)).await?;
    /// assert!(writing.is_some());
    /// # Ok(()) }
    /// ```
    pub fn write(&self) -> Lock {
        self.write.clone()
    }
}

/// Returns the field of a writer in the lock's hash.
fn writer(owner: &str) -> String {
    format!("{owner}:write")
}

/// Returns the wake-ups by the channel that both halves share. A read grant is not exclusive:
/// others may read as well.
fn wakes(key: &str, exclusive: bool) -> Wakes {
    Wakes { channel: rw_channel(key), policy: super::reentrant::wakes, exclusive, in_turns: false }
}

fn force_release(key: &str, mode: &str, message: &str, publish: &str) -> Call {
    FORCE_RELEASE.call([key.to_owned(), rw_channel(key)]).arg(mode).arg(message).arg(publish)
}

/// Reads the reply of the look script: the mode in which the lock is taken, and true if anyone
/// reads.
fn read_look(reply: &Value) -> Result<(Option<&[u8]>, bool)> {
    match reply {
        Value::Array(items) => match items.as_slice() {
            [Value::Nil, Value::Int(_)] => Ok((None, false)),
            [Value::BulkString(mode), Value::Int(with_reads)] => Ok((Some(mode), *with_reads == 1)),
            _ => Err(Error::unexpected(reply)),
        },
        _ => Err(Error::unexpected(reply)),
    }
}

impl ForceRelease for read::Read {
    fn force_release(&self, key: &str, _now_ms: u64, publish: &str) -> Call {
        force_release(key, "read", "0", publish)
    }

    fn look(&self, key: &str) -> Option<Call> {
        Some(LOOK.call([key]))
    }

    fn read_look(&self, reply: &Value) -> Result<Taken> {
        let (mode, with_reads) = read_look(reply)?;
        Ok(Taken { is_locked: with_reads, is_forcible: mode == Some(b"read") })
    }
}

impl ForceRelease for write::Write {
    fn force_release(&self, key: &str, _now_ms: u64, publish: &str) -> Call {
        force_release(key, "write", "1", publish)
    }

    fn owner_field(&self, owner: String) -> String {
        writer(&owner)
    }

    fn look(&self, key: &str) -> Option<Call> {
        Some(LOOK.call([key]))
    }

    fn read_look(&self, reply: &Value) -> Result<Taken> {
        let is_locked = read_look(reply)?.0 == Some(b"write");
        Ok(Taken { is_locked, is_forcible: is_locked })
    }
}
