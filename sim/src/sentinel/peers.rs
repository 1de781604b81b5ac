//! The links of instances. Each master or replica has its own link; another Sentinel has one for
//! all masters that both watch, because these may be hundreds.

use std::collections::BTreeMap;

use super::{
    Address, Sentinel,
    instance::{Instance, Kind, Route, Who},
    link::{Channel, Link, PENDING_MAX, lose},
    master::Master,
};

impl Sentinel {
    pub(super) fn link<'a>(&'a self, master: &'a Master, who: &Who) -> Option<&'a Link> {
        match who {
            Who::Sentinel(id) => self.peers.get(id),
            _ => master.instance(who)?.link.as_ref(),
        }
    }

    pub(super) fn link_mut<'a>(&'a mut self, master: &'a mut Master, who: &Who) -> Option<&'a mut Link> {
        match who {
            Who::Sentinel(id) => self.peers.get_mut(id),
            _ => master.instance_mut(who)?.link.as_mut(),
        }
    }

    /// The link that a connection belongs to.
    pub(super) fn link_of(&mut self, route: &Route) -> Option<&mut Link> {
        match &route.who {
            Who::Sentinel(id) => self.peers.get_mut(id),
            who => self.masters.get_mut(&route.master)?.instance_mut(who)?.link.as_mut(),
        }
    }

    /// Number of masters that use the link to an instance of this master's group.
    pub(super) fn users_of(&self, master: &Master, who: &Who) -> usize {
        let Who::Sentinel(id) = who else { return 1 };
        let others = self.masters.values().filter(|other| other.name != master.name);
        1 + others.filter(|other| other.sentinels.contains_key(id)).count()
    }

    /// Number of outstanding commands at which no periodic command is sent, for all masters that
    /// use the link together.
    pub(super) fn pending_max(&self, master: &Master, who: &Who) -> usize {
        PENDING_MAX * self.users_of(master, who)
    }

    /// Records another Sentinel of a master; the first master that does so creates the link.
    pub(super) fn join(
        peers: &mut BTreeMap<String, Link>,
        master: &mut Master,
        id: &str,
        address: Address,
        now: i64,
    ) {
        let mut peer = Instance::new(Kind::Sentinel, address, now);
        id.clone_into(&mut peer.run_id);
        master.sentinels.insert(id.to_owned(), peer);
        peers.entry(id.to_owned()).or_insert_with(|| Link::new(now));
    }

    /// Ends a master's use of the link to a Sentinel; the last master that does so closes it.
    pub(super) fn leave(&mut self, master: &str, id: &str) {
        let mut others = self.masters.values().filter(|other| other.name != master);
        if others.any(|other| other.sentinels.contains_key(id)) {
            if let Some(link) = self.peers.get_mut(id) {
                link.forget(master);
            }
        } else if let Some(link) = self.peers.remove(id) {
            link.conns().for_each(|conn| self.hang_up(conn));
        }
    }

    /// Closes the connection to a Sentinel, so that it is dialed again.
    pub(super) fn close_peer(&mut self, id: &str) {
        let conn = self.peers.get_mut(id).and_then(|link| lose(link, Channel::Commands));
        conn.into_iter().for_each(|conn| self.hang_up(conn));
    }
}
