//! The parts of a row: a rig, the acts on it, and the expected sights, in milliseconds since the
//! row's zero.

/// A master `m`, its replicas `r1`, `r2`, .., and Sentinels `s1`, `s2`, ..; or a cluster of masters
/// `A`, `B`, .. and their replicas `a`, `b`, .. A `client` reaches them all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rig {
    /// Masters of a cluster; 0 without a cluster.
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
    /// True if the row's zero is the start of the Sentinels or of the making of the cluster.
    /// Otherwise they know each other and all nodes by then.
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

/// [`S3`] whose master takes writes only while a replica acknowledges (`min-replicas-to-write` 1).
pub(crate) const S3_GUARDED: Rig = Rig { options: &[("m", "min-replicas-to-write", "1")], ..S3 };

/// Two nodes and two Sentinels.
pub(crate) const S2: Rig = Rig { replicas: 1, sentinels: 2, ..S3 };

/// A cluster of three masters, each with a replica.
pub(crate) const C6: Rig = Rig { masters: 3, node_timeout: 2_000, replicas: 1, sentinels: 0, ..S3 };

/// The slots of a cluster.
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

    /// The master of a cluster's replica; `None` for a master.
    pub(crate) fn master_of(&self, node: &str) -> Option<String> {
        let more = self.more.iter().find(|(name, _)| *name == node);
        let other = || node.starts_with(char::is_lowercase).then(|| node.to_uppercase());
        more.map(|(_, master)| (*master).to_owned()).or_else(other)
    }

    /// The first and last slot of a cluster's master.
    pub(crate) fn slots_of(&self, master: &str) -> Option<(usize, usize)> {
        let at = usize::from(*master.as_bytes().first()? - b'A');
        let first = |at: usize| (at * SLOTS).div_ceil(self.masters);
        Some((first(at), first(at + 1) - 1))
    }

    pub(crate) fn sentinels(&self) -> Vec<String> {
        (1..=self.sentinels).map(|at| format!("s{at}")).collect()
    }

    /// The configuration of a Sentinel without its port: the master's address, and the address that
    /// it announces.
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

