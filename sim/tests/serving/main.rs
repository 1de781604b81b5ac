//! A node behind real sockets, as its clients meet it: limits, slow and dying peers, a clock that clients move.

mod clock;
mod dice;
mod dying;
mod limits;
mod peer;
mod scripts;
mod times;
