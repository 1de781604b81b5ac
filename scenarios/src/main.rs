//! The binary `lockstorm`.

fn main() -> std::process::ExitCode {
    lockstorm::cli::main()
}
