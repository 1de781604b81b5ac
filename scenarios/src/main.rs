//! The binary `lockstorm`.

/// A server and a thousand worlds live by small allocations, which the C library's allocator is
/// slow at. Only the binary chooses: a library has no say in what its user's process allocates
/// with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    lockstorm::cli::main()
}
