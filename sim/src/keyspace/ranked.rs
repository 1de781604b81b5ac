//! Members in order of score, each findable by its rank: a weight-balanced tree in one vector.
//!
//! Every node knows the size of its subtree, which keeps the tree balanced and answers ranks alike, so there are no dice
//! and no bad luck: insert, remove, rank and access by rank are O(log n). The balance parameters (3, 2) are the pair that
//! Hirai and Yamamoto proved sound for insertion and deletion ("Balancing weight-balanced trees", 2011).

use std::{cmp::Ordering, ops::Range};

use crate::blob::Blob;

const NONE: u32 = u32::MAX;

/// No side may weigh more than this many times the other.
const DELTA: u64 = 3;
/// A heavy side whose inner child weighs this many times its outer child takes a double rotation.
const GAMMA: u64 = 2;

/// One of the two ends of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// Where the lowest scores are.
    Min,
    /// Where the highest scores are.
    Max,
}

/// Members with scores, ordered by score and then by the bytes of the member.
#[derive(Debug, Clone)]
pub struct Ranked {
    nodes: Vec<Node>,
    root: u32,
    /// The first unused node; the others follow by `left`.
    free: u32,
}

#[derive(Debug, Clone)]
struct Node {
    score: f64,
    member: Blob,
    left: u32,
    right: u32,
    size: u32,
}

impl Default for Ranked {
    fn default() -> Ranked {
        Ranked { nodes: Vec::new(), root: NONE, free: NONE }
    }
}

impl Ranked {
    /// How many members there are.
    pub fn len(&self) -> usize {
        self.size(self.root)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.root == NONE
    }

    /// Adds a member that is not there yet.
    pub fn insert(&mut self, score: f64, member: Blob) {
        let node = Node { score, member, left: NONE, right: NONE, size: 1 };
        let at = if self.free == NONE {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 members")
        } else {
            let at = self.free;
            self.free = std::mem::replace(&mut self.nodes[at as usize], node).left;
            at
        };
        self.root = self.insert_below(self.root, at);
    }

    /// Removes a member; returns whether it was there with that score.
    pub fn remove(&mut self, score: f64, member: &[u8]) -> bool {
        let before = self.len();
        self.root = self.remove_below(self.root, score, member);
        if self.is_empty() {
            *self = Ranked::default();
            return before > 0;
        }
        self.len() < before
    }

    /// Takes out the first member, or the last.
    pub fn pop(&mut self, from: Extreme) -> Option<(f64, Blob)> {
        if self.is_empty() {
            return None;
        }
        let (at, rest) = self.take_outermost(self.root, from);
        self.root = rest;
        let taken = self.give_back(at);
        if self.is_empty() {
            *self = Ranked::default();
        }
        Some(taken)
    }

    /// Empties a node that is no longer in the tree, for it to be used again.
    fn give_back(&mut self, at: u32) -> (f64, Blob) {
        let node = &mut self.nodes[at as usize];
        node.left = std::mem::replace(&mut self.free, at);
        (node.score, std::mem::take(&mut node.member))
    }

    /// The rank of a member: how many come before it.
    pub fn rank(&self, score: f64, member: &[u8]) -> Option<usize> {
        let rank = self.partition(|s, m| order(s, m, score, member) == Ordering::Less);
        let (found_score, found) = self.get(rank)?;
        (order(found_score, found, score, member) == Ordering::Equal).then_some(rank)
    }

    /// The member of a rank, with its score.
    pub fn get(&self, rank: usize) -> Option<(f64, &Blob)> {
        let (mut at, mut rank) = (self.root, rank);
        while at != NONE {
            let node = &self.nodes[at as usize];
            let before = self.size(node.left);
            match rank.cmp(&before) {
                Ordering::Less => at = node.left,
                Ordering::Equal => return Some((node.score, &node.member)),
                Ordering::Greater => (at, rank) = (node.right, rank - before - 1),
            }
        }
        None
    }

