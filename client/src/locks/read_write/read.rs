//! The lock for reading. Each level of a hold has its own key, which expires with its lease.

use std::time::Duration;

use redis::{Cmd, Value};

use super::{wakes, writer};
use crate::attempt::{Answer, Ask, Attempt, Found, Lease, Unlock, remaining};
use crate::config::millis;
use crate::error::{Error, Result};
use crate::hold::{Known, Told};
use crate::locks::reentrant::read_acquired;
use crate::renew::{Name, RenewalScript, read_flags};
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::wake::Wakes;
use crate::wire::{read_holds, rw_channel, suffix_tag, unlock_latch};

script!(ACQUIRE, "acquire_read.lua");
script!(RELEASE, "longest_read.lua", "publish.lua", "release_read.lua");
script!(RELEASE_WITHOUT_LATCH, "../without_latch.lua", "longest_read.lua", "publish.lua", "release_read.lua");
script!(PROBE, "probe.lua");
script!(RENEW, "renew.lua");

pub(super) struct Read;

impl Attempt for Read {
    type Got = ();

    fn call(&self, ask: &Ask<'_>) -> Call {
        let keys = [ask.key.to_owned(), read_holds(ask.key, ask.owner)];
        ACQUIRE.call(keys).arg(ask.lease_ms).arg(ask.owner).arg(writer(ask.owner))
    }

    fn read(&self, reply: &Value) -> Result<Answer<()>> {
        read_acquired(reply)
    }

    fn wakes(&self, key: &str, _owner: &str) -> Option<Wakes> {
        Some(wakes(key, false))
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        let keys = [ask.key.to_owned(), read_holds(ask.key, ask.owner)];
        // Sent with its text: the query is rare, and a restarted server does not know the script.
        vec![PROBE.call(keys).arg(ask.owner).eval()]
    }

    /// The count in the hash does not decide: while others read, it includes levels that have
    /// ended.
    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<()>>> {
        let [Value::Array(answer)] = answers else { return Err(Error::unexpected(&Value::Nil)) };
        let [Value::Int(living), Value::Int(left)] = answer[..] else {
            return Err(Error::unexpected(&answers[0]));
        };
        let living = u64::try_from(living).unwrap_or(0);
        let told = known.told(&[living], remaining(left).unwrap_or_default());
        Ok(told.ok_or_else(|| Error::unexpected(&answers[0]))?.map(|left| Found { got: (), left }))
    }
}

impl Lease for Read {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        static READS: RenewalScript = RenewalScript { name: "reads", call: renew, read: read_flags };
        Some(&READS)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        let key = unlock.key;
        let keys = [
            key.to_owned(),
            rw_channel(key),
            read_holds(key, unlock.owner),
            suffix_tag(key),
            unlock_latch(key, unlock.request),
        ];
        RELEASE
            .call(keys.into_iter().chain(unlock.spent.iter().cloned()))
            .arg(0)
            .arg(unlock.owner)
            .arg(unlock.publish)
            .arg(unlock.latch_ms)
            .arg(unlock.remaining_ms)
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        Some(&RELEASE_WITHOUT_LATCH)
    }

    fn rights(&self) -> &'static Rights {
        &rights::READ_WRITE
    }
}

fn renew(lease: Duration, names: &[Name]) -> Call {
    let keys = names.iter().flat_map(|Name { key, owner, .. }| [key.to_string(), read_holds(key, owner)]);
    let call = RENEW.call(keys).arg(millis(lease));
    names.iter().fold(call, |call, name| call.arg(&name.owner))
}
