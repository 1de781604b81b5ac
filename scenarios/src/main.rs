//! The binary `lockstorm`.

fn main() {}
