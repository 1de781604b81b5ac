//! What a row is made of: a rig, what happens to it, and what must be seen, in milliseconds since
//! the row's zero.

/// A master `m`, its replicas `r1`, `r2`, .., and Sentinels `s1`, `s2`, ..; or a cluster of masters
/// `A`, `B`, .. with replicas `a`, `b`, .. of them. A `client` reaches them all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rig {
    /// Masters of a cluster; 0 if there is none.
    pub(crate) masters: usize,
    /// Further replicas of a cluster's masters: the replica, and its master.
    pub(crate) more: &'static [(&'static str, &'static str)],
    /// `cluster-node-timeout` (NT).
    pub(crate) node_timeout: u32,
    /// Replicas of the master `m`, or of each master of a cluster.
    pub(crate) replicas: usize,
    pub(crate) sentinels: usize,
    pub(crate) quorum: u32,
    /// `down-after-milliseconds` (D).
    pub(crate) down_after: u32,
    /// `failover-timeout` (FT).
    pub(crate) failover_timeout: u32,
    pub(crate) parallel_syncs: u32,
    /// Options of nodes: the node (all, if empty), the option, its value.
    pub(crate) options: &'static [(&'static str, &'static str, &'static str)],
    /// The row's zero is the start of the Sentinels, or the making of the cluster; otherwise they
    /// know each other and all nodes by then.
    pub(crate) starts_at_zero: bool,
}

/// Three nodes and three Sentinels.
pub(crate) const S3: Rig = Rig {
    masters: 0,
    more: &[],
    node_timeout: 0,
    replicas: 2,
    sentinels: 3,
    quorum: 2,
    down_after: 2_000,
    failover_timeout: 10_000,
    parallel_syncs: 2,
    options: &[],
    starts_at_zero: false,
};

/// The same, and the master takes writes only while a replica acknowledges (`min-replicas-to-write`
/// 1).
pub(crate) const S3_GUARDED: Rig = Rig { options: &[("m", "min-replicas-to-write", "1")], ..S3 };

/// Two nodes and two Sentinels.
pub(crate) const S2: Rig = Rig { replicas: 1, sentinels: 2, ..S3 };

/// A cluster of three masters, each with a replica.
pub(crate) const C6: Rig = Rig { masters: 3, node_timeout: 2_000, replicas: 1, sentinels: 0, ..S3 };

/// So many slots a cluster has.
const SLOTS: usize = 16_384;

impl Rig {
    pub(crate) fn nodes(&self) -> Vec<String> {
        if self.masters > 0 {
            let letters = |first: char| (first..).take(self.masters).map(String::from);
            let replicas = letters('a').filter(|_| self.replicas > 0);
            let more = self.more.iter().map(|(name, _)| (*name).to_owned());
            return letters('A').chain(replicas).chain(more).collect();
        }
        let replicas = (1..=self.replicas).map(|at| format!("r{at}"));
        [String::from("m")].into_iter().chain(replicas).collect()
    }

    /// The master of a node of a cluster; none of a master.
    pub(crate) fn master_of(&self, node: &str) -> Option<String> {
        let more = self.more.iter().find(|(name, _)| *name == node);
        let other = || node.starts_with(char::is_lowercase).then(|| node.to_uppercase());
        more.map(|(_, master)| (*master).to_owned()).or_else(other)
    }

    /// The first and the last slot of a master of a cluster.
    pub(crate) fn slots_of(&self, master: &str) -> Option<(usize, usize)> {
        let at = usize::from(*master.as_bytes().first()? - b'A');
        let first = |at: usize| (at * SLOTS).div_ceil(self.masters);
        Some((first(at), first(at + 1) - 1))
    }

    pub(crate) fn sentinels(&self) -> Vec<String> {
        (1..=self.sentinels).map(|at| format!("s{at}")).collect()
    }

