//! Decides which node answers for the keys of a command.

use super::{Around, Cluster, slot::key_slot};
use crate::generation::Generation;

/// The reason why this node does not answer a command, or not now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elsewhere {
    /// The keys belong to several slots.
    CrossSlot,
    /// No node owns the slot.
    Unbound,
    /// The cluster is down, and reads are refused as well.
    Down,
    /// The cluster is down, and only reads are allowed.
    DownForWrites,
    /// The slot is moving, and only some of the keys are on this node.
    TryAgain,
    /// The slot is moving, and none of the keys is on this node any more: the target of the
    /// migration has them, if any node has. The slot and the target's endpoint.
    Ask(u16, String),
    /// Another node owns the slot. The slot and that node's endpoint.
    Moved(u16, String),
}

impl Elsewhere {
    /// Returns the error reply for a client, such as `MOVED 3999 10.0.0.2:6379`.
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

    /// The error of a script that called the command of this name.
    pub fn text_in_script(&self, command: &str, generation: Generation) -> String {
        if generation == Generation::Valkey91 {
            return match self {
                Elsewhere::DownForWrites => {
                    format!(
                        "Can not execute a write command '{command}' while the cluster is down and readonly"
                    )
                }
                Elsewhere::Down => format!("Can not execute a command '{command}' while the cluster is down"),
                _ => "Attempted to access a non local key in a cluster node".into(),
            };
        }
        match self {
            Elsewhere::DownForWrites => {
                "Script attempted to execute a write command while the cluster is down and readonly".into()
            }
            Elsewhere::Down => "Script attempted to execute a command while the cluster is down".into(),
            _ if generation.is_before_7_2() => {
                "Script attempted to access a non local key in a cluster node".into()
            }
            Elsewhere::CrossSlot => format!(
                "Command '{command}' in script attempted to access keys that don't hash to the same slot"
            ),
            Elsewhere::TryAgain => format!(
                "Unable to execute command '{command}' in script because undeclared keys were accessed during \
                 rehashing of the slot"
            ),
            Elsewhere::Unbound => "Script attempted to access a slot not served".into(),
            Elsewhere::Ask(..) | Elsewhere::Moved(..) => {
                "Script attempted to access a non local key in a cluster node".into()
            }
        }
    }
}

/// The properties of a command, or of all the commands of a transaction, that decide which node
/// answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request {
    /// Set if the command may write; then READONLY does not let a replica run it.
    pub writes: bool,
    /// Set if its keys are shard channels, which belong to slots like keys.
    pub shard_channels: bool,
    /// Set for MIGRATE, which runs here while its slot moves, even if keys are missing.
    pub migrates: bool,
    /// Set if ASKING came just before it, or it is RESTORE-ASKING.
    pub asking: bool,
    /// Set if the connection has sent READONLY: replicas then answer reads.
    pub readonly: bool,
}

impl Cluster {
    /// Returns the slot of the keys if this node answers the command; `None` if there are no keys.
    /// `is_here` returns true for a key that exists on this node.
    ///
    /// # Errors
    /// Returns the error to reply with if this node does not answer.
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

    /// Returns the error that ends the wait of a client blocked on `keys`; `None` if it may
    /// continue to wait.
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
