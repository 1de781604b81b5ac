//! The virtual world: hosts that run any async code over `turmoil-net`'s sockets, links between
//! them, clocks with faults, and a timeline that jumps from event to event. A world runs on one
//! thread from one seed; everything in it is a pure function of its hosts' code, the orders given,
//! and the seed.
//!
//! ```
//! use lockstorm_sim::{time::{Monotonic, True}, world::World};
//!
//! let mut world = World::builder(1)
//!     .host("c1", |ctx| async move {
//!         ctx.sleep_until(Monotonic::from_secs(3)).await;
//!         ctx.observe("woke", ctx.wall().to_string());
//!     })
//!     .build();
//! world.run(True::from_secs(5)).unwrap();
//! assert_eq!(world.now(), True::from_secs(5));
//! ```

mod advance;
mod builder;
mod cause;
mod clock;
mod condition;
mod conn;
mod control;
mod engine;
mod entropy;
mod fabric;
mod host;
mod link;
mod lock;
mod machine;
mod network;
pub mod node;
mod orders;
mod parcel;
mod proxy;
mod rule;
mod sleeper;
mod socket;
mod timeline;
mod trace;
#[cfg(feature = "turmoil")]
mod turmoil;
#[cfg(feature = "turmoil")]
mod turmoil_socket;
#[cfg(feature = "turmoil")]
mod turmoil_world;
#[cfg(feature = "turmoil")]
mod wire;

#[cfg(test)]
mod tests;

pub use builder::Builder;
pub use cause::Cause;
pub use clock::{Clock, ClockId, Rate, Reading, Segment};
pub use condition::Condition;
pub use control::{Control, Verb};
pub use engine::Engine;
pub use entropy::{Entropy, Stream};
pub use host::{HostCtx, HostState, Sleep, Stopping};
pub use link::Latency;
pub use rule::{MessageFault, Rule};
pub use socket::{TcpListener, TcpStream};
pub use timeline::{End, Hook, StateHook, World, WorldError};
pub use trace::{
    Activity, Divergence, Event, Fingerprint, HostName, Record, TraceRetention, first_divergence,
};
