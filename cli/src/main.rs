//! The binary `lockstorm`: its command line, and the studies behind it.
//!
//! | module | contents |
//! | --- | --- |
//! | `study` | studies over many runs of a scenario |
//! | `cli` | one file per subcommand |

mod study;

mod cli;

/// A server and a thousand worlds live by small allocations, which the C library's allocator is
/// slow at. Only the binary chooses: a library has no say in what its user's process allocates
/// with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
