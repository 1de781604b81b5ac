//! A model's count-down latch.

use lockstorm_client::{Env, wire};
use redis::{Cmd, Value};

use super::{
    commands::{granted, script},
    lock::{AT_ONCE, Shared},
    wire::{Failed, Messages},
};
use crate::{
    file::scenario::traits::{Pace, Release},
    run::subject::{Counting, Failure, Patience},
};

/// KEYS: the count. ARGV: the channel. Counts down, and deletes the key at zero. Returns 1 or 0.
const COUNT_DOWN: &str = "if redis.call('exists', KEYS[1]) == 0 then return 0 end \
    if redis.call('decr', KEYS[1]) <= 0 then redis.call('del', KEYS[1]) redis.call('publish', ARGV[1], '0') end return 1";

/// KEYS: the count. ARGV: the channel, the remaining count. Writes that count. Returns 1.
const WRITE: &str = "if tonumber(ARGV[2]) > 0 then redis.call('set', KEYS[1], ARGV[2]) \
    else redis.call('del', KEYS[1]) redis.call('publish', ARGV[1], '0') end return 1";

impl Shared {
    /// Performs an operation on the latch or the rate limiter. Returns false if it was refused.
    pub(super) async fn count(&self, counting: Counting) -> Result<bool, Failure> {
        let key = &*self.commands.names.lock;
        let channel = wire::latch_channel(key);
        match counting {
            Counting::Set => {
                let mut set = redis::cmd("SET");
                set.arg(key).arg(self.commands.number).arg("NX");
                Ok(self.does(&set).await?)
            }
            Counting::Down => match self.count_down(key, &channel).await {
                Err(Failed { replied: false, .. }) if self.traits.resend_release => {
                    self.wires[0].hang_up();
                    Ok(self.count_down(key, &channel).await?)
                }
                counted => Ok(counted?),
            },
            // A waiter of Redisson ignores the message that a deletion publishes, so none is sent.
            Counting::Delete => Ok(self.does(redis::cmd("DEL").arg(key)).await?),
            Counting::Await(patience) => Ok(self.opening(patience, &channel).await?),
            Counting::Take { permits, wait } => self.take(permits, wait).await,
        }
    }

    async fn count_down(&self, key: &str, channel: &str) -> Result<bool, Failed> {
        if self.traits.release != Release::GetThenDelete {
            return self.does(script(COUNT_DOWN, &[key]).arg(channel)).await;
        }
        match left(&self.told(&self.commands.look()).await?) {
            None => Ok(false),
            Some(left) => self.does(script(WRITE, &[key]).arg(channel).arg(left - 1)).await,
        }
    }

    /// Waits until the latch is open. Returns false if the wait ends first.
    async fn opening(&self, patience: Patience, channel: &str) -> Result<bool, Failed> {
        let end = self.end(patience);
        let mut messages = None;
        loop {
            let looked = self.told(&self.commands.look()).await;
            if looked.as_ref().is_ok_and(|answer| left(answer).is_none()) {
                return Ok(true);
            }
            if end.is_some_and(|end| self.env.now() >= end) {
                return looked.map(|_| false);
            }
            let asleep = self.asleep(&mut messages, channel);
            match end {
                None => asleep.await,
                Some(end) => tokio::select! {
                    biased;
                    () = asleep => {}
                    () = self.env.sleep_until(end) => {}
                },
            }
        }
    }

    /// Sleeps until it is time to look again.
    async fn asleep(&self, messages: &mut Option<Messages>, channel: &str) {
        let delay = match self.traits.pace {
            Pace::Spread | Pace::Fixed | Pace::Doubling | Pace::AtOnce | Pace::KeyEvent => self.spread(),
            Pace::Message | Pace::MessageWithoutRecheck => {
                if messages.is_none() {
                    *messages = self.wires[0].subscribe(channel, self.timeout).await.ok();
                    if self.traits.pace == Pace::Message {
                        return self.env.sleep_until(self.env.now() + AT_ONCE).await;
                    }
                }
                match messages {
                    Some(messages) => return messages.next().await,
                    None => AT_ONCE,
                }
            }
        };
        self.env.sleep_until(self.env.now() + delay).await;
    }

    /// Sends a command, and returns true if the node granted it.
    pub(super) async fn does(&self, command: &Cmd) -> Result<bool, Failed> {
        Ok(granted(&self.told(command).await?).is_some())
    }

    async fn told(&self, command: &Cmd) -> Result<Value, Failed> {
        self.wires[0].ask(command, self.timeout).await
    }
}

/// Returns the remaining count of a closed latch, and `None` for an open one.
fn left(answer: &Value) -> Option<i64> {
    let Value::BulkString(text) = answer else { return None };
    std::str::from_utf8(text).ok()?.parse().ok().filter(|left| *left > 0)
}
