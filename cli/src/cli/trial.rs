//! `lockstorm trial`: scenarios with another lock library in the place of the clients.

use clap::Args;
use miette::{Result, miette};

use super::{
    Exit,
    options::{Files, Jobs, Seeds},
    out::errln,
    results::Output,
};
use lockstorm::run::peer::Peer;

/// How many runs take place at a time if nothing else is asked for: each starts a process for every
/// client, which is quick to answer only on a processor that has time for it.
pub(super) const AT_ONCE: usize = 4;

/// What `--help` says beside the options.
const PROTOCOL: &str = "\
A peer reads requests from its standard input and answers on its standard output, one JSON object a line; what it writes to its standard \
error is shown if it ends too soon. It ends when its input does. It begins with

  {\"type\":\"hello\",\"protocol\":1,\"library\":\"redis-py\",\"version\":\"6.4\",
   \"key\":\"{}\",\"can\":[\"wait\",\"extend\"]}

where `key` is what the library calls a lock's key, and `can` names what of wait, extend, watchdog, quorum and token it has. Then

  it is asked                                                        it answers
  {\"id\":1,\"type\":\"init\",\"host\":..,\"locks\":[{\"lock\":\"lock\",
   \"name\":\"lock\",\"nodes\":[\"127.0.0.1:40001\"]}],
   \"watchdog_ms\":30000,\"timeout_ms\":null}                            {\"id\":1,\"type\":\"ready\"}
  {\"id\":2,\"type\":\"acquire\",\"lock\":\"lock\",\"wait_ms\":0,             {\"id\":2,\"type\":\"granted\"} or
   \"lease_ms\":1000}                                                 {\"id\":2,\"type\":\"refused\"}
  {\"id\":3,\"type\":\"extend\",\"hold\":2,\"lease_ms\":1000}                {\"id\":3,\"type\":\"extended\"}
  {\"id\":4,\"type\":\"release\",\"hold\":2}                               {\"id\":4,\"type\":\"released\"}

and to any of them {\"id\":2,\"type\":\"error\",\"text\":\"..\",\"definite\":false}. The book explains every field, and what a peer says unasked.

Exit status: 0 as expected, 1 not as expected, 2 undecided, 64 wrong usage or a bad file.";

/// Put another lock library on trial: a peer, a process of any language, is asked for its locks in
/// the place of each client of the scenarios, on private real `redis-server` processes and in real
/// time
///
/// A crash of a client is SIGKILL of its peer, a pause is SIGSTOP; its connections go through a
/// proxy, which cuts, delays and loses.
#[derive(Debug, Args)]
// Nothing that happens in real time happens again without a fault, so that there is nothing to
// compare.
#[command(after_long_help = PROTOCOL, mut_arg("why", |why| why.hide(true)))]
pub(super) struct Trial {
    /// The command that starts a peer, as a shell reads it
    #[arg(long, value_name = "COMMAND")]
    peer: String,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    seeds: Seeds,
    #[command(flatten)]
    jobs: Jobs,
    /// Leave out what cannot be done to real servers or what the library cannot do, instead of
    /// refusing to run
    #[arg(long)]
    skip_unsupported: bool,
    /// Say of every run what came out and which calls failed, not only of those that are not as
    /// expected, and show the chain of events of a violation whole
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
        super::real::run(&sources, means, seeds, self.skip_unsupported, self.verbose, &self.output)
    }
}
