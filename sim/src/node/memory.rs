//! The memory use of a node, estimated as that of `redis-server`.

use crate::{
    keyspace::{Db, embedded_memory, table_memory, text_memory},
    node::{
        Node,
        clients::{Role, Session},
    },
    script::Library,
};

impl Node {
    /// What a server uses before it has any data, about as `redis-server` 7.0 does.
    pub const STARTUP_MEMORY: usize = 876_336;

    /// Bytes in use: those of the start, those of keys and values as `keyspace/memory.rs` estimates
    /// them, and those of connections and the backlog.
    pub fn used_memory(&self) -> usize {
        let clients = self.memory_of(|role| role != Role::Replica);
        self.data_memory().saturating_add(clients).saturating_add(self.replication_memory())
    }

    /// The bytes of the start, and those of keys and values.
    pub fn data_memory(&self) -> usize {
        self.dbs.iter().map(Db::memory).fold(Node::STARTUP_MEMORY, usize::saturating_add)
    }

    /// The memory of the connections of some roles, without the query buffers that all have.
    pub fn memory_of(&self, wanted: impl Fn(Role) -> bool) -> usize {
        let of = self.clients.sessions.iter().filter(|session| wanted(session.role));
        of.map(Session::evictable_memory).fold(0, usize::saturating_add)
    }

    /// What an interpreter uses before it runs anything: the one of scripts, and the one of
    /// functions.
    pub const INTERPRETERS_MEMORY: (usize, usize) = (32_768, 33_792);

    /// What the texts and the names of scripts take.
    pub fn scripts_memory(&self) -> usize {
        const NAME_LEN: usize = 40;
        /// Flags, and where the text is.
        const SCRIPT: usize = 16;
        let lens = self.scripts.lens();
        // A short text lies beside the header of its object, whose size does not count.
        let text = |len: usize| if len <= 44 { embedded_memory(len) } else { text_memory(len) };
        let each = lens.iter().map(|len| SCRIPT + text_memory(NAME_LEN) + text(*len));
        table_memory(lens.len()) + each.sum::<usize>()
    }

    /// What libraries and their functions take beside what the interpreter holds of them.
    pub fn functions_memory(&self) -> usize {
        /// Headers of the tables.
        const TABLES: usize = 200;
        /// A library, a function, and what the engine knows of the latter.
        const LIBRARY: usize = 32;
        const FUNCTION: usize = 48 + 8;
        let of_library = |library: &Library| {
            let functions = library.functions.values().map(|function| {
                let description = function.description.as_ref().map_or(0, |text| text_memory(text.len()));
                FUNCTION + text_memory(function.name.len()) + description
            });
            LIBRARY
                + text_memory(library.name.len())
                + text_memory(library.code.len())
                + functions.sum::<usize>()
        };
        let libraries = self.libraries.iter().map(|library| of_library(library)).sum::<usize>();
        TABLES + table_memory(self.libraries.function_count()) + libraries
    }

    /// What replicas and the backlog hold. No key goes for that.
    pub fn replication_memory(&self) -> usize {
        let backlog = self.replication.backlog.as_ref().map_or(0, |backlog| backlog.len());
        self.memory_of(|role| role == Role::Replica).saturating_add(backlog)
    }
}
