//! The whole state of a Sentinel.

use std::collections::BTreeMap;

use super::{
    Outbox, Settings, Telling,
    file::with_users,
    instance::{Route, Who},
    link::Link,
    master::Master,
};
use crate::{env::Env, event::ConnId, time::Monotonic};

/// The whole state of a Sentinel: its settings, the masters that it monitors, and its epoch.
#[derive(Debug)]
pub struct Sentinel {
    /// The configuration, except that of each master.
    pub(super) settings: Settings,
    /// The id among Sentinels. It survives a restart.
    pub(super) my_id: String,
    /// The port on which it listens.
    pub(super) port: u16,
    /// `requirepass`; other Sentinels are assumed to have the same.
    pub(super) requirepass: String,
    pub(super) current_epoch: u64,
    pub(super) masters: BTreeMap<String, Master>,
    /// The links to the other Sentinels, by their ids. All masters that know a Sentinel share its
    /// link, because there may be many masters.
    pub(super) peers: BTreeMap<String, Link>,
    /// The time at which TILT began; `None` outside TILT.
    pub(super) tilt_since: Option<i64>,
    /// The wall clock at the last tick.
    pub(super) last_tick: i64,
    pub(super) next_tick: Monotonic,
    pub(super) routes: BTreeMap<ConnId, Route>,
    pub(super) dialed: u64,
    pub(super) crash_after_election: bool,
    pub(super) crash_after_promotion: bool,
    pub(super) out: Outbox,
    /// The configuration file as it was last written.
    saved: String,
}

impl Sentinel {
    /// Creates a Sentinel from the text of its configuration file.
    ///
    /// # Errors
    /// Returns the first wrong line.
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

    /// The text of the configuration file that survives a crash.
    pub fn saved(&self) -> &str {
        &self.saved
    }

    /// Returns the new text of the configuration file, with these lines about users, and takes it
    /// as written.
    pub fn save_file(&mut self, users: &[String]) -> String {
        self.saved = self.file(&with_users(&self.saved, users));
        self.saved.clone()
    }

    pub(super) fn tell_monitor(&mut self, name: &str) {
        let Some(master) = self.masters.get(name) else { return };
        let message = format!("{} quorum {}", master.named(&Who::Master), master.settings.quorum);
        self.tell("+monitor", message);
    }

    /// Returns the id that distinguishes this Sentinel from others, as SENTINEL MYID replies it.
    pub fn my_id(&self) -> &str {
        &self.my_id
    }

    /// The names of the watched masters.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.masters.keys()
    }

    /// Takes all effects out of the outbox.
    pub fn take_outbox(&mut self) -> Outbox {
        std::mem::take(&mut self.out)
    }

    /// The time at which the periodic work is due.
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
