//! The expirable semaphore, Redisson's `RPermitExpirableSemaphore`: permits with ids, and with
//! leases after which they come back.

mod handle;
mod ids;

use std::time::Duration;

use redis::{Cmd, Value};

use super::semaphore::{Change, wakes};
use crate::attempt::{Answer, Ask, Attempt, Found, Lease, Sleep, Unlock};
use crate::config::millis;
use crate::error::{Error, Result};
use crate::hold::{Known, Told};
use crate::renew::{Name, RenewalScript, read_flags};
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::wake::Wakes;
use crate::wire::{permit_deadlines, semaphore_channel, unlock_latch};
pub use handle::{PermitGuard, PermitSemaphore};
pub use ids::{PermitId, PermitIds};

script!(ACQUIRE, "now.lua", "reclaim.lua", "acquire.lua");
script!(RELEASE, "now.lua", "reclaim.lua", "release.lua");
script!(RELEASE_WITHOUT_LATCH, "../without_latch.lua", "now.lua", "reclaim.lua", "release.lua");
script!(RENEW, "now.lua", "renew.lua");
script!(UPDATE, "now.lua", "update.lua");
script!(COUNT, "now.lua", "count.lua");

/// Permits that are acquired together, by the ids drawn for them. The server knows no other owner,
/// so the owner is named after these ids.
struct Permits {
    ids: PermitIds,
}

impl Attempt for Permits {
    type Got = PermitIds;

    fn call(&self, ask: &Ask<'_>) -> Call {
        let ids = self.ids.as_slice();
        let call = ACQUIRE.call(keys(ask.key)).arg(ask.publish).arg(ids.len()).arg(ask.lease_ms);
        ids.iter().fold(call, |call, id| call.bytes(*id.as_bytes()))
    }

    fn read(&self, reply: &Value) -> Result<Answer<PermitIds>> {
        match reply {
            Value::Okay => Ok(Answer::Got(self.ids.clone())),
            Value::Int(left) => {
                Ok(Answer::Busy(Sleep::Left(Duration::from_millis(u64::try_from(*left).unwrap_or(0)))))
            }
            // None of the held permits has a lease.
            Value::Nil => Ok(Answer::Busy(Sleep::Unknown)),
            other => Err(Error::unexpected(other)),
        }
    }

    fn wakes(&self, key: &str, _owner: &str) -> Option<Wakes> {
        Some(Wakes { channel: semaphore_channel(key), policy: wakes, exclusive: false, in_turns: false })
    }

    fn wants_several(&self) -> bool {
        self.ids.as_slice().len() > 1
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        let mut deadline = redis::cmd("ZSCORE");
        // Either all were granted or none, so one id is enough.
        deadline.arg(permit_deadlines(ask.key)).arg(self.ids.as_slice().first().map(PermitId::as_bytes));
        vec![deadline, redis::cmd("TIME")]
    }

    fn found(&self, answers: &[Value], _known: &Known) -> Result<Told<Found<PermitIds>>> {
        let [deadline, time] = answers else { return Err(Error::unexpected(&Value::Nil)) };
        let (Some(deadline), now) = (read_deadline(deadline)?, read_time(time)?) else {
            return Ok(Told::NotObeyed);
        };
        Ok(Told::Obeyed(Found { got: self.ids.clone(), left: deadline.saturating_sub(now) }))
    }
}

impl Lease for Permits {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        static PERMITS: RenewalScript = RenewalScript { name: "permits", call: renew, read: read_flags };
        Some(&PERMITS)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        let Unlock { key, request, spent, latch_ms, publish, .. } = *unlock;
        release(&Change { key, request, spent, memory_ms: latch_ms }, "rest", publish, self.ids.as_slice())
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        Some(&RELEASE_WITHOUT_LATCH)
    }

    fn rights(&self) -> &'static Rights {
        &rights::PERMIT_SEMAPHORE
    }
}

fn keys(key: &str) -> [String; 3] {
    [key.to_owned(), permit_deadlines(key), semaphore_channel(key)]
}

/// Writes the call that releases permits by their ids. With `extent` "all" it releases none unless
/// all of them are held; with "rest" it releases those that are.
fn release(change: &Change<'_>, extent: &str, publish: &str, ids: &[PermitId]) -> Call {
    let memory = unlock_latch(change.key, change.request);
    let keys = keys(change.key).into_iter().chain([memory]).chain(change.spent.iter().cloned());
    let call = RELEASE.call(keys).arg(publish).arg(change.memory_ms).arg(extent);
    ids.iter().fold(call, |call, id| call.bytes(*id.as_bytes()))
}

fn renew(lease: Duration, names: &[Name]) -> Call {
    let call = RENEW.call(names.iter().map(|name| permit_deadlines(&name.key))).arg(millis(lease));
    names.iter().fold(call, |call, name| call.bytes(ids::bytes_of(&name.owner)))
}

/// Reads a score, which is text or a double depending on the protocol version.
fn read_deadline(reply: &Value) -> Result<Option<Duration>> {
    let deadline = match reply {
        Value::Nil => return Ok(None),
        Value::Double(deadline) => Some(*deadline),
        Value::BulkString(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    let deadline = deadline.and_then(|ms: f64| Duration::try_from_secs_f64(ms / 1000.0).ok());
    deadline.map(Some).ok_or_else(|| Error::unexpected(reply))
}

fn read_time(reply: &Value) -> Result<Duration> {
    let (secs, micros): (u64, u64) =
        redis::from_redis_value(reply.clone()).map_err(|_| Error::unexpected(reply))?;
    Ok(Duration::from_secs(secs).saturating_add(Duration::from_micros(micros)))
}
