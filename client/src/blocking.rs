//! The client for programs without a runtime: a separate thread runs its tasks (feature
//! `blocking`).
//!
//! ```
//! # fn main() -> lockstorm_client::Result<()> {
//! # let server = lockstorm_sim::TestServer::start_blocking().expect("a free port");
//! # let url = server.url();
//! use lockstorm_client::blocking::Client;
//! let client = Client::connect(&url)?; // such as redis://127.0.0.1:6379
//! let guard = client.wait(client.lock("stock").acquire())?;
//! // The watchdog renews the lock until it is released, here or when the guard is dropped.
//! client.wait(guard.release())?;
//! # Ok(()) }
//! ```

use std::ops::Deref;
use std::thread::JoinHandle;

use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

use crate::address::Address;
use crate::client::Builder;
use crate::close::Unfinished;
use crate::error::{Error, Result};

/// A [`Client`](crate::Client) with a thread that runs its tasks. It dereferences to that client,
/// which creates the locks and other objects.
///
/// Make each of their asynchronous calls with [`Client::wait`]. Guards are the same as well; the
/// thread releases a guard that is dropped. Dropping the client releases everything that it still
/// holds, and waits for the end of the releases.
pub struct Client {
    client: crate::Client,
    runtime: Handle,
    /// Dropping the sender ends the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    /// As [`Client::connect`](crate::Client::connect).
    ///
    /// # Errors
    /// When the address is invalid, the server cannot be reached, or the thread cannot be started.
    ///
    /// # Panics
    /// Panics on a thread that runs asynchronous tasks, which it would stall.
    pub fn connect(server: impl Into<Address>) -> Result<Self> {
        Self::of(crate::Client::builder().endpoint(server))
    }

    /// Returns a connected client with these settings.
    ///
    /// ```
    /// # fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start_blocking().expect("a free port");
    /// # let url = server.url();
    /// use std::time::Duration;
    /// let settings = lockstorm_client::Client::builder().endpoint(url).watchdog_timeout(Duration::from_secs(10));
    /// let client = lockstorm_client::blocking::Client::of(settings)?;
    /// let limit = Duration::from_secs(3);
    /// if let Some(guard) = client.wait(client.fenced_lock("stock").try_acquire_for(limit))? {
    ///     println!("token {}", guard.token());
    /// } // released in the background
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Builder::connect`], and when the thread cannot be started.
    ///
    /// # Panics
    /// Panics on a thread that runs asynchronous tasks, which it would stall.
    pub fn of(settings: Builder) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Error::config(format!("no thread for the client: {error}")).caused_by(error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let client = runtime.block_on(settings.connect())?;
        let (end, ended) = oneshot::channel();
        let (handle, of_thread) = (runtime.handle().clone(), client.clone());
        let thread = std::thread::Builder::new()
            .name("lockstorm-client".to_owned())
            .spawn(move || drive(&runtime, ended, &of_thread))
            .map_err(failed)?;
        Ok(Self { client, runtime: handle, end: Some(end), thread: Some(thread) })
    }

    /// Waits for the outcome of an asynchronous call.
    ///
    /// # Panics
    /// Panics on a thread that runs asynchronous tasks, which it would stall.
    pub fn wait<F: IntoFuture>(&self, call: F) -> F::Output {
        self.runtime.block_on(call.into_future())
    }

    /// Closes the client, as [`Client::close`](crate::Client::close). Dropping the client does the
    /// same.
    ///
    /// # Errors
    /// [`Unfinished`] when something could not be released, or not in time.
    ///
    /// # Panics
    /// Panics on a thread that runs asynchronous tasks, which it would stall.
    pub fn close(self) -> Result<(), Unfinished> {
        self.wait(self.client.close())
    }
}

/// Runs the client's tasks until the client is dropped, then closes it.
fn drive(runtime: &Runtime, ended: oneshot::Receiver<()>, client: &crate::Client) {
    runtime.block_on(async {
        // A dropped sender ends the client as well.
        let _ = ended.await;
        // No caller exists to report the outcome to.
        let _ = client.close().await;
    });
}

impl Deref for Client {
    type Target = crate::Client;

    fn deref(&self) -> &Self::Target {
        &self.client
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.client.fmt(f)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The thread has printed a panic itself.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockstorm_sim::TestServer;

    use super::*;

    #[test]
    fn guards_and_the_client_release_when_they_are_dropped() {
        let server = TestServer::start_blocking().unwrap();
        let (mine, other) = (Client::connect(server.url()).unwrap(), Client::connect(server.url()).unwrap());
        let guard = mine.wait(mine.lock("stock").acquire()).unwrap();
        assert!(other.wait(other.lock("stock").try_acquire()).unwrap().is_none());
        // The waiter is on its own thread. The release that the drop begins wakes it.
        let theirs = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| other.wait(other.lock("stock").acquire()));
            drop(guard);
            waiting.join().unwrap().unwrap()
        });
        other.wait(theirs.release()).unwrap();

        let kept = mine.wait(mine.lock("stock").acquire()).unwrap();
        drop(mine);
        assert!(!kept.is_valid());
        let guard = other.wait(other.lock("stock").try_acquire_for(Duration::from_secs(5))).unwrap();
        assert!(guard.is_some(), "free, although a guard is left: its lease of 30 s has not ended");
        other.close().unwrap();
    }

    #[tokio::test]
    #[should_panic(expected = "runtime")]
    async fn a_task_that_would_stall_its_runtime_panics() {
        let _ = Client::connect("redis://127.0.0.1:1");
    }
}
