//! Findings about locks that several clients may hold, as scenarios: read-write locks and
//! semaphores.

use std::rc::Rc;

use super::{
    super::{
        command::{Call, Verb},
        draft::{Draft, command, poll, span},
        findings::Kind,
        locks::Leased,
        names::date,
    },
    Facts, Missing, SOON_US, lease_beyond,
};

/// The middle of a key that only a reader's call has.
const READ_HOLD: &[u8] = b":rwlock_timeout";

/// The time from the grants of permits to their loss, if the capture does not prove the grants.
const BEFORE_US: i64 = 100_000;

/// The time from the loss of a semaphore to the SET of its number.
const SET_AGAIN_US: i64 = 1_000;

impl Facts<'_> {
    /// Returns the scenario of a lock that several clients may hold.
    pub(super) fn of_several(&self) -> Result<Draft, Missing> {
        match (self.object_kind, self.finding.kind) {
            ("read-write lock", Kind::GrantedTwice | Kind::Late) => {
                Ok(self.read_write(self.holder_stands_still()?))
            }
            ("read-write lock", Kind::Deleted | Kind::Flushed) => Ok(self.read_write(self.third_party()?)),
            ("semaphore", Kind::PermitsBeyond) if self.number().is_some() => self.releases_too_many(),
            ("semaphore", Kind::Deleted | Kind::Flushed) => self.loses_permits(),
            ("semaphore", Kind::PermitsBeyond | Kind::Late) => Err(Missing::Checker),
            _ => Err(Missing::Kind),
        }
    }

    /// Makes the lock of a scenario a read-write lock, and readers of those that are.
    fn read_write(&self, mut draft: Draft) -> Draft {
        draft.lock.push("kind = \"read-write\"".to_owned());
        let reads = |at: usize| self.finding.calls.get(at).is_some_and(|call| is_reader(call));
        let next_reads = self.finding.kind == Kind::GrantedTwice && reads(1);
        for (name, _, steps) in &mut draft.clients {
            let is_reader = if *name == "holder" { reads(0) } else { next_reads };
            for step in steps.iter_mut().filter(|_| is_reader) {
                *step = step
                    .replace("try_acquire = {}", "try_acquire = { shared = true }")
                    .replace("every = \"1ms\"", "every = \"1ms\", shared = true");
            }
        }
        draft
    }

    /// Returns the call that set the number of permits, and the number.
    fn number(&self) -> Option<(&Rc<Call>, i64)> {
        let number = |call: &Call| {
            let mut own = call.acts().iter().filter(|command| *command.word(1) == *self.finding.key);
            let set = own.find(|command| matches!(command.verb, Verb::Set | Verb::SetNx))?;
            std::str::from_utf8(set.word(2)).ok()?.parse::<i64>().ok()
        };
        let mut numbers = self.finding.calls.iter().filter_map(|call| Some((call, number(call)?)));
        numbers.rfind(|(_, number)| *number > 0)
    }

    /// A client releases more permits than it has, and one more client gets one.
    fn releases_too_many(&self) -> Result<Draft, Missing> {
        let (set, total) = self.number().ok_or(Missing::Kind)?;
        let act = self.call(1)?;
        let own = act.acts().iter().filter(|command| *command.word(1) == *self.finding.key);
        let added = own.filter_map(|command| match command.name().as_str() {
            "INCR" => Some(1),
            "INCRBY" => std::str::from_utf8(command.word(2)).ok()?.parse::<i64>().ok(),
            _ => None,
        });
        let added = added.fold(0, i64::saturating_add).to_string();
        let assumed = vec![
            "One client has all permits at the release. The clients of the capture had some of them."
                .to_owned(),
            "INCRBY at the node's console has the effect of the script.".to_owned(),
            "Another client asks right after the release.".to_owned(),
        ];
        let key = self.key();
        let words = ["INCRBY", &*key, &*added];
        self.permits(assumed, (set.at_us, total), act, vec![("third-party", &words[..])])
    }

    /// The permits are lost with their key, and its number is set again.
    fn loses_permits(&self) -> Result<Draft, Missing> {
        let calls = &self.finding.calls;
        let takes = |call: &Rc<Call>| matches!(call.command.verb, Verb::Del | Verb::FlushAll | Verb::FlushDb);
        let act = calls.iter().find(|call| takes(call)).ok_or(Missing::Kind)?;
        let begin = calls.iter().rfind(|call| call.at_us < act.at_us);
        let mut assumed =
            vec!["One client has all permits. The clients of the capture had some of them.".to_owned()];
        let total = self.number().map(|(_, total)| total);
        if total.is_none() {
            assumed.push("The number of permits: the capture does not show it.".to_owned());
        }
        let total = total.unwrap_or(1);
        if begin.is_none() {
            assumed.push("The grants of the permits: the capture does not prove them.".to_owned());
        }
        let begin_us = begin.map_or(act.at_us - BEFORE_US, |call| call.at_us);
        assumed.push("The number is set again right after that, and another client asks.".to_owned());
        let (key, number) = (self.key(), total.to_string());
        let takes = if act.command.verb == Verb::Del { vec!["DEL", &*key] } else { vec!["FLUSHALL"] };
        let again = ["SET", &*key, &*number];
        let commands = vec![("third-party", &takes[..]), ("again", &again[..])];
        self.permits(assumed, (begin_us, total), act, commands)
    }

    /// Returns a scenario in which one client has all permits of a semaphore, commands are given
    /// from the time of a call on, a millisecond apart, and another client asks for a permit.
    fn permits(
        &self,
        mut assumed: Vec<String>,
        (begin_us, total): (i64, i64),
        act: &Call,
        commands: Vec<(&'static str, &[&str])>,
    ) -> Result<Draft, Missing> {
        let act_us = act.at_us - begin_us;
        if act_us <= 0 {
            return Err(Missing::Order);
        }
        let has_ids = self.finding.calls.iter().any(|call| has_leases(call));
        let lease_ms = has_ids.then(|| lease_beyond(act_us));
        if has_ids {
            assumed.push("The lease of the permits.".to_owned());
        }
        let leased = Leased { set_us: begin_us, lease_ms, renewed: 0 };
        let next_us = act_us + SOON_US;
        let mut draft = self.base("permits", assumed, &leased, false, next_us)?;
        let kind = if has_ids { "permit-semaphore" } else { "semaphore" };
        draft.lock = vec![
            format!("name = \"{}\"", self.key()),
            format!("kind = \"{kind}\""),
            format!("permits = {total}"),
        ];
        if let Some(ms) = lease_ms {
            draft.lock.push(format!("lease = \"{}\"", span(ms.saturating_mul(1_000))));
        }
        let about = format!("It takes all permits at the time of {}.", date(begin_us));
        let steps = vec![format!("{{ at = \"1s\", try_acquire = {{ permits = {total} }} }}")];
        draft.clients.push(("holder", about, steps));
        let about = "The client that is assumed.".to_owned();
        draft.clients.push(("next", about, vec![poll(next_us, None)]));
        for ((name, words), after_us) in commands.into_iter().zip([0, SET_AGAIN_US]) {
            let about = format!("{} at {}.", act.client, date(act.at_us));
            let about = if after_us == 0 { about } else { "The SET that is assumed.".to_owned() };
            draft.faults.push((name, about, command(act_us + after_us, words)));
        }
        Ok(draft)
    }
}

/// Returns true for a call of a reader, which names the key with the end of its hold.
fn is_reader(call: &Call) -> bool {
    let is_its = |key: &[u8]| key.windows(READ_HOLD.len()).any(|part| part == READ_HOLD);
    call.command.keys().iter().any(|key| is_its(key))
}

/// Returns true for a call on permits that expire.
fn has_leases(call: &Call) -> bool {
    call.command.keys().iter().any(|key| key.ends_with(b":timeout"))
}