/// An act on a rig. Blanks separate several hosts; `leader` is the Sentinel that led the failover,
/// `master` the node that it promoted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    /// Kills the process: its sockets are reset.
    Kill(&'static str),
    /// Starts the process again.
    Start(&'static str),
    /// Pauses the process (SIGSTOP).
    Freeze(&'static str),
    /// Continues the process.
    Thaw(&'static str),
    /// Cuts both directions between the first and the second hosts; sent bytes wait.
    Cut(&'static str, &'static str),
    /// Heals both directions.
    Heal(&'static str, &'static str),
    /// Cuts the direction from the first to the second hosts.
    CutOneWay(&'static str, &'static str),
    /// Heals that direction.
    HealOneWay(&'static str, &'static str),
    /// Delays everything that the first hosts send to the second by this many milliseconds, to the
    /// end of the run.
    Slow(&'static str, &'static str, u64),
    /// The client sends a command to each of these hosts; in it `{m}` is the address of `m`, and
    /// `<A>` the ID of node `A`. With several commands separated by `; `, on one connection, the
    /// last reply counts. A reply to a PTTL is also seen as `expires`, by the host, at the time
    /// when the key expires. `disconnected`, by the host, is seen if the connection ends after the
    /// error UNBLOCKED.
    Run(&'static str, &'static str),
    /// Steps the wall clock of a host by this many milliseconds.
    Step(&'static str, i64),
}

/// A continuous action of the client, from one second before zero.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Watch {
    /// Writes numbers to one node, every 20 ms: `accepted`, `refused`, and at the end `lost`, by
    /// `writes`.
    Writes(&'static str),
    /// Like [`Watch::Writes`], with WAIT after each write: `confirmed` if a replica has it, and at
    /// the end `confirmed and lost`.
    Confirms(&'static str),
    /// Writes 2,000 numbers a second to one node without waiting for replies: the sights of
    /// [`Watch::Writes`], and at the end `doubled` and `refused and kept`.
    Floods(&'static str),
    /// Asks each Sentinel for the master, every 20 ms: `answers`, by `asks s1`, with every new
    /// answer; and `INFO address` and `INFO status`, by the Sentinel, with every new value of
    /// `master0` in its INFO.
    Asks,
    /// Stays connected to a node, also as a subscriber: `closed`, by `client` or `subscriber`,
    /// about the node.
    Holds(&'static str),
    /// Reads CLIENT LIST of a node, every 20 ms: `linked`, by a Sentinel, with each new connection
    /// that replaces one to the node (`r1 cmd`, `r1 pubsub`).
    Links(&'static str),
    /// Reads each cluster node's view of itself and of all others, every 40 ms, and logs the
    /// changes, by the node: `fail?`, `fail` and `well` about another node, `master`, `replica` (`a
    /// of A`) and `epoch` (`A 7`; `has epoch`, also of a node seen for the first time), `state`
    /// (`ok` or `fail`), and `ping` for each ping that it sent.
    Views,
    /// Reads MONITOR of a node: each command that a Sentinel sends, by that Sentinel, about the
    /// node.
    Monitors(&'static str),
}

/// A pattern for observations: an event of a Sentinel, or of the client's watches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    pub(crate) event: &'static str,
    /// A host; `leader` or `observers`; any if empty.
    pub(crate) by: &'static str,
    /// A part of the message. In rows that watch [`Watch::Views`] it may contain `{first A B}`, the
    /// node of the two with the smaller ID, or `{last A B}`, the other one.
    pub(crate) about: &'static str,
    /// Earlier observations do not count.
    pub(crate) from: i64,
}

/// A sight of this event, after zero.
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

#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    At(i64),
    First(Sight),
    Last(Sight),
}

/// An expectation about the observations of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// The time from one moment to another, at least and at most.
    Takes(&'static str, Moment, Moment, i64, i64),
    /// No observation matches.
    Never(Sight),
    /// The number of observations, at least and at most.
    Count(Sight, usize, usize),
    /// One host emits these in this order, perhaps with others between them.
    InOrder(&'static str, &'static [&'static str]),
    /// The time between consecutive observations of one host, at least and at most.
    Every(&'static str, Sight, i64, i64),
    /// The replies to a command, by host, with `*` for any text.
    Answers(&'static str, &'static str, &'static str),
    /// The last observations of the two sights end in different words.
    Differ(Sight, Sight),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) about: &'static str,
    pub(crate) rig: Rig,
    pub(crate) watches: &'static [Watch],
    pub(crate) acts: &'static [(i64, Act)],
    /// The end of the run, in milliseconds since zero.
    pub(crate) lasts: i64,
    pub(crate) expect: &'static [Expect],
    /// Seeds in an ordinary run on simulated hosts.
    pub(crate) seeds: u64,
    /// Differences between real processes and the reference or the simulator.
    pub(crate) note: &'static str,
    /// Known differences of the simulator beyond the tolerance.
    pub(crate) differs: &'static [Differs],
}

/// A simulated median that is further from the real one than
/// [`tolerance::of`](crate::tolerance::of) allows: the label of the expectation, the largest
/// difference, and the reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Differs(pub(crate) &'static str, pub(crate) i64, pub(crate) &'static str);

impl Expect {
    /// The name of its measurement in the table: a time in milliseconds, or a number of times.
    /// `None` if it measures nothing.
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

    /// The least and the most value that a row demands of the measurement.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        match *self {
            Expect::Takes(.., least, most) | Expect::Every(.., least, most) => Some((least, most)),
            Expect::Count(_, least, most) => Some((least as i64, most as i64)),
            Expect::Never(_) | Expect::InOrder(..) | Expect::Answers(..) | Expect::Differ(..) => None,
        }
    }
}

/// The defaults of most rows.
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

/// The defaults of most rows of clusters.
pub(crate) const CLUSTER_ROW: Row = Row { rig: C6, seeds: 1, ..ROW };
