//! Every stock scenario is a test: with each of its own seeds, each of its variants comes out as the file expects.
//!
//! `LOCKSTORM_SEEDS=0..1000 cargo test --test scenarios -- storm` tries others.

use libtest_mimic::{Arguments, Failed, Trial};
use lockstorm::library;

fn main() {
    let tests = library::ALL.iter().map(|stock| {
        Trial::test(stock.path, || match lockstorm::scenario(stock.path).try_check() {
            Ok(_) => Ok(()),
            Err(failed) => Err(Failed::from(failed.to_string())),
        })
    });
    libtest_mimic::run(&Arguments::from_args(), tests.collect()).exit();
}
