//! A node behind real sockets, as seen by its clients: limits, slow and dying peers, a clock that
//! clients advance.

mod clock;
mod dying;
mod limits;
mod peer;
mod scripts;
mod seed;
mod times;