    /// The file of a Sentinel, but for its port: where the master is, and what it tells others of
    /// itself.
    pub(crate) fn file(&self, announce: &str, master: &str) -> String {
        format!(
            "sentinel announce-ip {announce}\nsentinel announce-port 26379\nsentinel monitor main {master} 6379 {}\n\
             sentinel down-after-milliseconds main {}\nsentinel failover-timeout main {}\nsentinel parallel-syncs main {}\n",
            self.quorum, self.down_after, self.failover_timeout, self.parallel_syncs
        )
    }

    pub(crate) fn options_of<'a>(
        &'a self,
        node: &'a str,
    ) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
        let own = self.options.iter().filter(move |(of, ..)| *of == node || of.is_empty());
        own.map(|(_, name, value)| (*name, *value))
    }
}

/// Something that is done to a rig. Several hosts are separated by blanks; `leader` is the Sentinel
/// that led the failover, `master` the node that it promoted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    /// The process is killed: its sockets are reset.
    Kill(&'static str),
    /// It is started again.
    Start(&'static str),
    /// The process stands still (SIGSTOP).
    Freeze(&'static str),
    /// It goes on.
    Thaw(&'static str),
    /// Nothing passes between these hosts and those, in either direction; what is sent waits.
    Cut(&'static str, &'static str),
    /// It passes again.
    Heal(&'static str, &'static str),
    /// What these hosts send does not reach those.
    CutOneWay(&'static str, &'static str),
    /// It does again.
    HealOneWay(&'static str, &'static str),
    /// What these hosts send to those takes so many milliseconds more, to the end of the run.
    Slow(&'static str, &'static str, u64),
    /// The client gives each of these hosts a command, in which `{m}` is the address of `m`, and
    /// `<A>` the id of the node `A`. Of several with `; ` between them, on one connection, the
    /// reply to the last one counts. The reply to a PTTL is also seen as `expires`, by the host, at
    /// the time when the key will; and `disconnected`, by the host, that the connection has ended
    /// after the error UNBLOCKED.
    Run(&'static str, &'static str),
    /// The wall clock of a host steps by so many milliseconds.
    Step(&'static str, i64),
}

/// What the client does all the time, from a second before zero on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Watch {
    /// It writes numbers to one node, every 20 ms: `accepted`, `refused`, and in the end `lost`, by
    /// `writes`.
    Writes(&'static str),
    /// The same, and each write is followed by WAIT: `confirmed`, if a replica has it, and in the
    /// end `confirmed and lost`.
    Confirms(&'static str),
    /// It writes 2,000 numbers a second to one node, without waiting for replies: what
    /// [`Watch::Writes`] has, and in the end `doubled` and `refused and kept`.
    Floods(&'static str),
    /// It asks each Sentinel for the master, every 20 ms: `answers`, by `asks s1`, with every new
    /// answer; and `INFO address` and `INFO status`, by the Sentinel, with every new value of
    /// `master0` in its INFO.
    Asks,
    /// It stays connected to a node, also as a subscriber: `closed`, by `client` or `subscriber`,
    /// about the node.
    Holds(&'static str),
    /// It reads CLIENT LIST of a node, every 20 ms: `linked`, by a Sentinel, with each new
    /// connection that replaces one to the node (`r1 cmd`, `r1 pubsub`).
    Links(&'static str),
    /// It asks each node of a cluster what it thinks of itself and of all others, every 40 ms, and
    /// notes what has changed, by the node: `fail?`, `fail` and `well` about another one, `master`,
    /// `replica` (`a of A`) and `epoch` (`A 7`; `has epoch`, also of one that it sees for the first
    /// time), `state` (`ok` or `fail`), and `ping` for each that it has sent.
    Views,
    /// It reads MONITOR of a node: each command that a Sentinel sends, by that Sentinel, about the
    /// node.
    Monitors(&'static str),
}

/// Something that may be seen: an event of a Sentinel, or of the client's watches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    pub(crate) event: &'static str,
    /// A host; `leader` or `observers`; any if empty.
    pub(crate) by: &'static str,
    /// A part of the message. In rows that watch [`Watch::Views`] it may have `{first A B}`, that
    /// node of the two whose id is the smaller one, or `{last A B}`, the other one.
    pub(crate) about: &'static str,
    /// It does not count before.
    pub(crate) from: i64,
}

/// A sight of this name, after zero.
pub(crate) const fn see(event: &'static str) -> Sight {
    Sight { event, by: "", about: "", from: 0 }
}

impl Sight {
    pub(crate) const fn by(self, by: &'static str) -> Sight {
        Sight { by, ..self }
    }
    pub(crate) const fn about(self, about: &'static str) -> Sight {
        Sight { about, ..self }
    }
    pub(crate) const fn from(self, from: i64) -> Sight {
        Sight { from, ..self }
    }
}

/// A moment of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    At(i64),
    First(Sight),
    Last(Sight),
}

/// What must be seen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// So long passes from one moment to another: the least and the most.
    Takes(&'static str, Moment, Moment, i64, i64),
    /// It is never seen.
    Never(Sight),
    /// It is seen so often: the least and the most.
    Count(Sight, usize, usize),
    /// One host emits these in this order; others may be between them.
    InOrder(&'static str, &'static [&'static str]),
    /// Each two in a row by one host are so far apart: the least and the most.
    Every(&'static str, Sight, i64, i64),
    /// The replies to a command, by host, with `*` for anything.
    Answers(&'static str, &'static str, &'static str),
    /// The last words of what is last seen of the two are not the same.
    Differ(Sight, Sight),
}

/// One behaviour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) about: &'static str,
    pub(crate) rig: Rig,
    pub(crate) watches: &'static [Watch],
    pub(crate) acts: &'static [(i64, Act)],
    /// When the run is over.
    pub(crate) lasts: i64,
    pub(crate) expect: &'static [Expect],
    /// Seeds in an ordinary run on simulated hosts.
    pub(crate) seeds: u64,
    /// Where reality is otherwise than the reference has it, or the simulator.
    pub(crate) note: &'static str,
    /// What the simulator is known to be out of tolerance with.
    pub(crate) differs: &'static [Differs],
}

/// A simulated median that is further from the real one than
/// [`tolerance::of`](crate::tolerance::of) allows: of which expectation (its label), by how much at
/// most, and why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Differs(pub(crate) &'static str, pub(crate) i64, pub(crate) &'static str);

impl Expect {
    /// What it measures, as the table has it: a time (in milliseconds), or how often. Nothing if it
    /// measures nothing.
    pub(crate) fn label(&self) -> Option<String> {
        match self {
            Expect::Takes(what, ..) | Expect::Every(what, ..) => Some(format!("{what}, ms")),
            Expect::Count(sight, ..) => {
                let words = [sight.by, sight.about].into_iter().filter(|word| !word.is_empty());
                let of: String = words.map(|word| format!(" {word}")).collect();
                let from = if sight.from > 0 { format!(" from {} ms on", sight.from) } else { String::new() };
                Some(format!("`{}`{of}{from}, times", sight.event))
            }
            Expect::Never(_) | Expect::InOrder(..) | Expect::Answers(..) | Expect::Differ(..) => None,
        }
    }

    /// The least and the most that a row demands of what is measured.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        match *self {
            Expect::Takes(.., least, most) | Expect::Every(.., least, most) => Some((least, most)),
            Expect::Count(_, least, most) => Some((least as i64, most as i64)),
            Expect::Never(_) | Expect::InOrder(..) | Expect::Answers(..) | Expect::Differ(..) => None,
        }
    }
}

/// What most rows have.
pub(crate) const ROW: Row = Row {
    id: "",
    about: "",
    rig: S3,
    watches: &[],
    acts: &[],
    lasts: 0,
    expect: &[],
    seeds: 4,
    note: "",
    differs: &[],
};

/// What most rows of clusters have.
pub(crate) const CLUSTER_ROW: Row = Row { rig: C6, seeds: 1, ..ROW };
