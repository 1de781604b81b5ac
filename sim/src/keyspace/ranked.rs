//! Members in order of score: a B-tree in which every tree node counts the members below each of
//! its children, so that it finds a member by its rank.
//!
//! Insert, remove, rank and access by rank are O(log n) in the worst case, without a PRNG. A node
//! holds many members and keeps the scores side by side: a search costs the number of memory
//! locations it visits, and it visits few. The tree is the one of Bayer and McCreight
//! ("Organization and maintenance of large ordered indices", 1972). It keeps counts like the binary
//! tree of Cormen et al. ("Introduction to Algorithms", chapter 14).

use std::{cmp::Ordering, mem, ops::Range};

use crate::blob::Blob;

/// Maximum number of members in a tree node.
const NODE_LEN_MAX: usize = 31;
/// Capacity of a node: it holds one member more than the maximum just before it splits.
const NODE_ROOM: usize = NODE_LEN_MAX + 1;
/// Minimum, except in the root. Two such nodes and the member between them fit into one node.
const NODE_LEN_MIN: usize = NODE_LEN_MAX / 2;

/// One of the two ends of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The end with the lowest scores.
    Min,
    /// The end with the highest scores.
    Max,
}

/// Members with scores, ordered by score and then by the bytes of the member. Scores are never NaN;
/// 0.0 and -0.0 are equal.
#[derive(Debug, Clone, Default)]
pub struct Ranked {
    root: Node,
    len: usize,
}

#[derive(Debug, Clone, Default)]
struct Node {
    scores: Vec<f64>,
    members: Vec<Blob>,
    /// Children before, between and after the members. Empty in a leaf.
    children: Vec<Child>,
}

#[derive(Debug, Clone)]
struct Child {
    /// Number of members in the node and below it.
    len: usize,
    node: Box<Node>,
}

/// Result of a split, for the parent: the middle member, and a node with the members after it.
struct Split {
    score: f64,
    member: Blob,
    behind: Child,
}

impl Ranked {
    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no member exists.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a member. It must not exist yet.
    pub fn insert(&mut self, score: f64, member: Blob) {
        self.len += 1;
        if let Some(split) = self.root.insert(score, member) {
            let grown = Child { len: self.len, node: Box::new(mem::take(&mut self.root)) };
            self.root.children.push(grown);
            self.root.put(0, split);
        }
    }

    /// Removes a member. Returns `None` if it does not exist with that score.
    pub fn remove(&mut self, score: f64, member: &[u8]) -> Option<Blob> {
        let removed = self.root.remove(score, member)?;
        self.shrink();
        Some(removed)
    }

    /// Removes the member with the lowest or the highest score. Returns `None` if no member exists.
    pub fn pop(&mut self, from: Extreme) -> Option<(f64, Blob)> {
        if self.is_empty() {
            return None;
        }
        let taken = self.root.pop(from);
        self.shrink();
        Some(taken)
    }

    /// Counts one member less. Replaces a root without members by its only child.
    fn shrink(&mut self) {
        self.len -= 1;
        if self.is_empty() {
            *self = Ranked::default();
        } else if self.root.scores.is_empty() {
            let only = self.root.children.pop().expect("a root without a member has one child");
            self.root = *only.node;
        }
    }

    /// Returns the number of members before a member. `None` if it does not exist with that score.
    pub fn rank(&self, score: f64, member: &[u8]) -> Option<usize> {
        let (mut node, mut before) = (&self.root, 0);
        loop {
            match node.find(score, member) {
                Ok(at) => return Some(before + at + node.below(at + 1)),
                Err(at) => {
                    before += at + node.below(at);
                    node = &node.children.get(at)?.node;
                }
            }
        }
    }

    /// Returns the member at a rank, with its score. `None` from rank `len` on.
    pub fn get(&self, rank: usize) -> Option<(f64, &Blob)> {
        if rank >= self.len {
            return None;
        }
        let (mut node, mut ahead) = (&self.root, rank);
        loop {
            match node.at(ahead) {
                (at, None) => return Some((node.scores[at], &node.members[at])),
                (at, Some(rest)) => (node, ahead) = (&node.children[at].node, rest),
            }
        }
    }

