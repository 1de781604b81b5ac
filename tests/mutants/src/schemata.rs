//! Turns a source file into one in which every mutant is a branch.
//!
//! `a < b` becomes `(if on(7){a <= b}else{a < b})`. A function that returns a fixed value begins
//! with `if on(8){return 0;}`. A deleted arm gets the guard `if !on(9)`. A branch contains the
//! original text without the branches of other mutants: only one mutant is active at a time, and
//! the file would grow too large otherwise.

use std::ops::Range;

use proc_macro2::{LineColumn, Span};
use serde::{Deserialize, Serialize};
use syn::{spanned::Spanned, visit::Visit};

/// An entry of `cargo mutants --list --json`, with a number.
#[derive(Deserialize)]
pub(crate) struct Mutant {
    id: u32,
    pub(crate) file: String,
    span: Place,
    replacement: String,
    genre: Genre,
}

#[derive(Deserialize)]
struct Place {
    start: Position,
    end: Position,
}

/// A column counts characters, from 1.
#[derive(Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// The bytes of a written file that belong to one mutant.
#[derive(Serialize)]
pub(crate) struct Branch {
    id: u32,
    start: usize,
    end: usize,
}

/// The condition that this mutant is chosen at run time.
fn on(id: u32) -> String {
    format!("crate::mutant_switch::on({id})")
}

/// Texts to insert before and after a range of the source.
struct Site {
    range: Range<usize>,
    before: Vec<(Option<u32>, String)>,
    after: &'static str,
}

/// Returns the file with its branches, and their places. A mutant without a branch cannot be
/// expressed as one.
pub(crate) fn mutate(text: &str, mutants: &[&Mutant]) -> syn::Result<(String, Vec<Branch>)> {
    let file = syn::parse_file(text)?;
    let lines = Lines::of(text);
    let mut finder = Finder { text, lines: &lines, wanted: mutants, sites: Vec::new() };
    for mutant in mutants.iter().filter(|one| one.genre == Genre::FnValue) {
        finder.sites.push(Site {
            range: lines.range(&mutant.span),
            before: vec![(
                Some(mutant.id),
                format!("if {}{{return {};}} ", on(mutant.id), mutant.replacement),
            )],
            after: "",
        });
    }
    finder.visit_file(&file);
    let mut sites = finder.sites;
    // Of two ranges with the same start the longer is the outer one.
    sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    Ok(write(text, &sites))
}

fn write(text: &str, sites: &[Site]) -> (String, Vec<Branch>) {
    let (mut out, mut branches, mut at) = (String::new(), Vec::new(), 0);
    let mut open: Vec<&Site> = Vec::new();
    for site in sites {
        while let Some(outer) = open.pop_if(|outer| outer.range.end <= site.range.start) {
            out += &text[at..outer.range.end];
            out += outer.after;
            at = outer.range.end;
        }
        out += &text[at..site.range.start];
        at = site.range.start;
        for (id, part) in &site.before {
            let start = out.len();
            out += part;
            branches.extend(id.map(|id| Branch { id, start, end: out.len() }));
        }
        open.push(site);
    }
    while let Some(outer) = open.pop() {
        out += &text[at..outer.range.end];
        out += outer.after;
        at = outer.range.end;
    }
    out += &text[at..];
    (out, branches)
}

/// Finds the mutants of expressions, by the expression that becomes a branch.
struct Finder<'a> {
    text: &'a str,
    lines: &'a Lines<'a>,
    wanted: &'a [&'a Mutant],
    sites: Vec<Site>,
}

impl<'a> Finder<'a> {
    fn at(&self, span: Span, genre: Genre) -> Vec<&'a Mutant> {
        let start = self.lines.byte(span.start());
        let found = self.wanted.iter().copied();
        found.filter(|one| one.genre == genre && self.lines.range(&one.span).start == start).collect()
    }

    fn bytes(&self, span: Span) -> Range<usize> {
        self.lines.byte(span.start())..self.lines.byte(span.end())
    }

    /// Makes an expression a branch for each mutant of one of its parts.
    fn branch(&mut self, whole: Span, mutants: &[&Mutant]) {
        if mutants.is_empty() {
            return;
        }
        let (text, range) = (self.text, self.bytes(whole));
        let mut before = vec![(None, "(".to_owned())];
        for mutant in mutants {
            let part = self.lines.range(&mutant.span);
            let (start, end) = (&text[range.start..part.start], &text[part.end..range.end]);
            let changed = format!("{start}{}{end}", mutant.replacement);
            before.push((Some(mutant.id), format!("if {}{{{changed}}}else ", on(mutant.id))));
        }
        before.push((None, "{".to_owned()));
        self.sites.push(Site { range, before, after: "})" });
    }
}

