//! RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]: makes a key from
//! a payload of DUMP.

use super::restoring::restore;
use crate::commands::{Flags, Group, Keys, Spec};

pub(super) const SPEC: Spec = Spec {
    name: "restore",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Creates a key from a serialized value.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    keys: Keys::FIRST,
    subcommands: &[],
    run: restore,
};