    /// Returns the number of members before the first one for which `is_before` is false.
    /// `is_before` must stay false for all later members.
    pub fn partition(&self, mut is_before: impl FnMut(f64, &Blob) -> bool) -> usize {
        let (mut node, mut before) = (&self.root, 0);
        loop {
            let mut at = 0..node.scores.len();
            while !at.is_empty() {
                let middle = at.start + at.len() / 2;
                if is_before(node.scores[middle], &node.members[middle]) {
                    at.start = middle + 1;
                } else {
                    at.end = middle;
                }
            }
            before += at.start + node.below(at.start);
            match node.children.get(at.start) {
                Some(child) => node = &child.node,
                None => return before,
            }
        }
    }

    /// Walks over the members with a rank in `ranks`, first to last, or last to first if
    /// `reversed`.
    pub fn range(&self, ranks: Range<usize>, reversed: bool) -> Walk<'_> {
        let end = ranks.end.min(self.len());
        let left = end.saturating_sub(ranks.start);
        let mut walk = Walk { trail: Vec::new(), left, reversed };
        if left > 0 {
            walk.start_at(&self.root, if reversed { end - 1 } else { ranks.start });
        }
        walk
    }
}

impl Child {
    fn new(node: Node) -> Child {
        Child { len: node.scores.len() + node.below(node.children.len()), node: Box::new(node) }
    }
}

impl Node {
    /// Returns the member's index in this node, or else the index of the child it belongs below.
    fn find(&self, score: f64, member: &[u8]) -> Result<usize, usize> {
        let first = self.scores.partition_point(|&other| other < score);
        let ties = self.scores[first..].partition_point(|&other| other == score);
        self.members[first..first + ties]
            .binary_search_by(|other| (**other).cmp(member))
            .map(|at| first + at)
            .map_err(|at| first + at)
    }

    /// Number of members below the first `children` children.
    fn below(&self, children: usize) -> usize {
        self.children.iter().take(children).map(|child| child.len).sum()
    }

    /// Returns the index of the member with this rank in the subtree. If that member is below a
    /// child, returns the child's index and the rank within the child.
    fn at(&self, rank: usize) -> (usize, Option<usize>) {
        let mut ahead = rank;
        for (at, child) in self.children.iter().enumerate() {
            match ahead.cmp(&child.len) {
                Ordering::Less => return (at, Some(ahead)),
                Ordering::Equal => return (at, None),
                Ordering::Greater => ahead -= child.len + 1,
            }
        }
        (ahead, None)
    }

    fn insert(&mut self, score: f64, member: Blob) -> Option<Split> {
        let (Ok(at) | Err(at)) = self.find(score, &member);
        match self.children.get_mut(at) {
            Some(child) => {
                child.len += 1;
                if let Some(split) = child.node.insert(score, member) {
                    self.put(at, split);
                }
            }
            None => {
                self.scores.insert(at, score);
                self.members.insert(at, member);
            }
        }
        self.split()
    }

    /// Inserts the result of splitting the child at `at`.
    fn put(&mut self, at: usize, split: Split) {
        let Split { score, member, behind } = split;
        self.children[at].len -= behind.len + 1;
        self.scores.insert(at, score);
        self.members.insert(at, member);
        self.children.insert(at + 1, behind);
    }

    /// Splits off the upper half if the node holds more than [`NODE_LEN_MAX`] members.
    fn split(&mut self) -> Option<Split> {
        if self.scores.len() <= NODE_LEN_MAX {
            return None;
        }
        let middle = self.scores.len() / 2;
        let mut behind = Node {
            scores: part(&mut self.scores, middle + 1, NODE_ROOM),
            members: part(&mut self.members, middle + 1, NODE_ROOM),
            children: Vec::new(),
        };
        if !self.children.is_empty() {
            behind.children = part(&mut self.children, middle + 1, NODE_ROOM + 1);
        }
        let (score, member) = (self.scores.pop()?, self.members.pop()?);
        // After a merge in `mend`, the node may have had the capacity of two.
        self.scores.shrink_to(NODE_ROOM);
        self.members.shrink_to(NODE_ROOM);
        self.children.shrink_to(NODE_ROOM + 1);
        Some(Split { score, member, behind: Child::new(behind) })
    }

    fn remove(&mut self, score: f64, member: &[u8]) -> Option<Blob> {
        match self.find(score, member) {
            Ok(at) => Some(self.take(at)),
            Err(at) => {
                let child = self.children.get_mut(at)?;
                let removed = child.node.remove(score, member)?;
                child.len -= 1;
                self.mend(at);
                Some(removed)
            }
        }
    }

