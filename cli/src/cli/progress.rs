//! Progress of long work: a bar on a terminal, or a line every ten seconds.

use std::{
    io::{IsTerminal, stderr},
    sync::Mutex,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use super::out::errln;

/// The shortest time between two lines if standard error is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The progress of a number of runs.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    state: Mutex<State>,
}

struct State {
    done: usize,
    simulated: f64,
    begun: Instant,
    last_line: Instant,
}

impl Progress {
    #[expect(clippy::disallowed_methods, reason = "how fast the machine is belongs to no run")]
    pub(super) fn new(total: usize) -> Progress {
        let bar = (total > 1 && stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}, {eta} left]");
            let bar = ProgressBar::new(total as u64);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let now = Instant::now();
        let state = Mutex::new(State { done: 0, simulated: 0.0, begun: now, last_line: now });
        Progress { bar, total, state }
    }

    /// Counts a finished run and its simulated seconds, and updates the bar.
    #[expect(clippy::disallowed_methods, reason = "how fast the machine is belongs to no run")]
    pub(super) fn step(&self, simulated: f64) {
        let mut state = self.state.lock().expect("nobody panics while counting");
        state.done += 1;
        state.simulated += simulated;
        let now = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_message(state.speed(now));
            bar.set_position(state.done as u64);
        } else if now - state.last_line >= LINE_EVERY {
            state.last_line = now;
            errln!("{} of {} runs, {}", state.done, self.total, state.speed(now));
        }
    }

    /// Removes the bar. Returns the number of runs and their speed, in words.
    #[expect(clippy::disallowed_methods, reason = "how fast the machine is belongs to no run")]
    pub(super) fn finish(&self) -> String {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let state = self.state.lock().expect("nobody panics while counting");
        let now = Instant::now();
        format!("{} runs in {:.1} s, {}", state.done, (now - state.begun).as_secs_f64(), state.speed(now))
    }
}

impl State {
    fn speed(&self, now: Instant) -> String {
        let seconds = (now - self.begun).as_secs_f64().max(1e-9);
        format!("{:.0} seeds/s, {:.0} simulated s/s", self.done as f64 / seconds, self.simulated / seconds)
    }
}
