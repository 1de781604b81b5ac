//! Asks several servers in parallel. Some may be silent.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{BoxFuture, select_all};

use crate::env::{Env, Monotonic, within};
use crate::error::{Error, Result};

/// The time to wait for further answers after the first one, whose server may know less than the
/// others.
const GRACE: Duration = Duration::from_millis(100);

/// Returns the answers and the errors that come before `limit`, and no later than [`GRACE`] after
/// the first answer.
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
