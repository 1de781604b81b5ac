//! Node count of Redis's radix tree for the keys of a stream, as XINFO STREAM reports it.

use super::StreamId;

const KEY_LEN: usize = 16;

/// Counts the nodes of a radix tree with these keys. They must be sorted and distinct.
///
/// A fork is a node, the end of a key is a node, and a run of bytes without a fork is a node. All
/// keys have the same length, so that no key ends inside another.
pub(super) fn nodes(keys: &[StreamId]) -> usize {
    let keys: Vec<[u8; KEY_LEN]> = keys.iter().map(|key| key.to_bytes()).collect();
    if keys.is_empty() { 1 } else { below(&keys, 0) }
}

/// Counts the nodes below the first `depth` bytes, which the keys share. Recurses at most
/// [`KEY_LEN`] deep.
fn below(keys: &[[u8; KEY_LEN]], depth: usize) -> usize {
    let (first, last) = (keys[0], keys[keys.len() - 1]);
    let shared = first.iter().zip(&last).take_while(|(one, other)| one == other).count();
    let run = usize::from(shared > depth);
    if shared == KEY_LEN {
        return run + 1;
    }
    let branches = keys.chunk_by(|one, other| one[shared] == other[shared]);
    run + 1 + branches.map(|branch| below(branch, shared + 1)).sum::<usize>()
}

/// Size of a tree, estimated from its first keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    keys: usize,
    nodes: usize,
}

impl Tree {
    /// Number of keys examined, so that the cost does not grow with the tree.
    const SAMPLES: usize = 64;
    /// Bytes that `redis-server` assumes for a tree node: its header and thirty pointers.
    const NODE: usize = 4 + 30 * 8;

    /// Estimates the tree with `keys` keys, from the first of them.
    pub(super) fn of(keys: usize, first: impl Iterator<Item = StreamId>) -> Tree {
        let first: Vec<StreamId> = first.take(Tree::SAMPLES).collect();
        let nodes = nodes(&first);
        let nodes = if first.len() < keys { nodes * keys / first.len().max(1) } else { nodes };
        Tree { keys, nodes }
    }

    /// Splits the keys among `trees` trees; returns the sum of their sizes.
    pub(super) fn split(self, trees: usize) -> Tree {
        if self.keys == 0 {
            Tree { keys: 0, nodes: trees }
        } else {
            Tree { nodes: self.nodes + trees - 1, ..self }
        }
    }

    /// Returns the bytes of the tree.
    pub(super) fn bytes(self) -> usize {
        (self.keys * KEY_LEN).saturating_add(self.nodes.saturating_mul(Tree::NODE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_ends_and_runs_are_nodes() {
        let ids = |ids: &[(u64, u64)]| ids.iter().map(|&(ms, seq)| StreamId { ms, seq }).collect::<Vec<_>>();
        for (keys, expected) in [
            (ids(&[]), 1),
            (ids(&[(1, 1)]), 2),
            // A run, a fork, two ends.
            (ids(&[(1, 1), (1, 2)]), 4),
            // A run, a fork, two runs, two ends.
            (ids(&[(1, 1), (2, 1)]), 6),
            // No run before the fork.
            (ids(&[(1, 1), (u64::MAX, 1)]), 5),
        ] {
            assert_eq!(nodes(&keys), expected, "{keys:?}");
        }
    }
}
