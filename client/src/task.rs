//! Runs work in its own task, which continues when the caller is gone, and returns an error to the
//! caller if the task dies.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::sync::oneshot;

use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};

/// Runs `work` in a task with the sender of its answer, and waits for that answer.
pub(crate) fn answer_of<T, W>(
    env: &dyn Env,
    work: impl FnOnce(oneshot::Sender<Result<T>>) -> W,
) -> impl Future<Output = Result<T>> + Send + 'static
where
    T: Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let (answer, answered) = oneshot::channel();
    let (last_words, death) = oneshot::channel();
    // Not in an async block, which would take the memory of the work twice.
    let work = AssertUnwindSafe(work(answer)).catch_unwind().map(|ended| {
        if let Err(panic) = ended {
            // The caller may be gone.
            let _ = last_words.send(message_of(&*panic));
            std::panic::resume_unwind(panic);
        }
    });
    // Events of the work belong to the caller's current span.
    #[cfg(feature = "tracing")]
    let work = tracing::Instrument::in_current_span(work);
    env.spawn(Box::pin(work));
    async move {
        match answered.await {
            Ok(answer) => answer,
            Err(_) => Err(Error::indefinite(match death.await {
                Ok(message) => ErrorKind::Panicked(message),
                Err(_) => ErrorKind::Shutdown,
            })),
        }
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value without text".to_owned())
}
