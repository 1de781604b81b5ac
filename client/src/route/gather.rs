//! Asking several servers at once, of which some may be silent.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{BoxFuture, select_all};

use crate::env::{Env, Monotonic, within};
use crate::error::{Error, Result};

/// How long the others are waited for when the first has answered: the first may know less than
/// they do.
const GRACE: Duration = Duration::from_millis(100);

/// The answers that come before `limit`, and no later than a little after the first of them; and
/// the errors.
pub(super) async fn gather<T>(
    env: &dyn Env,
    limit: Monotonic,
    mut asked: Vec<BoxFuture<'_, Result<T>>>,
) -> (Vec<T>, Vec<Error>) {
    let (mut answers, mut errors, mut limit) = (Vec::new(), Vec::new(), limit);
    while !asked.is_empty() {
        let Some((done, _, rest)) = within(env, limit, pin!(select_all(asked))).await else { break };
        asked = rest;
        match done {
            Ok(answer) => {
                if answers.is_empty() {
                    limit = limit.min(env.now() + GRACE);
                }
                answers.push(answer);
            }
            Err(error) => errors.push(error),
        }
    }
    (answers, errors)
}
