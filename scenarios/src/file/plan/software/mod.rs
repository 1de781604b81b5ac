//! The software of planned hosts: one file for each kind.
//!
//! To plan another kind, write a file with its [`Software`](super::Software) and a function that
//! plans its hosts, and add the function to [`LIST`]. Its process at run time is in `run/`.

mod client;
mod node;
mod peer;
mod probe;
mod resource;
mod sentinel;

use lockstorm_world::Entropy;

use super::host::PlannedHost;
use crate::file::scenario::Scenario;

pub(crate) use client::PlannedClient;
pub(crate) use node::PlannedNode;
pub(crate) use peer::PlannedPeer;
pub(crate) use probe::PlannedProbe;
pub(crate) use resource::PlannedResource;
pub(crate) use sentinel::PlannedSentinel;

/// Plans the hosts of one kind of software.
type Hosts = fn(&Scenario, &Entropy) -> Vec<PlannedHost>;

/// All kinds, in the order in which the history numbers the hosts. The probe comes last, so that a
/// history in which it did nothing can leave it out.
pub(super) const LIST: &[Hosts] =
    &[node::hosts, client::hosts, resource::hosts, sentinel::hosts, probe::hosts];
