//! The state of a Sentinel as a whole.

use std::collections::BTreeMap;

use super::{
    Outbox, Settings, Telling,
    file::with_users,
    instance::{Route, Who},
    link::Link,
    master::Master,
};
use crate::{env::Env, event::ConnId, time::Monotonic};

/// A Sentinel.
#[derive(Debug)]
pub struct Sentinel {
    /// The configuration, but for what changes with each master.
    pub(super) settings: Settings,
    /// The name among Sentinels, which outlives the process.
    pub(super) my_id: String,
    /// The port that it listens on.
    pub(super) port: u16,
    /// `requirepass`, which other Sentinels are taken to have as well.
    pub(super) requirepass: String,
    pub(super) current_epoch: u64,
    pub(super) masters: BTreeMap<String, Master>,
    /// The links to the other Sentinels, by their ids: one for all masters that know of one, as
    /// there may be many masters.
    pub(super) peers: BTreeMap<String, Link>,
    /// Since when it is in TILT.
    pub(super) tilt_since: Option<i64>,
    /// The wall clock at the last tick.
    pub(super) last_tick: i64,
    pub(super) next_tick: Monotonic,
    pub(super) routes: BTreeMap<ConnId, Route>,
    pub(super) dialed: u64,
    pub(super) crash_after_election: bool,
    pub(super) crash_after_promotion: bool,
    pub(super) out: Outbox,
    /// The file as it was last written.
    saved: String,
}

impl Sentinel {
    /// A Sentinel that starts from what its file says.
    ///
    /// # Errors
    /// The first line that cannot be followed.
    pub fn new(
        text: &str,
        port: u16,
        requirepass: String,
        env: &mut Env,
    ) -> Result<Sentinel, super::Mistake> {
        let now = env.wall.as_millis();
        let mut sentinel = Sentinel {
            settings: Settings::default(),
            my_id: String::new(),
            port,
            requirepass,
            current_epoch: 0,
            masters: BTreeMap::new(),
            peers: BTreeMap::new(),
            tilt_since: None,
            last_tick: now,
            next_tick: env.monotonic + std::time::Duration::from_millis(1),
            routes: BTreeMap::new(),
            dialed: 0,
            crash_after_election: false,
            crash_after_promotion: false,
            out: Outbox::default(),
            saved: text.to_owned(),
        };
        sentinel.read(text, now)?;
        if sentinel.my_id.is_empty() {
            sentinel.my_id = env.random_id();
            sentinel.out.unsaved = true;
        }
        for name in sentinel.masters.keys().cloned().collect::<Vec<_>>() {
            sentinel.tell_monitor(&name);
        }
        Ok(sentinel)
    }

    /// The configuration file as a crash leaves it.
    pub fn saved(&self) -> &str {
        &self.saved
    }

    /// The text that the file is to have, with these lines about users. It counts as written from
    /// here on.
    pub fn save_file(&mut self, users: &[String]) -> String {
        self.saved = self.file(&with_users(&self.saved, users));
        self.saved.clone()
    }

    pub(super) fn tell_monitor(&mut self, name: &str) {
        let Some(master) = self.masters.get(name) else { return };
        let message = format!("{} quorum {}", master.named(&Who::Master), master.settings.quorum);
        self.tell("+monitor", message);
    }

    /// The name among Sentinels.
    pub fn my_id(&self) -> &str {
        &self.my_id
    }

    /// The names of the masters.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.masters.keys()
    }

    /// Takes out what it wants done.
    pub fn take_outbox(&mut self) -> Outbox {
        std::mem::take(&mut self.out)
    }

    /// When it next has work that nothing else triggers.
    pub fn due(&self) -> Monotonic {
        self.next_tick
    }

    pub(super) fn tell(&mut self, event: &'static str, message: String) {
        self.out.tellings.push(Telling { event, message });
    }

    pub(super) fn tell_of(&mut self, event: &'static str, master: &Master, who: &Who) {
        self.tell(event, master.named(who));
    }

    pub(super) fn save(&mut self) {
        self.out.unsaved = true;
    }
}
