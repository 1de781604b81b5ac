//! The binary `lockstorm`: its command line, and the studies behind it.
//!
//! | module | contents |
//! | --- | --- |
//! | `study` | studies over many runs of a scenario |
//! | `cli` | one file per subcommand |

mod study;

mod cli;

/// A server and a thousand worlds make many small allocations, for which the C library's allocator
/// is slow. Only the binary chooses an allocator: a library must not choose for its user's process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