/// Returns true for `a && let b = c`, which is not an expression that could be in a branch.
fn is_let_chain(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => is_let_chain(&binary.left) || is_let_chain(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if !is_let_chain(&expr.left) && !is_let_chain(&expr.right) {
            self.branch(expr.span(), &self.at(expr.op.span(), Genre::BinaryOperator));
        }
        syn::visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        self.branch(expr.span(), &self.at(expr.op.span(), Genre::UnaryOperator));
        syn::visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        let mutants: Vec<&Mutant> =
            expr.fields.iter().flat_map(|field| self.at(field.span(), Genre::StructField)).collect();
        self.branch(expr.span(), &mutants);
        syn::visit::visit_expr_struct(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        for mutant in self.at(arm.span(), Genre::MatchArm) {
            let end = self.bytes(arm.pat.span()).end;
            let guard = format!(" if !{}", on(mutant.id));
            self.sites.push(Site { range: end..end, before: vec![(Some(mutant.id), guard)], after: "" });
        }
        syn::visit::visit_arm(self, arm);
    }

    fn visit_pat_guard(&mut self, guarded: &'ast syn::PatGuard) {
        let guard = &*guarded.guard;
        if !is_let_chain(guard) {
            self.branch(guard.span(), &self.at(guard.span(), Genre::MatchArmGuard));
        }
        syn::visit::visit_pat_guard(self, guarded);
    }
}

/// Converts lines and columns to bytes.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Lines<'a> {
        let starts = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts }
    }

    /// The byte of a place whose line counts from 1 and whose column counts from 0.
    fn byte(&self, LineColumn { line, column }: LineColumn) -> usize {
        let start = self.starts[line - 1];
        let behind = self.text[start..].char_indices().nth(column);
        behind.map_or(self.text.len(), |(at, _)| start + at)
    }

    fn range(&self, Place { start, end }: &Place) -> Range<usize> {
        let byte = |at: &Position| self.byte(LineColumn { line: at.line, column: at.column - 1 });
        byte(start)..byte(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the source with these mutants, each given by its genre, the part that it replaces,
    /// and the replacement.
    fn mutated(text: &str, mutants: &[(Genre, &str, &str)]) -> String {
        let position = |at: usize| {
            let line = text[..at].matches('\n').count() + 1;
            let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
            Position { line, column: text[start..at].chars().count() + 1 }
        };
        let mutants: Vec<Mutant> = (1..)
            .zip(mutants)
            .map(|(id, &(genre, part, replacement))| {
                let at = text.find(part).expect("the part is there");
                Mutant {
                    id,
                    file: String::new(),
                    span: Place { start: position(at), end: position(at + part.len()) },
                    replacement: replacement.to_owned(),
                    genre,
                }
            })
            .collect();
        let (out, branches) = mutate(text, &mutants.iter().collect::<Vec<_>>()).expect("it parses");
        for branch in branches {
            assert!(out[branch.start..branch.end].contains(&on(branch.id)));
        }
        out.replace("crate::mutant_switch::", "")
    }

    #[test]
    fn each_genre_is_a_branch() {
        use Genre::{BinaryOperator, FnValue, MatchArm, MatchArmGuard, StructField, UnaryOperator};
        for (text, mutants, expected) in [
            (
                "fn f() -> u8 { g(); 1 }",
                &[(FnValue, "g(); 1", "0"), (FnValue, "g(); 1", "7")][..],
                "fn f() -> u8 { if on(1){return 0;} if on(2){return 7;} g(); 1 }",
            ),
            // The other operators of a branch keep their text.
            (
                "fn f() -> bool { a < b && c }",
                &[(BinaryOperator, "<", ">"), (BinaryOperator, "&&", "||")],
                "fn f() -> bool { (if on(2){a < b || c}else {(if on(1){a > b}else {a < b}) && c}) }",
            ),
            (
                "fn f() { 'ä'; x += !y; }",
                &[(UnaryOperator, "!", ""), (BinaryOperator, "+=", "-=")],
                "fn f() { 'ä'; (if on(2){x -= !y}else {x += (if on(1){y}else {!y})}); }",
            ),
            (
                "fn f() { match a { B => 1, C if d => 2, _ => 3 } }",
                &[(MatchArm, "B => 1,", ""), (MatchArmGuard, "d", "true"), (MatchArmGuard, "d", "false")],
                "fn f() { match a { B if !on(1) => 1, C if (if on(2){true}else if on(3){false}else {d}) => 2, _ => 3 } }",
            ),
            (
                "fn f() { S { a: 1, b: 2, ..c } }",
                &[(StructField, "b: 2,", "")],
                "fn f() { (if on(1){S { a: 1,  ..c }}else {S { a: 1, b: 2, ..c }}) }",
            ),
        ] {
            assert_eq!(mutated(text, mutants), expected);
        }
    }

    #[test]
    fn a_condition_with_let_has_no_branch() {
        let text = "fn f() { if a && let Some(b) = c {} }";
        assert_eq!(mutated(text, &[(Genre::BinaryOperator, "&&", "||")]), text);
    }
}
