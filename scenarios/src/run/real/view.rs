//! A node's view of its cluster, as CLUSTER NODES and CLUSTER INFO show it.

use redis::aio::MultiplexedConnection;

use crate::judge::history::Serving;

/// A node's view of its cluster.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The answer to CLUSTER NODES.
    nodes: String,
    /// True if the node considers the cluster complete.
    is_ok: bool,
}

impl View {
    /// Asks a node for its view.
    pub(super) async fn of(connection: &mut MultiplexedConnection) -> Option<View> {
        let mut both = redis::pipe();
        both.cmd("CLUSTER").arg("NODES").cmd("CLUSTER").arg("INFO");
        let (nodes, info): (String, String) = both.query_async(connection).await.ok()?;
        Some(View { nodes, is_ok: info.lines().any(|line| line.trim_end() == "cluster_state:ok") })
    }

    /// Returns the words of the node's line about itself.
    fn own(&self) -> Vec<&str> {
        let mut lines = self.nodes.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let is_own = |words: &Vec<&str>| {
            words.get(2).is_some_and(|flags| flags.split(',').any(|flag| flag == "myself"))
        };
        lines.find(is_own).unwrap_or_default()
    }

    /// Returns how the node serves a slot.
    pub(super) fn serving(&self, slot: u16) -> Serving {
        let own = self.own();
        let slots = own.get(8..).unwrap_or_default();
        let is_marked = |mark: &str| slots.iter().any(|word| word.starts_with(&format!("[{slot}-{mark}-")));
        let has = |word: &&str| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let ends = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
            ends.is_some_and(|(first, last)| (first..=last).contains(&slot))
        };
        match slots.iter().any(has) {
            true if !self.is_ok => Serving::Closed,
            true if is_marked(">") => Serving::Migrating,
            true => Serving::Whole,
            false if self.is_ok && self.master().is_none() && is_marked("<") => Serving::Importing,
            false => Serving::Elsewhere,
        }
    }

    /// Returns the ID of the master that the node replicates.
    pub(super) fn master(&self) -> Option<&str> {
        self.own().get(3).copied().filter(|id| *id != "-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines are those of Redis 6.2, the slots of another node besides.
    #[test]
    fn a_node_says_how_it_serves_a_slot() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let view = |nodes: String, is_ok| View { nodes, is_ok };
        let source = || {
            format!(
                "{a} 127.1.0.1:7001@7101 master - 0 1796003907702 1 connected 0-8191\n\
                 {b} 127.1.0.2:7002@7102 myself,master - 0 1796003906000 2 connected 8192-16383 [12182->-{a}]\n"
            )
        };
        let serving = [8191, 8192, 12182, 12183].map(|slot| view(source(), true).serving(slot));
        assert_eq!(serving, [Serving::Elsewhere, Serving::Whole, Serving::Migrating, Serving::Whole]);
        assert_eq!(view(source(), false).serving(12182), Serving::Closed);
        assert_eq!(view(source(), false).serving(1), Serving::Elsewhere);
        assert_eq!(view(source(), true).master(), None);
        let target = || {
            format!(
                "{a} 127.1.0.1:7001@7101 myself,master - 0 1796003906000 1 connected 0-8191 [12182-<-{b}]\n"
            )
        };
        assert_eq!(view(target(), true).serving(12182), Serving::Importing);
        assert_eq!(view(target(), false).serving(12182), Serving::Elsewhere);
        assert_eq!(view(target(), true).serving(7), Serving::Whole);
        let replica = format!("{a} 127.1.0.3:7003@7103 myself,slave {b} 0 0 2 connected\n");
        assert_eq!(view(replica.clone(), true).serving(7), Serving::Elsewhere);
        assert_eq!(view(replica, true).master(), Some(&*b));
        assert_eq!(view(String::new(), true).serving(7), Serving::Elsewhere);
    }
}
