//! Which node is to answer for the keys of a command.

use super::{Around, Cluster, slot::key_slot};

/// Why a command is not for this node, or not now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elsewhere {
    /// The keys belong to several slots.
    CrossSlot,
    /// No node has the slot.
    Unbound,
    /// The cluster is down.
    Down,
    /// The cluster is down, and only reads are allowed.
    DownForWrites,
    /// Some of the keys are here and some are not, while the slot moves.
    TryAgain,
    /// What is asked for has moved: the target of the migration has it, if any node has.
    Ask(u16, String),
    /// Another node has the slot.
    Moved(u16, String),
}

impl Elsewhere {
    /// The error reply.
    pub fn text(&self) -> String {
        match self {
            Elsewhere::CrossSlot => "CROSSSLOT Keys in request don't hash to the same slot".into(),
            Elsewhere::Unbound => "CLUSTERDOWN Hash slot not served".into(),
            Elsewhere::Down => "CLUSTERDOWN The cluster is down".into(),
            Elsewhere::DownForWrites => {
                "CLUSTERDOWN The cluster is down and only accepts read commands".into()
            }
            Elsewhere::TryAgain => "TRYAGAIN Multiple keys request during rehashing of slot".into(),
            Elsewhere::Ask(slot, to) => format!("ASK {slot} {to}"),
            Elsewhere::Moved(slot, to) => format!("MOVED {slot} {to}"),
        }
    }

    /// The error of a script that has called the command.
    pub fn text_in_script(&self) -> &'static str {
        match self {
            Elsewhere::DownForWrites => {
                "Script attempted to execute a write command while the cluster is down and readonly"
            }
            Elsewhere::Down => "Script attempted to execute a command while the cluster is down",
            _ => "Script attempted to access a non local key in a cluster node",
        }
    }
}

/// A command, or all the commands of a transaction, as far as that decides which node answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request {
    /// It may write.
    pub writes: bool,
    /// Its keys are shard channels.
    pub shard_channels: bool,
    /// It is MIGRATE.
    pub migrates: bool,
    /// It follows ASKING, or is RESTORE-ASKING.
    pub asking: bool,
    /// The connection has said READONLY.
    pub readonly: bool,
}

impl Cluster {
    /// Whether this node answers a command with these keys; the slot, if there are keys. `is_here`
    /// says whether a key is there.
    ///
    /// # Errors
    /// What to answer instead.
    pub fn route<'a>(
        &self,
        around: &Around<'_>,
        keys: impl Iterator<Item = &'a [u8]>,
        request: Request,
        mut is_here: impl FnMut(&[u8]) -> bool,
    ) -> Result<Option<u16>, Elsewhere> {
        let mut first: Option<(&[u8], u16)> = None;
        let (mut several, mut present, mut missing) = (false, false, false);
        let mut open = (None, false);
        for key in keys {
            match first {
                None => {
                    let slot = key_slot(key);
                    let owner = self.owner(slot).ok_or(Elsewhere::Unbound)?;
                    first = Some((key, slot));
                    let target = self.migrating.get(&slot).filter(|_| owner == self.me).copied();
                    open = (target, target.is_none() && self.importing.contains_key(&slot));
                }
                Some((other, slot)) if other != key => {
                    if key_slot(key) != slot {
                        return Err(Elsewhere::CrossSlot);
                    }
                    several = true;
                }
                Some(_) => {}
            }
            if (open.0.is_some() || open.1) && !request.shard_channels {
                let here = is_here(key);
                present |= here;
                missing |= !here;
            }
        }
        let Some((_, slot)) = first else { return Ok(None) };
        let cluster = &around.config.cluster;
        if !self.is_ok {
            if request.shard_channels {
                if !cluster.allow_pubsubshard_when_down {
                    return Err(Elsewhere::Down);
                }
            } else if !cluster.allow_reads_when_down {
                return Err(Elsewhere::Down);
            } else if request.writes {
                return Err(Elsewhere::DownForWrites);
            }
        }
        let (migrating, importing) = open;
        if (migrating.is_some() || importing) && request.migrates {
            return Ok(Some(slot));
        }
        if let Some(target) = migrating.filter(|_| missing) {
            return Err(match present {
                true => Elsewhere::TryAgain,
                false => Elsewhere::Ask(slot, self.redirection(around, target)),
            });
        }
        if importing && request.asking {
            return if several && missing { Err(Elsewhere::TryAgain) } else { Ok(Some(slot)) };
        }
        let owner = self.owner(slot).ok_or(Elsewhere::Unbound)?;
        let myself = self.myself();
        let reads_here = (request.readonly || request.shard_channels) && !request.writes;
        if owner == self.me || (reads_here && myself.is_replica() && myself.master == Some(owner)) {
            return Ok(Some(slot));
        }
        Err(Elsewhere::Moved(slot, self.redirection(around, owner)))
    }

    /// Why a client that waits for keys of this node is not to wait any longer, if so.
    pub fn unblocks<'a>(
        &self,
        around: &Around<'_>,
        keys: impl Iterator<Item = &'a [u8]>,
        reads_here: bool,
    ) -> Option<Elsewhere> {
        if !self.is_ok {
            return Some(Elsewhere::Down);
        }
        let mut keys = keys;
        keys.find_map(|key| {
            let slot = key_slot(key);
            let Some(owner) = self.owner(slot) else { return Some(Elsewhere::Unbound) };
            let mine = owner == self.me
                || self.importing.contains_key(&slot)
                || (reads_here && self.myself().is_replica() && self.myself().master == Some(owner));
            (!mine).then(|| Elsewhere::Moved(slot, self.redirection(around, owner)))
        })
    }
}
