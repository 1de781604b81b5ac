//! Closes a client: releases all its holds and ends its waiting calls.

use std::pin::pin;

use crate::client::Client;
use crate::env::within;
use crate::keeper::delete_latches;

/// The work that [`Client::close`] could not finish in its time. It resolves by itself: locks end
/// with their leases, places in queues with their deadlines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the client is closed, and {} may still be held, with {others} other calls without an outcome: {}",
    match locks.len() { 1 => "1 lock".to_owned(), n => format!("{n} locks") },
    if locks.is_empty() { "none".to_owned() } else { locks.join(", ") })]
#[non_exhaustive]
pub struct Unfinished {
    /// The keys of locks whose release has failed or was not answered, once for each level.
    pub locks: Vec<String>,
    /// The number of acquisitions and departures from queues without an outcome.
    pub others: usize,
}

impl Client {
    /// Releases everything that this client holds, ends its waiting calls, and waits until none
    /// of its work is under way, for at most
    /// [`Builder::close_timeout`](crate::Builder::close_timeout). Await it before the runtime ends:
    /// a guard that is dropped at the end of `main` has no runtime left to release its lock, which
    /// then remains until its lease ends.
    ///
    /// Guards that the application still has are released. They are not valid any more, and
    /// releasing them again fails with [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld).
    /// Acquisitions, including later ones, fail with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed). A Redlock belongs to the first of its
    /// clients: close that one first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> lockstorm_client::Result<()> {
    /// # let server = lockstorm_sim::TestServer::start().await.expect("a free port");
    /// # let url = server.url();
    /// let client = lockstorm_client::Client::connect(&url).await?;
    /// let guard = client.lock("stock").acquire().await?;
    /// drop(guard); // released in the background
    /// if let Err(unfinished) = client.close().await {
    ///     eprintln!("{unfinished}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Unfinished`] when something could not be released, or not in time.
    pub async fn close(&self) -> Result<(), Unfinished> {
        let session = &self.session;
        let (env, ctx) = (session.env(), &session.ctx);
        ctx.work.close();
        let limit = env.now() + session.config.close_timeout;
        let closing = async {
            // A grant that was under way may arrive during this.
            while ctx.ledger.give_all_back(env) > 0 || ctx.work.under_way() > 0 {
                ctx.work.done().await;
            }
            // On a server that does not answer, the latches expire.
            let latches = pin!(delete_latches(session));
            within(env, env.now() + session.config.response_timeout, latches).await;
        };
        within(env, limit, pin!(closing)).await;
        let unreleased = ctx.ledger.unreleased();
        let places = session.queue_leave.left();
        let others = ctx.work.under_way().saturating_sub(ctx.ledger.releasing()).max(places);
        session.router.close();
        if unreleased.is_empty() && others == 0 {
            return Ok(());
        }
        Err(Unfinished { locks: unreleased, others })
    }
}
