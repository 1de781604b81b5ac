//! One server with one connection to it, without a wire between.

use lockstorm_sim::{
    config::Config,
    env::Env,
    event::{Action, ConnId, Event},
    replication::encode,
    server::Server,
};

const CONN: ConnId = ConnId(1);

pub(crate) struct Bench {
    env: Env,
    server: Server,
}

impl Bench {
    /// An empty server, whose PRNG has this seed.
    pub(crate) fn new(seed: u64) -> Bench {
        let mut env = Env::new(seed);
        let mut server = Server::new(Config::default(), &mut env);
        let (peer, local) = ("c:1".into(), "n:6379".into());
        server.step(&mut env, Event::Connected { conn: CONN, peer, local });
        Bench { env, server }
    }

    /// The bytes of the reply to a command of these words.
    pub(crate) fn call(&mut self, words: &[&[u8]]) -> Vec<u8> {
        self.env.outbox.clear();
        let mut bytes = Vec::new();
        encode(words, &mut bytes);
        self.server.step(&mut self.env, Event::Bytes { conn: CONN, bytes: bytes.into() });
        let sent = self.env.outbox.drain(..).filter_map(|action| match action {
            Action::Send { bytes, .. } => Some(bytes),
            _ => None,
        });
        sent.flat_map(Vec::from).collect()
    }

    /// Like [`Bench::call`], with blanks between the words.
    pub(crate) fn line(&mut self, line: &str) -> Vec<u8> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.call(&words)
    }
}
