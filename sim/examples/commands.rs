//! Prints `sim/COMMANDS.md`: each command, since which version there is one, and what differs from
//! Redis.

fn main() {
    print!("{}", lockstorm_sim::commands::markdown());
}