    /// Removes the member at `at`. In an inner node, its predecessor replaces it.
    fn take(&mut self, at: usize) -> Blob {
        let Some(child) = self.children.get_mut(at) else {
            self.scores.remove(at);
            return self.members.remove(at);
        };
        child.len -= 1;
        let (score, member) = child.node.pop(Extreme::Max);
        self.scores[at] = score;
        let taken = mem::replace(&mut self.members[at], member);
        self.mend(at);
        taken
    }

    fn pop(&mut self, from: Extreme) -> (f64, Blob) {
        let ends = |len: usize| if from == Extreme::Min { 0 } else { len - 1 };
        if self.children.is_empty() {
            let at = ends(self.scores.len());
            return (self.scores.remove(at), self.members.remove(at));
        }
        let at = ends(self.children.len());
        self.children[at].len -= 1;
        let taken = self.children[at].node.pop(from);
        self.mend(at);
        taken
    }

    /// Merges the child at `at` with a sibling if it has too few members. Splits the merged node in
    /// the middle if it has too many.
    fn mend(&mut self, at: usize) {
        if self.children[at].node.scores.len() >= NODE_LEN_MIN {
            return;
        }
        let at = at.saturating_sub(1);
        let Child { len, node: mut behind } = self.children.remove(at + 1);
        let (score, member) = (self.scores.remove(at), self.members.remove(at));
        let child = &mut self.children[at];
        child.len += 1 + len;
        child.node.scores.push(score);
        child.node.scores.append(&mut behind.scores);
        child.node.members.push(member);
        child.node.members.append(&mut behind.members);
        child.node.children.append(&mut behind.children);
        if let Some(split) = child.node.split() {
            self.put(at, split);
        }
    }
}

/// Splits off the elements from `at` on, into a vector with capacity `room`.
fn part<T>(all: &mut Vec<T>, at: usize, room: usize) -> Vec<T> {
    let mut parted = Vec::with_capacity(room);
    parted.extend(all.drain(at..));
    parted
}

/// Iterator over members in order, in either direction.
pub struct Walk<'a> {
    /// Path of nodes, innermost last. Each has the number of its members before the walk's next
    /// position.
    trail: Vec<(&'a Node, usize)>,
    left: usize,
    reversed: bool,
}

impl<'a> Walk<'a> {
    fn start_at(&mut self, root: &'a Node, rank: usize) {
        let (mut node, mut ahead) = (root, rank);
        loop {
            match node.at(ahead) {
                (at, None) => return self.trail.push((node, at + usize::from(self.reversed))),
                (at, Some(rest)) => {
                    self.trail.push((node, at));
                    (node, ahead) = (&node.children[at].node, rest);
                }
            }
        }
    }

