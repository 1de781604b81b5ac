//! `lockstorm list`: prints the building blocks of scenarios from the tables in the code.

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

/// List the building blocks of scenarios, and the stock scenarios
#[derive(Debug, Args)]
pub(super) struct List {
    /// Kind of entries to list
    what: What,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// Faults, for [fault.*]
    Faults,
    /// Checkers with their measures and bounds, for [expect]
    Checkers,
    /// Repeated work of a client, for client.*.workload
    Workloads,
    /// Systems under test, for lock.subject
    Subjects,
    /// Properties of a subject that can be overridden, for lock.traits
    Traits,
    /// Names of hosts in faults and links
    Selectors,
    /// Stock scenarios
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
                "\nA key with `?` is optional. A fault begins `at` a time or `on` an event, lasts `for` a time, and may recur `every` interval."
            );
        }
        if matches!(self.what, What::Checkers) {
            outln!(
                "\nA file may bound the measures below each checker: [expect] l1 = {{ violated = {{ overlap = \"2s..3s\" }} }}. Beyond its own bound \
                 a checker is violated, whatever the file expects; without a bound, one certain case is a violation."
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
