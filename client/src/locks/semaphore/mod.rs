//! The semaphore, Redisson's `RSemaphore`: a number of permits that any client may take and
//! release.

mod counter;
mod handle;

use redis::{Cmd, Value};

use crate::attempt::{Answer, Ask, Attempt, Found, Lease, Sleep, Unlock};
use crate::error::{Error, Result};
use crate::hold::{Known, Told};
use crate::renew::RenewalScript;
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::wake::{Wake, Wakes};
use crate::wire::{semaphore_channel, unlock_latch};
pub(crate) use counter::{Counter, read_count};
pub use handle::{Semaphore, SemaphorePermits};

script!(ACQUIRE, "acquire.lua");
script!(ADD, "repeat.lua", "add.lua");
script!(DRAIN, "repeat.lua", "drain.lua");
script!(SET, "repeat.lua", "set.lua");

/// A number of permits of a semaphore. Each acquisition is an owner of its own. The server
/// remembers a grant under that owner's name, because the number of permits does not show if a
/// request was executed.
struct Permits(u32);

impl Attempt for Permits {
    type Got = ();

    fn call(&self, ask: &Ask<'_>) -> Call {
        ACQUIRE.call([ask.key.to_owned(), unlock_latch(ask.key, ask.owner)]).arg(self.0).arg(ask.memory_ms)
    }

    fn read(&self, reply: &Value) -> Result<Answer<()>> {
        match reply {
            Value::Int(1) => Ok(Answer::Got(())),
            // Permits have no TTL.
            Value::Int(0) => Ok(Answer::Busy(Sleep::Unknown)),
            other => Err(Error::unexpected(other)),
        }
    }

    fn wakes(&self, key: &str, _owner: &str) -> Option<Wakes> {
        Some(Wakes { channel: semaphore_channel(key), policy: wakes, exclusive: false, in_turns: false })
    }

    fn wants_several(&self) -> bool {
        self.0 > 1
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        let mut remembered = redis::cmd("EXISTS");
        remembered.arg(unlock_latch(ask.key, ask.owner));
        vec![remembered]
    }

    fn found(&self, answers: &[Value], _known: &Known) -> Result<Told<Found<()>>> {
        match answers {
            [Value::Int(1)] => Ok(Told::Obeyed(Found { got: (), left: std::time::Duration::MAX })),
            [Value::Int(0)] => Ok(Told::NotObeyed),
            _ => Err(Error::unexpected(answers.first().unwrap_or(&Value::Nil))),
        }
    }
}

impl Lease for Permits {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        None
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        let mut spent = vec![unlock_latch(unlock.key, unlock.owner)];
        spent.extend_from_slice(unlock.spent);
        let change =
            Change { key: unlock.key, request: unlock.request, spent: &spent, memory_ms: unlock.latch_ms };
        change.call(&ADD, unlock.publish).arg(self.0)
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        None
    }

    fn rights(&self) -> &'static Rights {
        &rights::SEMAPHORE
    }
}

/// A change of the number of permits that is not a grant.
pub(crate) struct Change<'a> {
    pub(crate) key: &'a str,
    /// The id of the request, the same in all retries.
    pub(crate) request: &'a str,
    /// The memory keys of earlier requests, which are not needed any more.
    pub(crate) spent: &'a [String],
    pub(crate) memory_ms: u64,
}

impl Change<'_> {
    fn call(&self, script: &'static crate::script::Script, publish: &str) -> Call {
        let keys = [self.key.to_owned(), semaphore_channel(self.key), unlock_latch(self.key, self.request)];
        script.call(keys.into_iter().chain(self.spent.iter().cloned())).arg(publish).arg(self.memory_ms)
    }
}

/// Decodes a message on the channel of a semaphore: the number of permits available, or just
/// released. Any other message, such as Redisson's negative totals, wakes one waiter.
pub(super) fn wakes(message: &[u8]) -> Wake {
    let permits = std::str::from_utf8(message).ok().and_then(|text| text.parse().ok());
    permits.map_or(Wake::One, Wake::UpTo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_no_number_of_permits_is_worth_a_look() {
        for (message, wake) in [
            ("0", Wake::UpTo(0)),
            ("3", Wake::UpTo(3)),
            ("-3", Wake::One),
            ("", Wake::One),
            ("1.5", Wake::One),
            ("99999999999999999999999", Wake::One),
        ] {
            assert_eq!(wakes(message.as_bytes()), wake, "{message}");
        }
        assert_eq!(wakes(b"\xff"), Wake::One);
    }
}
