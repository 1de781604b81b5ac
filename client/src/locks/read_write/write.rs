//! The lock for writing. The owner's field in the hash marks it as the writer.

use redis::{Cmd, Value};

use super::wakes;
use crate::attempt::{Answer, Ask, Attempt, Found, Lease, Unlock, found_in_hash, probe_hash};
use crate::error::Result;
use crate::hold::{Known, Told};
use crate::locks::reentrant::read_acquired;
use crate::renew::{HASHES, RenewalScript};
use crate::rights::{self, Rights};
use crate::script::{Call, Script, script};
use crate::wake::Wakes;
use crate::wire::{rw_channel, suffix_tag, unlock_latch};

script!(ACQUIRE, "acquire_write.lua");
script!(RELEASE, "longest_read.lua", "publish.lua", "release_write.lua");
script!(
    RELEASE_WITHOUT_LATCH,
    "../without_latch.lua",
    "longest_read.lua",
    "publish.lua",
    "release_write.lua"
);

pub(super) struct Write;

impl Attempt for Write {
    type Got = ();

    fn call(&self, ask: &Ask<'_>) -> Call {
        ACQUIRE.call([ask.key]).arg(ask.lease_ms).arg(ask.owner)
    }

    fn read(&self, reply: &Value) -> Result<Answer<()>> {
        read_acquired(reply)
    }

    fn wakes(&self, key: &str, _owner: &str) -> Option<Wakes> {
        Some(wakes(key, true))
    }

    fn probe(&self, ask: &Ask<'_>) -> Vec<Cmd> {
        probe_hash(ask)
    }

    fn found(&self, answers: &[Value], known: &Known) -> Result<Told<Found<()>>> {
        Ok(found_in_hash(answers, known)?.map(|left| Found { got: (), left }))
    }
}

impl Lease for Write {
    fn renewal(&self) -> Option<&'static RenewalScript> {
        Some(&HASHES)
    }

    fn release(&self, unlock: &Unlock<'_>) -> Call {
        let key = unlock.key;
        let keys = [key.to_owned(), rw_channel(key), suffix_tag(key), unlock_latch(key, unlock.request)];
        RELEASE
            .call(keys.into_iter().chain(unlock.spent.iter().cloned()))
            .arg(1)
            .arg(unlock.owner)
            .arg(unlock.publish)
            .arg(unlock.latch_ms)
    }

    fn release_without_latch(&self) -> Option<&'static Script> {
        Some(&RELEASE_WITHOUT_LATCH)
    }

    fn rights(&self) -> &'static Rights {
        &rights::READ_WRITE
    }
}
