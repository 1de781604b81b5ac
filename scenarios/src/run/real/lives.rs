//! The operating system's process of a node or a Sentinel, over all lives of its host.

use std::{
    cell::{Cell, RefCell},
    io,
    path::PathBuf,
    rc::Rc,
};

use lockstorm_world::HostState;

use super::{
    Opening, START_MAX,
    process::{Home, Process},
};

/// The process over all lives of its host, with the files and the port that outlive a crash.
pub(super) struct Lives {
    pub(super) program: PathBuf,
    home: RefCell<Option<Rc<Home>>>,
    process: RefCell<Option<Process>>,
    paused: Cell<bool>,
    /// The clients wait for this. `is_open` is set once this process has opened, or is gone.
    opening: Rc<Opening>,
    is_open: Cell<bool>,
}

impl Lives {
    /// Creates a process that is not started yet, and makes clients wait for it.
    pub(super) fn new(program: PathBuf, opening: Rc<Opening>) -> Lives {
        opening.awaits_one_more();
        let (home, process, paused, is_open) = Default::default();
        Lives { program, home, process, paused, opening, is_open }
    }

    /// Stops clients from waiting for this process: it accepts connections, or is gone before it
    /// did.
    pub(super) fn is_opened(&self) {
        if !self.is_open.replace(true) {
            self.opening.one_is_ready();
        }
    }

    /// Starts the process if it is not running, in its previous home if it had one, with the
    /// arguments for that home.
    pub(super) fn start(
        &self,
        home: impl FnOnce() -> io::Result<Home>,
        arguments: impl FnOnce(&Home) -> io::Result<Vec<String>>,
    ) -> io::Result<Rc<Home>> {
        if let (Some(home), Some(_)) = (&*self.home.borrow(), &*self.process.borrow()) {
            return Ok(home.clone());
        }
        let known = self.home.borrow().clone();
        let home = match known {
            Some(home) => home,
            None => Rc::new(home()?),
        };
        self.process.replace(Some(Process::start(&self.program, &home, &arguments(&home)?)?));
        self.home.replace(Some(home.clone()));
        Ok(home)
    }

    /// Returns true if no process runs.
    pub(super) fn has_ended(&self) -> bool {
        self.process.borrow_mut().as_mut().is_none_or(Process::has_ended)
    }

    /// Waits until the server answers or has ended.
    pub(super) fn comes_up(&self, home: &Home) {
        home.answers_within(START_MAX, || self.has_ended());
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.get()
    }

    /// Passes on a change of the host's state.
    pub(super) fn is_now(&self, state: HostState) {
        let paused = matches!(state, HostState::Paused | HostState::Suspended);
        if self.paused.replace(paused) != paused
            && let Some(process) = &*self.process.borrow()
        {
            process.hold(paused);
        }
        if state == HostState::Down {
            self.process.take();
            self.is_opened();
        }
    }

    /// Ends the process, and removes its files.
    pub(super) fn end(&self) {
        self.process.take();
        self.home.take();
    }
}
