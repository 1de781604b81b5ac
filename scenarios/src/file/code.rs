//! Code that a client of a scenario runs in place of steps.

use std::{any::Any, fmt, sync::Arc};

/// Code that a client of a scenario runs instead of steps. It starts again when the host restarts
/// after a crash. A host whose code has ended keeps its holds.
///
/// The observer of the production client reports the code's beliefs to the checkers. With another
/// client the code reports them itself ([`CodeHost::acquired`]). [`CodeHost::acquiring`] and
/// [`CodeHost::releasing`] report its requests. Code is one line of work, one owner of the lock,
/// unless it creates more ([`CodeHost::line`]).
///
/// ```
/// use std::time::Duration;
/// use lockstorm::{
///     file::scenario::Scenario, judge::verdict::Expectation, run::code::CodeHost, units::Span,
/// };
///
/// async fn worker(host: CodeHost) {
///     let client = host.client().build().expect("the scenario has a node");
///     let lock = client.lock(host.lock_name());
///     if let Ok(guard) = host.acquiring(None, lock.acquire()).await {
///         host.sleep(Duration::from_millis(20)).await;
///         let _ = host.releasing(guard.release()).await;
///     }
/// }
///
/// let scenario = Scenario::builder("two workers of my own")
///     .node("redis", Default::default())
///     .client_code("w1", worker)
///     .client_code("w2", worker)
///     .lasting(Span::secs(5), Span::secs(0))
///     .expect("l2", Expectation::holds())
///     .build();
/// lockstorm::experiment(scenario).seeds(0..3).check();
/// ```
///
/// [`CodeHost::acquired`]: crate::run::code::CodeHost::acquired
/// [`CodeHost::acquiring`]: crate::run::code::CodeHost::acquiring
/// [`CodeHost::releasing`]: crate::run::code::CodeHost::releasing
/// [`CodeHost::line`]: crate::run::code::CodeHost::line
#[derive(Clone)]
pub struct Code(pub(crate) Arc<dyn Any + Send + Sync>);

/// Two values are equal if they share the same code.
impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}
