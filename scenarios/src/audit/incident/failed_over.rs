//! A hold that was lost in a failover, as a scenario.

use super::{
    super::{
        draft::{BEGIN_US, Draft, STEP_US, poll, span},
        findings::Failover,
        names::date,
    },
    Facts, Missing, SOON_US, lease_beyond,
};

/// The link to the replica is cut this long before the grant, and until this long after the
/// promotion.
const CUT_US: i64 = 10_000;

impl Facts<'_> {
    /// The replica lacks the grant, takes the master's place, and grants the lock again.
    pub(super) fn fails_over(&self) -> Result<Draft, Missing> {
        let Failover { old, at_us, last_us, has_crashed, .. } = self.failover.ok_or(Missing::Failover)?;
        let mut lost = self.finding.leases.lost.clone().ok_or(Missing::Lease)?;
        let promoted_us = at_us - lost.set_us;
        if promoted_us <= STEP_US || self.call(1)?.at_us < *at_us {
            return Err(Missing::Order);
        }
        let mut assumed = vec![
            "The link to the replica is cut from before the grant. MONITOR does not show why the replica \
             lacked it."
                .to_owned(),
        ];
        if lost.lease_ms.is_none_or(|ms| ms <= 0) {
            lost.lease_ms = Some(lease_beyond(promoted_us));
            assumed.push("The lease of the hold: the capture does not show it.".to_owned());
        }
        // Otherwise the former holder found its hold gone.
        let next = self.finding.calls.get(1).filter(|_| self.finding.calls.len() > 2);
        assumed.push(match next {
            Some(call) => format!(
                "Another client asks right after the promotion. {} had the lock at {} at the latest.",
                call.client,
                date(call.at_us)
            ),
            None => {
                "Another client asks right after the promotion. The capture has no such client.".to_owned()
            }
        });
        let next_us = promoted_us + SOON_US;
        let mut draft = self.base("l1", assumed, &lost, lost.renewed > 0, next_us)?;
        draft.has_replica = true;
        let steps = vec!["{ at = \"1s\", try_acquire = {} }".to_owned()];
        draft.clients.push(("holder", self.holder(&lost), steps));
        let about = "The client that is assumed. It asks the new master.".to_owned();
        draft.clients.push(("next", about, vec![poll(next_us, None)]));
        let cut = vec![
            "cut = { from = \"redis\", to = \"replica\" }".to_owned(),
            format!("at = \"{}\"", span(BEGIN_US - CUT_US)),
            format!("for = \"{}\"", span(promoted_us + 2 * CUT_US)),
        ];
        draft.faults.push(("lag", "The cut that is assumed.".to_owned(), cut));
        if *has_crashed {
            let crashed_us = (last_us - lost.set_us).clamp(STEP_US, promoted_us - 1);
            let about = format!("The last command of {old} was at {}.", date(*last_us));
            let lines =
                vec!["crash = \"redis\"".to_owned(), format!("at = \"{}\"", span(BEGIN_US + crashed_us))];
            draft.faults.push(("crash", about, lines));
        }
        let by = if *has_crashed { "" } else { ", which still served its clients" };
        let about = format!("{} took the place of {old}{by}, at {}.", self.finding.node, date(*at_us));
        let lines =
            vec!["promote = \"replica\"".to_owned(), format!("at = \"{}\"", span(BEGIN_US + promoted_us))];
        draft.faults.push(("promotion", about, lines));
        Ok(draft)
    }
}
