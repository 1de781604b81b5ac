//! A deterministic world for tests of distributed code: hosts that run any async code over TCP
//! sockets, links between them, clocks with faults, and a timeline that jumps from event to event.
//! A world runs on one thread from one seed; everything in it is a pure function of its hosts'
//! code, the orders given, and the seed.
//!
//! A server `s` answers over links of 10 ms. A client `c` asks it every 100 ms. The link to `s` is
//! cut from 150 to 350 ms, and the wall clock of `c` steps back by an hour at 250 ms:
//!
//! ```
//! use std::time::Duration;
//!
//! use lockstorm_world::{
//!     Condition, Event, HostCtx, Latency, TraceRetention, Verb, World,
//!     time::{Monotonic, True, Wall},
//! };
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! async fn server(ctx: HostCtx) {
//!     let listener = ctx.listen(7).await.expect("the port is free");
//!     let (mut stream, _) = listener.accept().await.expect("a client comes");
//!     let mut byte = [0];
//!     while stream.read_exact(&mut byte).await.is_ok() && stream.write_all(&byte).await.is_ok() {}
//! }
//!
//! async fn client(ctx: HostCtx) {
//!     let mut stream = ctx.dial("s", 7).await.expect("it listens");
//!     for n in 1..=3u8 {
//!         ctx.sleep_until(Monotonic::from_millis(i64::from(n) * 100)).await;
//!         stream.write_all(&[n]).await.expect("the connection is open");
//!         let mut byte = [0];
//!         stream.read_exact(&mut byte).await.expect("an answer comes");
//!         let (wall, monotonic) = (ctx.wall().as_millis(), ctx.monotonic().as_millis());
//!         ctx.observe("answer", format!("{} at wall {wall}, monotonic {monotonic}", byte[0]));
//!     }
//! }
//!
//! let mut world = World::builder(1)
//!     .epoch(Wall::from_secs(3_600))
//!     .latency(Latency::Fixed(Duration::from_millis(10)))
//!     .host("s", server)
//!     .host("c", client)
//!     .keep(TraceRetention::Events)
//!     .build();
//! let cut = Condition::Cut { from: "c".into(), to: "s".into() };
//! world.control().at(True::from_millis(150), cut.clone().begin("a cable"));
//! world.control().at(True::from_millis(350), cut.end("a cable"));
//! let step = Verb::ClockStep { host: "c".into(), by_nanos: -3_600_000_000_000 };
//! world.control().at(True::from_millis(250), step);
//! world.run(True::from_secs(1)).expect("nothing loops");
//!
//! let answers: Vec<String> = world
//!     .records()
//!     .into_iter()
//!     .filter_map(|record| match record.event {
//!         Event::Observed { kind: "answer", detail } => Some(detail),
//!         _ => None,
//!     })
//!     .collect();
//! // Request 2 crosses the link once the cut has healed, and request 3 is late by then.
//! assert_eq!(
//!     answers,
//!     [
//!         "1 at wall 3600120, monotonic 120",
//!         "2 at wall 370, monotonic 370",
//!         "3 at wall 390, monotonic 390",
//!     ]
//! );
//! ```
//!
//! Code on a host has [`HostCtx`]: its clocks, its PRNG, its sockets and its tasks. [`Control`]
//! orders faults, which are [`Verb`]s; a lasting one is a [`Condition`], and each has a [`Cause`].
//! A [`Rule`] delays or loses single requests and replies: code that reads requests asks
//! [`HostCtx::judge`] for the [`Fate`] of each. Every event is in the trace, whose hash is the
//! [`Fingerprint`] of the run. [`Engine::Real`] runs the same hosts in real time, over links that
//! carry real connections.
//!
//! The modules in reading order; each imports only those listed before it. All but `time` are
//! private, and what others need of them is at the root:
//!
//! | module | what is there |
//! | --- | --- |
//! | [`time`] | the three clocks of a host, and true time |
//! | `lock` | locking of mutexes that are never contended |
//! | `loop_waker` | the wake-up of the world's loop |
//! | `cause` | the causes of conditions |
//! | `fate` | the fate of a request |
//! | `protocol` | requests and replies of server processes |
//! | `engine` | the engines that a world can run on |
//! | `entropy` | one seed, many streams of random numbers |
//! | `clock` | clocks that run fast, step, slew and freeze |
//! | `trace` | the trace and its fingerprint |
//! | `packet` | a packet between two kernels |
//! | `kernel` | the sockets of a host in virtual time |
//! | `conn` | a connection in real time |
//! | `payload` | the packets and the data that links carry |
//! | `link` | one direction between two hosts: latency, cuts, losses |
//! | `rule` | faults of selected messages |
//! | `condition` | effects that last as long as their cause |
//! | `control` | verbs, and their times |
//! | `wire` | a connection on the engine of `turmoil` |
//! | `machine` | the part of a host that outlives its software |
//! | `proxy` | the far end of a connection in real time |
//! | `virtual_socket` | sockets in virtual time |
//! | `turmoil_socket` | sockets on the engine of `turmoil` |
//! | `socket` | sockets on any engine |
//! | `host` | a host, from inside and from outside |
//! | `turmoil` | the engine of `turmoil` |
//! | `fabric` | the engine of one world, with its state |
//! | `timeline` | the world, and its loop |
//! | `advance` | the steps of a run that differ between engines |
//! | `network` | packets between kernels and links |
//! | `apply_verb` | the effect of each verb |
//! | `turmoil_world` | the loop on the engine of `turmoil` |
//! | `builder` | the description of a world |

pub mod time;

mod lock;

mod loop_waker;

mod cause;

mod fate;

mod protocol;

mod engine;

mod entropy;

mod clock;

mod trace;

mod packet;

mod kernel;

mod conn;

mod payload;

mod link;

mod rule;

mod condition;

mod control;

#[cfg(feature = "turmoil")]
mod wire;

mod machine;

mod proxy;

mod virtual_socket;

#[cfg(feature = "turmoil")]
mod turmoil_socket;

mod socket;

mod host;

#[cfg(feature = "turmoil")]
mod turmoil;

mod fabric;

mod timeline;

mod advance;

mod network;

mod apply_verb;

#[cfg(feature = "turmoil")]
mod turmoil_world;

mod builder;

pub use builder::{Builder, real_address};
pub use cause::Cause;
pub use clock::{Clock, ClockId, Rate, Reading, Segment};
pub use condition::Condition;
pub use control::{Control, Verb};
pub use engine::Engine;
pub use entropy::{Entropy, Stream};
pub use fate::{Break, Fate};
pub use host::{HostCtx, HostState, Sleep, Stopping};
pub use link::Latency;
pub use protocol::{Protocol, Request};
pub use rule::{MessageFault, Rule};
pub use socket::{TcpListener, TcpStream};
pub use timeline::{End, Hook, LullHook, StateHook, World, WorldError};
pub use trace::{
    Activity, Divergence, Event, Fingerprint, HostName, Record, TraceRetention, first_divergence,
};
