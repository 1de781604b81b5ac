//! Panics of the simulator: a difference like any other, with its place.

use std::{
    cell::{Cell, RefCell},
    panic::{self, AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Installs a panic hook that stores the message of a panic inside `catch` instead of printing it.
pub(crate) fn keep() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if CATCHING.get() {
            LAST.set(info.to_string());
        } else {
            print(info);
        }
    }));
}

/// Runs `play`; an error is the text of its panic.
pub(crate) fn catch<T>(play: impl FnOnce() -> T) -> Result<T, String> {
    CATCHING.set(true);
    let played = catch_unwind(AssertUnwindSafe(play));
    CATCHING.set(false);
    played.map_err(|_| LAST.take())
}
