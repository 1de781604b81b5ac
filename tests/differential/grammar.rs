//! The syntax of commands: each line becomes a tree from which arguments are drawn.
//!
//! ```text
//! SET skey value { [NX|XX] [GET] [EX seconds|PX ms|KEEPTTL] }
//! 3 LMPOP #lkey (LEFT|RIGHT) [COUNT count]
//! HSET hkey (field value)...
//! ```
//!
//! Upper case words and words with a dash stand for themselves. Other lower case words are slots
//! that [`Words`] fills. `[..]` may be left out, `(..|..)` is one of several, `x...` is repeated,
//! `#x` is a count n followed by n words, `{..}` comes in any order. A number in front is the
//! relative weight of the line.

use std::{iter::Peekable, vec::IntoIter};

use crate::{prng::Prng, words::Words};

/// One command as a client may send it.
pub(crate) struct Syntax {
    weight: usize,
    tree: Node,
}

enum Node {
    Word(String),
    Slot(String),
    All(Vec<Node>),
    Shuffled(Vec<Node>),
    OneOf(Vec<Node>),
    Maybe(Box<Node>),
    Repeated(Box<Node>),
    Counted(Box<Node>),
}

/// The lines of a group; each command is drawn from one of them.
pub(crate) struct Group {
    lines: Vec<Syntax>,
    total: usize,
}

impl Group {
    /// Reads the lines of a group; empty ones and those that begin with `//` are skipped.
    pub(crate) fn read(text: &str) -> Group {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
        let lines: Vec<Syntax> = lines.map(Syntax::read).collect();
        let total = lines.iter().map(|line| line.weight).sum();
        Group { lines, total }
    }

    /// Draws a command of this group.
    pub(crate) fn draw(&self, prng: &mut Prng, words: &Words) -> Vec<Vec<u8>> {
        let mut left = prng.below(self.total);
        let line = self.lines.iter().find(|line| {
            let here = left < line.weight;
            left = left.saturating_sub(line.weight);
            here
        });
        let mut out = Vec::new();
        line.expect("the weights add up").tree.draw(prng, words, &mut out);
        out
    }
}

impl Syntax {
    fn read(line: &str) -> Syntax {
        let mut spaced = String::new();
        for letter in line.chars() {
            match letter {
                '[' | ']' | '(' | ')' | '{' | '}' | '|' | '#' => spaced.extend([' ', letter, ' ']),
                other => spaced.push(other),
            }
        }
        let spaced = spaced.replace("...", " ... ");
        let mut tokens: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
        let weight = tokens[0].parse().ok();
        if weight.is_some() {
            tokens.remove(0);
        }
        let mut tokens = tokens.into_iter().peekable();
        let tree = alternatives(&mut tokens);
        assert!(tokens.next().is_none(), "unbalanced syntax: {line}");
        Syntax { weight: weight.unwrap_or(2), tree }
    }
}

fn alternatives(tokens: &mut Peekable<IntoIter<String>>) -> Node {
    let mut all = vec![Vec::new()];
    while let Some(token) = tokens.peek() {
        match token.as_str() {
            "]" | ")" | "}" => break,
            "|" => {
                tokens.next();
                all.push(Vec::new());
            }
            _ => {
                let node = one(tokens);
                all.last_mut().expect("never empty").push(node);
            }
        }
    }
    if all.len() == 1 {
        Node::All(all.remove(0))
    } else {
        Node::OneOf(all.into_iter().map(Node::All).collect())
    }
}

fn one(tokens: &mut Peekable<IntoIter<String>>) -> Node {
    let token = tokens.next().expect("something to read");
    let mut enclosed = || {
        let inner = alternatives(tokens);
        tokens.next().expect("a closing bracket");
        inner
    };
    let node = match token.as_str() {
        "(" => enclosed(),
        "[" => Node::Maybe(Box::new(enclosed())),
        "{" => match enclosed() {
            Node::All(nodes) => Node::Shuffled(nodes),
            other => other,
        },
        "#" => Node::Counted(Box::new(one(tokens))),
        slot if slot.starts_with(|letter: char| letter.is_ascii_lowercase()) && !slot.contains('-') => {
            assert!(Words::knows(slot), "no slot is called {slot}");
            Node::Slot(token)
        }
        _ => Node::Word(token),
    };
    if tokens.next_if(|token| token == "...").is_some() { Node::Repeated(Box::new(node)) } else { node }
}

impl Node {
    fn draw(&self, prng: &mut Prng, words: &Words, out: &mut Vec<Vec<u8>>) {
        match self {
            Node::Word(word) => out.push(word.as_bytes().to_vec()),
            Node::Slot(slot) => out.push(words.fill(slot, prng)),
            Node::All(nodes) => nodes.iter().for_each(|node| node.draw(prng, words, out)),
            Node::Shuffled(nodes) => {
                let mut order: Vec<&Node> = nodes.iter().collect();
                prng.shuffle(&mut order);
                order.into_iter().for_each(|node| node.draw(prng, words, out));
            }
            Node::OneOf(nodes) => prng.pick(nodes).draw(prng, words, out),
            Node::Maybe(node) => {
                if prng.percent(40) {
                    node.draw(prng, words, out);
                }
            }
            Node::Repeated(node) => {
                for _ in 0..prng.few() {
                    node.draw(prng, words, out);
                }
            }
            Node::Counted(node) => {
                let count = prng.few().min(6);
                let told = if prng.percent(97) { count as i64 } else { prng.between(-1, count as i64 + 2) };
                out.push(told.to_string().into_bytes());
                for _ in 0..count {
                    node.draw(prng, words, out);
                }
            }
        }
    }
}