    /// How many members come before the first for which `is_before` is false. It must not turn true again after that.
    pub fn partition(&self, mut is_before: impl FnMut(f64, &Blob) -> bool) -> usize {
        let (mut at, mut before) = (self.root, 0);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if is_before(node.score, &node.member) {
                before += self.size(node.left) + 1;
                at = node.right;
            } else {
                at = node.left;
            }
        }
        before
    }

    /// The members of the ranks in `ranks`, in order, or from the last to the first.
    pub fn range(&self, ranks: Range<usize>, reversed: bool) -> Walk<'_> {
        let end = ranks.end.min(self.len());
        let left = end.saturating_sub(ranks.start);
        let mut walk = Walk { ranked: self, trail: Vec::new(), left, reversed };
        if left > 0 {
            walk.start_at(if reversed { end - 1 } else { ranks.start });
        }
        walk
    }

    fn size(&self, at: u32) -> usize {
        if at == NONE { 0 } else { self.nodes[at as usize].size as usize }
    }

    fn weight(&self, at: u32) -> u64 {
        self.size(at) as u64 + 1
    }

    fn insert_below(&mut self, at: u32, new: u32) -> u32 {
        if at == NONE {
            return new;
        }
        let (here, there) = (&self.nodes[at as usize], &self.nodes[new as usize]);
        if order(there.score, &there.member, here.score, &here.member) == Ordering::Less {
            self.nodes[at as usize].left = self.insert_below(here.left, new);
        } else {
            self.nodes[at as usize].right = self.insert_below(here.right, new);
        }
        self.balance(at)
    }

    fn remove_below(&mut self, at: u32, score: f64, member: &[u8]) -> u32 {
        if at == NONE {
            return NONE;
        }
        let node = &self.nodes[at as usize];
        let (left, right) = (node.left, node.right);
        match order(score, member, node.score, &node.member) {
            Ordering::Less => self.nodes[at as usize].left = self.remove_below(left, score, member),
            Ordering::Greater => self.nodes[at as usize].right = self.remove_below(right, score, member),
            Ordering::Equal => {
                // The member's memory goes now, not when the node is used again.
                drop(self.give_back(at));
                if left == NONE {
                    return right;
                }
                if right == NONE {
                    return left;
                }
                let (first, rest) = self.take_outermost(right, Extreme::Min);
                self.nodes[first as usize].left = left;
                self.nodes[first as usize].right = rest;
                return self.balance(first);
            }
        }
        self.balance(at)
    }

    /// Splits the first or the last node off a subtree: that node, and what is left.
    fn take_outermost(&mut self, at: u32, from: Extreme) -> (u32, u32) {
        let Node { left, right, .. } = self.nodes[at as usize];
        match from {
            Extreme::Min if left == NONE => return (at, right),
            Extreme::Max if right == NONE => return (at, left),
            _ => {}
        }
        let outer = if from == Extreme::Min { left } else { right };
        let (outermost, rest) = self.take_outermost(outer, from);
        let node = &mut self.nodes[at as usize];
        *(if from == Extreme::Min { &mut node.left } else { &mut node.right }) = rest;
        (outermost, self.balance(at))
    }

    /// Counts a node's subtree anew and rotates it if one side has grown too heavy; returns its new top.
    fn balance(&mut self, at: u32) -> u32 {
        let node = &self.nodes[at as usize];
        let (left, right) = (node.left, node.right);
        let (left_weight, right_weight) = (self.weight(left), self.weight(right));
        if right_weight > DELTA * left_weight {
            let heavy = &self.nodes[right as usize];
            if self.weight(heavy.left) >= GAMMA * self.weight(heavy.right) {
                self.nodes[at as usize].right = self.rotate_right(right);
            }
            return self.rotate_left(at);
        }
        if left_weight > DELTA * right_weight {
            let heavy = &self.nodes[left as usize];
            if self.weight(heavy.right) >= GAMMA * self.weight(heavy.left) {
                self.nodes[at as usize].left = self.rotate_left(left);
            }
            return self.rotate_right(at);
        }
        self.recount(at);
        at
    }

    fn rotate_left(&mut self, at: u32) -> u32 {
        let top = self.nodes[at as usize].right;
        self.nodes[at as usize].right = std::mem::replace(&mut self.nodes[top as usize].left, at);
        self.recount(at);
        self.recount(top);
        top
    }

    fn rotate_right(&mut self, at: u32) -> u32 {
        let top = self.nodes[at as usize].left;
        self.nodes[at as usize].left = std::mem::replace(&mut self.nodes[top as usize].right, at);
        self.recount(at);
        self.recount(top);
        top
    }

    fn recount(&mut self, at: u32) {
        let node = &self.nodes[at as usize];
        let size = self.size(node.left) + self.size(node.right) + 1;
        self.nodes[at as usize].size = size as u32;
    }
}

/// The order of two members. Scores are never NaN, and both zeros are equal.
fn order(score: f64, member: &[u8], other_score: f64, other: &[u8]) -> Ordering {
    score.partial_cmp(&other_score).expect("a score is a number").then_with(|| member.cmp(other))
}

/// A walk over members in order, either way.
pub struct Walk<'a> {
    ranked: &'a Ranked,
    /// The nodes still to visit whose subtrees on the near side are done, the next one last.
    trail: Vec<u32>,
    left: usize,
    reversed: bool,
}

