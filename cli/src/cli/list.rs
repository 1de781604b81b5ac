//! `lockstorm list`: what scenarios can be made of, printed from the tables.

use clap::{Args, ValueEnum};
use miette::Result;

use super::{Exit, out::outln};
use lockstorm::{
    file::{fault, library, scenario, selector},
    judge::{
        checker::{self, Checker},
        history::Bounds,
    },
};

/// List what scenarios can be made of
#[derive(Debug, Args)]
pub(super) struct List {
    /// Of what
    what: What,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// What can go wrong: [fault.*]
    Faults,
    /// What is judged: [expect]
    Checkers,
    /// What clients can do over and over: client.*.workload
    Workloads,
    /// The systems under test: lock.subject
    Subjects,
    /// What a subject does, and what can be laid over one: lock.traits
    Traits,
    /// How hosts can be named in faults and links
    Selectors,
    /// The stock scenarios
    Scenarios,
}

impl List {
    pub(super) fn run(self) -> Result<Exit> {
        let rows: Vec<(String, String)> = match self.what {
            What::Faults => rows(fault::LIST),
            What::Checkers => {
                checker::LIST.iter().map(|checker| row(checker.name, checker.question)).collect()
            }
            What::Workloads => rows(scenario::Workload::LIST),
            What::Subjects => {
                scenario::TABLE.iter().map(|subject| row(subject.name, subject.about)).collect()
            }
            What::Traits => rows(scenario::traits::Traits::LIST),
            What::Selectors => rows(selector::ABOUT),
            What::Scenarios => {
                library::ALL.iter().map(|stock| (stock.path.to_owned(), stock.title())).collect()
            }
        };
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, about) in rows {
            outln!("{name:width$}  {about}");
            if matches!(self.what, What::Faults) {
                outln!("{:width$}    {}", "", scenario::fault_form(&name));
            }
            if matches!(self.what, What::Checkers) {
                let checker = Checker::named(&name);
                for (measure, meaning) in checker.map_or(&[][..], |checker| checker.measures) {
                    outln!("{:width$}    {measure}: {meaning}", "");
                }
                if let Some(bound) = checker.and_then(|checker| checker.bound) {
                    outln!("{:width$}    bound: {}", "", bound(Bounds::default()));
                }
            }
            if matches!(self.what, What::Traits) {
                outln!("{:width$}    {}", "", scenario::trait_values(&name).join(", "));
            }
        }
        if matches!(self.what, What::Faults) {
            outln!(
                "\nWhat has a `?` may be left out. When: `at` a time or `on` an event, `for` a time, again `every` so often."
            );
        }
        if matches!(self.what, What::Checkers) {
            outln!(
                "\nWhat a file may expect is under each: [expect] l1 = {{ violated = {{ overlap = \"2s..3s\" }} }}. Beyond its bound a checker is \
                 violated, whatever the file expects; where it has none, one certain case is a violation."
            );
        }
        Ok(Exit::Expected)
    }
}

fn row(name: &str, about: &str) -> (String, String) {
    (name.to_owned(), about.to_owned())
}

fn rows(table: &[(&str, &str)]) -> Vec<(String, String)> {
    table.iter().map(|(name, about)| row(name, about)).collect()
}
