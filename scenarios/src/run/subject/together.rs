//! Composes the locks of several models: acquires them one after the other, all or none, or with
//! the mistakes of their trait.

use std::{future::poll_fn, rc::Rc, task::Poll};

use super::{AllOrNone, Ask, Failure, Held, HeldTogether, Local, Subject};
use crate::file::scenario::traits::Together;

/// Acquires all of them, each from the subject at the same index. Returns `None` if one was
/// refused.
///
/// # Errors
/// The failure of the first lock that fails.
pub(crate) async fn acquire_all(subjects: &[Rc<dyn Subject>], asks: &[Ask], together: Together) -> AllOrNone {
    let mut parts: Vec<Rc<dyn Held>> = Vec::new();
    for (subject, ask) in subjects.iter().zip(asks) {
        match subject.acquire(*ask).await {
            Ok(Some(held)) => parts.push(held),
            refused => {
                match together {
                    Together::Kept => forget(parts),
                    Together::Undone | Together::FirstError => {
                        for held in parts.iter().rev() {
                            // A hold whose release fails ends with its lease.
                            let _ = held.release().await;
                        }
                    }
                }
                return refused.map(|_| None);
            }
        }
    }
    Ok(Some(Rc::new(Parts { parts, together })))
}

/// Keeps these holds unreleased and renewed for as long as the process lives.
fn forget(parts: Vec<Rc<dyn Held>>) {
    tokio::task::spawn_local(async move {
        std::future::pending::<()>().await;
        drop(parts);
    });
}

/// The holds that were granted together.
struct Parts {
    parts: Vec<Rc<dyn Held>>,
    together: Together,
}

impl HeldTogether for Parts {
    fn release_each(&self) -> Local<'_, Vec<Result<(), Failure>>> {
        Box::pin(async move {
            let mut released: Vec<Result<(), Failure>> = Vec::new();
            for (at, held) in self.parts.iter().enumerate() {
                if self.together == Together::FirstError && released.iter().any(Result::is_err) {
                    forget(self.parts[at..].to_vec());
                    let failure = Failure { definite: true, message: "not reached".to_owned() };
                    released.resize(self.parts.len(), Err(failure));
                    break;
                }
                released.push(held.release().await);
            }
            released
        })
    }

    fn lost(&self) -> Local<'_, ()> {
        Box::pin(async move {
            let mut lost: Vec<Local<'_, ()>> = self.parts.iter().map(|held| held.lost()).collect();
            poll_fn(|cx| match lost.iter_mut().any(|one| one.as_mut().poll(cx).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        })
    }

    fn owner(&self) -> Option<String> {
        self.parts.first()?.owner()
    }

    fn token(&self) -> Option<u64> {
        self.parts.first()?.token()
    }
}
