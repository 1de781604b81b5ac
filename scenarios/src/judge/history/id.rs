//! Numbers in place of names inside a history, and instants as nanoseconds in its stored form.

use std::fmt;

use lockstorm_world::time::{True, Wall};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )* };
}

ids! {
    /// A host: an index into the header's list.
    Host(u16);
    /// A lock on trial: an index into the header's list.
    Lock(u16);
    /// An owner, which asks for a lock and holds it: an index into the history's list. One client
    /// may have several.
    Owner(u32);
    /// A call of a client, unique in a history; its `Invoke` and its `Return` carry it.
    Op(u32);
}

/// True time as nanoseconds.
pub(super) mod nanos {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(at: &True, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(at.as_nanos())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<True, D::Error> {
        i64::deserialize(from).map(True::from_nanos)
    }
}

/// An optional true time, as nanoseconds.
pub(super) mod nanos_option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(at: &Option<True>, to: S) -> Result<S::Ok, S::Error> {
        at.map(True::as_nanos).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<True>, D::Error> {
        Ok(Option::<i64>::deserialize(from)?.map(True::from_nanos))
    }
}

/// An optional instant of a wall clock, as nanoseconds since the epoch.
pub(super) mod wall_option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(at: &Option<Wall>, to: S) -> Result<S::Ok, S::Error> {
        at.map(Wall::as_nanos).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Wall>, D::Error> {
        Ok(Option::<i64>::deserialize(from)?.map(Wall::from_nanos))
    }
}