    /// Descends below the child at `at`, if it exists: to its first leaf, or to its last if
    /// `reversed`.
    fn descend(&mut self, node: &'a Node, mut at: usize) {
        let mut above = node;
        while let Some(child) = above.children.get(at) {
            let node = &*child.node;
            at = if self.reversed { node.scores.len() } else { 0 };
            self.trail.push((node, at));
            above = node;
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
        loop {
            let (node, before) = self.trail.last_mut()?;
            let node: &Node = node;
            let next = if self.reversed { before.checked_sub(1) } else { Some(*before) };
            let Some(at) = next.filter(|&at| at < node.scores.len()) else {
                self.trail.pop();
                continue;
            };
            *before = if self.reversed { at } else { at + 1 };
            let child = *before;
            self.descend(node, child);
            return Some((node.scores[at], &node.members[at]));
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(one: &(f64, Blob), other: &(f64, Blob)) -> Ordering {
        one.0.partial_cmp(&other.0).expect("a score is a number").then_with(|| one.1.cmp(&other.1))
    }

    /// Returns the height below a node, after checking that it is the same for all children, and
    /// checks the sizes of all nodes.
    fn sound(node: &Node, is_root: bool) -> usize {
        let len = node.scores.len();
        assert_eq!(node.members.len(), len);
        assert!(len <= NODE_LEN_MAX && (is_root || len >= NODE_LEN_MIN), "{len} members");
        let rooms = [node.scores.capacity(), node.members.capacity(), node.children.capacity()];
        // A vector that grows by one element gets room for twice as many.
        assert!(rooms.iter().all(|&room| room <= 2 * NODE_ROOM), "room for {rooms:?}");
        let Some(first) = node.children.first() else { return 1 };
        assert_eq!(node.children.len(), len + 1);
        let height = sound(&first.node, false);
        for child in &node.children {
            assert_eq!(sound(&child.node, false), height);
            assert_eq!(child.len, Child::new((*child.node).clone()).len);
        }
        height + 1
    }

    /// Few different scores, so that the members decide the order; one score is -0.0.
    const SCORES: [f64; 4] = [0.0, -0.0, 1.5, f64::INFINITY];

    /// An operation on both: adds a member, or removes it if it exists; or pops one.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Turn(u16, usize),
        Pop(Extreme),
    }

    fn steps(members: u16) -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..members, 0..SCORES.len()).prop_map(|(member, score)| Step::Turn(member, score)),
            1 => prop_oneof![Just(Step::Pop(Extreme::Min)), Just(Step::Pop(Extreme::Max))],
        ]
    }

    proptest! {
        #[test]
        fn it_equals_a_sorted_vector_after_any_operations(
            // Sometimes enough members for three levels.
            filled in prop_oneof![Just(0u16), 0u16..1_500],
            steps in prop_oneof![prop::collection::vec(steps(64), 0..300), prop::collection::vec(steps(2_000), 0..300)],
            cut in (0usize..1_500, 0usize..1_500),
        ) {
            let mut ranked = Ranked::default();
            let mut naive: Vec<(f64, Blob)> = Vec::new();
            let named = |member: u16| Blob::copy(&member.to_be_bytes());
            let fill = (0..filled).map(|member| Step::Turn(member.wrapping_mul(7) % filled, usize::from(member % 4)));
            for step in fill.chain(steps) {
                match step {
                    Step::Pop(from) => {
                        let expected = match from {
                            Extreme::Min => (!naive.is_empty()).then(|| naive.remove(0)),
                            Extreme::Max => naive.pop(),
                        };
                        prop_assert_eq!(ranked.pop(from), expected);
                    }
                    Step::Turn(member, score) => {
                        let member = named(member);
                        match naive.iter().position(|(_, other)| *other == member) {
                            None => {
                                let entry = (SCORES[score], member.clone());
                                prop_assert_eq!(ranked.remove(SCORES[score], &member), None);
                                ranked.insert(SCORES[score], member);
                                let at = naive.partition_point(|other| order(other, &entry) == Ordering::Less);
                                naive.insert(at, entry);
                            }
                            Some(at) => {
                                let (score, member) = naive.remove(at);
                                prop_assert_eq!(ranked.rank(score, &member), Some(at));
                                prop_assert_eq!(ranked.remove(0.5, &member), None);
                                prop_assert_eq!(ranked.remove(score, &member), Some(member));
                            }
                        }
                    }
                }
                prop_assert_eq!(ranked.len(), naive.len());
            }
            sound(&ranked.root, true);
            for (rank, (score, member)) in naive.iter().enumerate() {
                prop_assert_eq!(ranked.get(rank), Some((*score, member)));
                prop_assert_eq!(ranked.rank(*score, member), Some(rank));
            }
            prop_assert_eq!(ranked.get(naive.len()), None);
            prop_assert_eq!(ranked.rank(1.0, b"no member"), None);
            prop_assert_eq!(
                ranked.partition(|score, _| score < 1.5),
                naive.iter().filter(|(score, _)| *score < 1.5).count()
            );
            let from = cut.0.min(naive.len());
            let mut part: Vec<(f64, &Blob)> =
                naive[from..cut.1.clamp(from, naive.len())].iter().map(|(score, member)| (*score, member)).collect();
            prop_assert_eq!(&ranked.range(cut.0..cut.1, false).collect::<Vec<_>>(), &part);
            part.reverse();
            prop_assert_eq!(ranked.range(cut.0..cut.1, true).collect::<Vec<_>>(), part);
        }
    }

    // Below the root a node has at least 15 members and 16 children: four levels hold at least 2 *
    // 16^3 - 1 = 8,191 members, and five at least 131,071.
    #[test]
    fn the_tree_stays_low_however_members_come_and_go() {
        for from in [Extreme::Min, Extreme::Max] {
            let mut ranked = Ranked::default();
            for n in 0..10_000 {
                ranked.insert(f64::from(n), Blob::from("m"));
            }
            assert!(sound(&ranked.root, true) <= 4);
            for left in (0..10_000).rev() {
                assert!(ranked.pop(from).is_some());
                assert_eq!(ranked.len(), left);
                if left % 500 == 10 {
                    sound(&ranked.root, true);
                }
            }
            assert!(ranked.is_empty() && ranked.root.scores.capacity() == 0);
        }
    }
}
