//! `lockstorm trial`: runs scenarios with another lock library in place of the clients.

use clap::Args;
use miette::{Result, miette};

use super::{
    Exit,
    options::{Files, Jobs, RealServers, Seeds},
    out::errln,
    results::Output,
};
use lockstorm::file::peer::Peer;

/// The default number of runs at a time. Each run starts a process for every client, which is late
/// on a busy processor.
pub(super) const AT_ONCE: usize = 4;

/// The end of the long help.
const PROTOCOL: &str = "\
A peer reads requests from standard input and writes answers to standard output, one JSON object per line. Its standard error is printed if \
it ends too early. It must end when its input ends. Its first line is

  {\"type\":\"hello\",\"protocol\":1,\"library\":\"redis-py\",\"version\":\"6.4\",
   \"key\":\"{}\",\"can\":[\"wait\",\"extend\"]}

where `key` is the key in Redis of a lock named {}, and `can` lists the features of the library, of wait, extend, watchdog, quorum and token. \
Requests and their answers:

  {\"id\":1,\"type\":\"init\",\"host\":\"c1\",\"locks\":[{\"lock\":\"lock\",\"name\":\"lock\",
   \"nodes\":[\"127.0.0.1:40001\"]}],\"watchdog_ms\":30000,\"timeout_ms\":null}
    -> {\"id\":1,\"type\":\"ready\"}
  {\"id\":2,\"type\":\"acquire\",\"lock\":\"lock\",\"wait_ms\":0,\"lease_ms\":1000}
    -> {\"id\":2,\"type\":\"granted\"} or {\"id\":2,\"type\":\"refused\"}
  {\"id\":3,\"type\":\"extend\",\"hold\":2,\"lease_ms\":1000}
    -> {\"id\":3,\"type\":\"extended\"}
  {\"id\":4,\"type\":\"release\",\"hold\":2}
    -> {\"id\":4,\"type\":\"released\"}

The answer to any request may be {\"id\":2,\"type\":\"error\",\"text\":\"..\",\"definite\":false}. The book explains every field, and the messages that \
a peer may send without a request.

Exit status: 0 as expected, 1 not as expected, 2 undecided, 64 wrong usage or a bad file.";

/// Put a lock library of any language on trial, with real servers in real time
///
/// A peer is a process that uses the library. A peer takes the place of each client of the
/// scenarios. The nodes are private server processes. A crash of a client is SIGKILL of its
/// peer, and a pause is SIGSTOP. A proxy between peer and nodes cuts, delays and drops.
#[derive(Debug, Args)]
// Hide `--why`: it needs to repeat runs, which is not possible in real time.
#[command(
    after_long_help = PROTOCOL,
    mut_arg("why", |why| why.hide(true)),
    mut_arg("seeds", |seeds| seeds.help("Range of seeds, excluding B [default: 0..1]")),
    mut_arg("jobs", |jobs| jobs.help(format!("Number of runs at a time [default: {AT_ONCE}]")))
)]
pub(super) struct Trial {
    /// Shell command that starts a peer
    #[arg(long, value_name = "COMMAND")]
    peer: String,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    servers: RealServers,
    /// Skip runs that are impossible with real servers or with this library, instead of failing
    #[arg(long)]
    skip_unsupported: bool,
    /// Print every run, including those that are as expected, with its failed calls and the whole
    /// chain of events of a violation
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    output: Output,
}

impl Trial {
    pub(super) fn run(self) -> Result<Exit> {
        let sources = self.files.sources()?;
        let peer = Peer::of(&self.peer).map_err(|why| miette!("{why}"))?;
        errln!("on trial: {}", peer.hello.name());
        let seeds = self.seeds.given();
        let means = (Some(&peer), self.jobs.given().unwrap_or(AT_ONCE));
        super::real::run(
            &sources,
            means,
            &self.servers.find()?,
            seeds,
            self.skip_unsupported,
            self.verbose,
            &self.output,
        )
    }
}
