//! A node behind real sockets, as its clients meet it: limits, slow and dying peers, a clock that
//! clients move.

mod clock;
mod dying;
mod limits;
mod peer;
mod scripts;
mod seed;
mod times;
