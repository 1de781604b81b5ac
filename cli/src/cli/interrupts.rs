//! SIGINT and SIGTERM while real servers run.

use std::sync::Once;

use lockstorm::run::real;
use tokio::signal::unix::{SignalKind, signal};

/// Ends runs with real servers on SIGINT or SIGTERM, so that no server outlives this process. Later
/// calls have no effect.
pub(super) fn end_real_runs() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let Ok(runtime) = runtime else { return };
        std::thread::spawn(move || {
            runtime.block_on(async {
                let interrupt = signal(SignalKind::interrupt());
                let both = interrupt.and_then(|one| Ok((one, signal(SignalKind::terminate())?)));
                let Ok((mut interrupt, mut terminate)) = both else { return };
                tokio::select! {
                    biased;
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                real::interrupt();
                // Keep the runtime alive: signal handlers end with it, and runs still clean up.
                std::future::pending::<()>().await;
            });
        });
    });
}