impl Walk<'_> {
    /// The subtree that is walked before the node, and the one after it.
    fn sides(&self, at: u32) -> (u32, u32) {
        let node = &self.ranked.nodes[at as usize];
        if self.reversed { (node.right, node.left) } else { (node.left, node.right) }
    }

    fn start_at(&mut self, rank: usize) {
        let mut ahead = if self.reversed { self.ranked.len() - 1 - rank } else { rank };
        let mut at = self.ranked.root;
        while at != NONE {
            let (near, far) = self.sides(at);
            let before = self.ranked.size(near);
            match ahead.cmp(&before) {
                Ordering::Less => {
                    self.trail.push(at);
                    at = near;
                }
                Ordering::Equal => return self.trail.push(at),
                Ordering::Greater => (at, ahead) = (far, ahead - before - 1),
            }
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (f64, &'a Blob);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let at = self.trail.pop()?;
        let (_, mut below) = self.sides(at);
        while below != NONE {
            self.trail.push(below);
            (below, _) = self.sides(below);
        }
        let node = &self.ranked.nodes[at as usize];
        Some((node.score, &node.member))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What [`Ranked`] must equal: a sorted vector.
    #[derive(Default)]
    struct Naive(Vec<(f64, Blob)>);

    impl Naive {
        fn insert(&mut self, score: f64, member: Blob) {
            let at = self.0.partition_point(|(s, m)| order(*s, m, score, &member) == Ordering::Less);
            self.0.insert(at, (score, member));
        }
    }

    /// The height of a subtree, after checking its balance and its sizes.
    fn sound(ranked: &Ranked, at: u32) -> usize {
        if at == NONE {
            return 0;
        }
        let node = &ranked.nodes[at as usize];
        let (left, right) = (ranked.weight(node.left), ranked.weight(node.right));
        assert!(left <= DELTA * right && right <= DELTA * left, "unbalanced: {left} to {right}");
        assert_eq!(ranked.size(at) as u64, left + right - 1);
        1 + sound(ranked, node.left).max(sound(ranked, node.right))
    }

    proptest! {
        #[test]
        fn it_equals_a_sorted_vector_after_any_operations(
            steps in prop::collection::vec((any::<bool>(), 0u8..64, 0u8..4), 0..300),
            cut in (0usize..80, 0usize..80),
        ) {
            let (mut ranked, mut naive) = (Ranked::default(), Naive::default());
            for (adds, member, score) in steps {
                if let (60.., from) = (member, if adds { Extreme::Min } else { Extreme::Max }) {
                    let expected = match from {
                        Extreme::Min => (!naive.0.is_empty()).then(|| naive.0.remove(0)),
                        Extreme::Max => naive.0.pop(),
                    };
                    prop_assert_eq!(ranked.pop(from), expected);
                    sound(&ranked, ranked.root);
                    continue;
                }
                let member = Blob::copy(&[b'm', member]);
                let there = naive.0.iter().position(|(_, m)| *m == member);
                match there {
                    None if adds => {
                        // Few different scores, so that members decide; one of them is the other zero.
                        let score = [0.0, -0.0, 1.5, f64::INFINITY][usize::from(score)];
                        ranked.insert(score, member.clone());
                        naive.insert(score, member);
                    }
                    None => prop_assert!(!ranked.remove(0.0, &member)),
                    Some(at) => {
                        let (score, member) = naive.0.remove(at);
                        prop_assert_eq!(ranked.rank(score, &member), Some(at));
                        prop_assert!(ranked.remove(score, &member));
                    }
                }
                sound(&ranked, ranked.root);
                prop_assert_eq!(ranked.len(), naive.0.len());
            }
            let expected: Vec<(f64, &Blob)> = naive.0.iter().map(|(s, m)| (*s, m)).collect();
            for (rank, (score, member)) in expected.iter().enumerate() {
                prop_assert_eq!(ranked.get(rank), Some((*score, *member)));
                prop_assert_eq!(ranked.rank(*score, member), Some(rank));
            }
            prop_assert_eq!(ranked.get(expected.len()), None);
            prop_assert_eq!(
                ranked.partition(|score, _| score < 1.5),
                naive.0.iter().filter(|(score, _)| *score < 1.5).count()
            );
            let from = cut.0.min(expected.len());
            let part = &expected[from..cut.1.clamp(from, expected.len())];
            prop_assert_eq!(&ranked.range(cut.0..cut.1, false).collect::<Vec<_>>()[..], part);
            let mut backwards = part.to_vec();
            backwards.reverse();
            prop_assert_eq!(ranked.range(cut.0..cut.1, true).collect::<Vec<_>>(), backwards);
        }
    }

    // A weight-balanced tree of these parameters is at most log(4/3) n high: 10,000 members are below 33 levels.
    #[test]
    fn ascending_scores_keep_the_tree_low() {
        let mut ranked = Ranked::default();
        for n in 0..10_000 {
            ranked.insert(f64::from(n), Blob::from("m"));
        }
        assert!(sound(&ranked, ranked.root) < 33);
        for n in 0..9_990 {
            assert!(ranked.remove(f64::from(n), b"m"));
        }
        assert!(sound(&ranked, ranked.root) < 5);
    }
}
