//! Estimates the memory use of a node as `redis-server` would report it.

use crate::{
    keyspace::{Db, embedded_memory, table_memory, text_memory},
    node::{
        Node,
        clients::{Role, Session},
    },
    script::Library,
};

impl Node {
    /// Bytes that a server uses before it has any data, about as in `redis-server` 7.0.
    pub const STARTUP_MEMORY: usize = 876_336;

    /// Returns the bytes in use: those of the start, those of keys and values as
    /// `keyspace/memory.rs` estimates them, and those of connections and the backlog.
    pub fn used_memory(&self) -> usize {
        let clients = self.memory_of(|role| role != Role::Replica);
        self.data_memory().saturating_add(clients).saturating_add(self.replication_memory())
    }

    /// Returns the bytes of the start plus those of keys and values.
    pub fn data_memory(&self) -> usize {
        self.dbs.iter().map(Db::memory).fold(Node::STARTUP_MEMORY, usize::saturating_add)
    }

    /// Returns the memory of the connections of some roles, without the query buffer that every
    /// connection has.
    pub fn memory_of(&self, wanted: impl Fn(Role) -> bool) -> usize {
        let of = self.clients.sessions.iter().filter(|session| wanted(session.role));
        of.map(Session::evictable_memory).fold(0, usize::saturating_add)
    }

    /// Bytes that an interpreter uses before it runs anything: the interpreter of scripts, and that
    /// of functions.
    pub const INTERPRETERS_MEMORY: (usize, usize) = (32_768, 33_792);

    /// Returns the bytes of the texts and the names of scripts.
    pub fn scripts_memory(&self) -> usize {
        const NAME_LEN: usize = 40;
        /// Flags, and a pointer to the text.
        const SCRIPT: usize = 16;
        let lens = self.scripts.lens();
        // A short text is stored beside the header of its object, whose size does not count.
        let text = |len: usize| if len <= 44 { embedded_memory(len) } else { text_memory(len) };
        let each = lens.iter().map(|len| SCRIPT + text_memory(NAME_LEN) + text(*len));
        table_memory(lens.len()) + each.sum::<usize>()
    }

    /// Returns the bytes of libraries and their functions outside the interpreter.
    pub fn functions_memory(&self) -> usize {
        /// Headers of the tables.
        const TABLES: usize = 200;
        /// A library, a function, and the engine's entry for the function.
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

    /// Returns the bytes of replicas' connections and the backlog. No key is evicted because of
    /// them.
    pub fn replication_memory(&self) -> usize {
        let backlog = self.replication.backlog.as_ref().map_or(0, |backlog| backlog.len());
        self.memory_of(|role| role == Role::Replica).saturating_add(backlog)
    }
}
