//! SLAVEOF host port | NO ONE: the old name of REPLICAOF.

use super::replicaof;
use crate::commands::Spec;

pub(super) const SPEC: Spec = Spec { name: "slaveof", since: "1.0.0", ..replicaof::SPEC };
