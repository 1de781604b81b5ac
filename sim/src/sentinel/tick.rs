//! The periodic work, and TILT, the state in which a Sentinel does not trust its own clock.

use std::time::Duration;

use super::{
    Sentinel,
    instance::Who,
    master::{Master, Stage},
};
use crate::env::Env;

impl Sentinel {
    /// Does the periodic work if it is due. Each period is drawn at random, so that Sentinels that
    /// stood for election at the same instant do not collide again and again.
    pub fn run_due(&mut self, env: &mut Env) {
        if env.monotonic < self.next_tick {
            return;
        }
        self.tick(env);
        let hz = 10 + env.random_below(10) as u64;
        self.next_tick = env.monotonic + Duration::from_millis(1_000 / hz);
    }

    fn tick(&mut self, env: &mut Env) {
        let now = env.wall.as_millis();
        self.check_tilt(now);
        let mut switching = None;
        for name in self.masters.keys().cloned().collect::<Vec<_>>() {
            let Some(mut master) = self.masters.remove(&name) else { continue };
            self.handle_master(env, now, &mut master);
            if master.stage == Stage::UpdateConfig {
                switching = Some(name.clone());
            }
            self.masters.insert(name, master);
        }
        if let Some(mut master) = switching.and_then(|name| self.masters.remove(&name)) {
            self.switch_to_promoted(now, &mut master);
            self.masters.insert(master.name.clone(), master);
        }
    }

    fn handle_master(&mut self, env: &mut Env, now: i64, master: &mut Master) {
        for who in master.everyone() {
            self.reconnect(now, master, &who);
            self.send_periodic(now, master, &who);
            if let Some(since) = self.tilt_since {
                if now - since < self.settings.times.tilt {
                    continue;
                }
                self.tilt_since = None;
                self.tell("-tilt", "#tilt mode exited".into());
            }
            self.check_s_down(now, master, &who);
            if who == Who::Master {
                self.check_o_down(now, master);
                if self.starts_failover(now, master) {
                    self.start_failover(env, now, master);
                    self.ask_others(now, master, true);
                }
                self.run_failover(env, now, master);
                self.ask_others(now, master, false);
            }
        }
    }

    /// Begins TILT if the clock jumped or the process paused: every measured time is then doubtful.
    fn check_tilt(&mut self, now: i64) {
        let passed = now - self.last_tick;
        if passed < 0 || passed > self.settings.times.tilt_trigger {
            self.tilt_since = Some(now);
            self.tell("+tilt", "#tilt mode entered".into());
        }
        self.last_tick = now;
    }
}
