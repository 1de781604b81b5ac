//! What servers refuse requests with: which refusals pass by themselves, whether anything was done,
//! and where to ask next. The one place that knows these codes; the documentation of the crate has
//! the same table.

/// Where a request that was refused goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// To the same server.
    Same,
    /// The server is no master: to the one that is, on another connection.
    Another,
    /// To the node that will have all of its keys, when they have moved.
    Moving,
    /// The server does without a part of what it needs, which a look at the whole may explain.
    Look,
    /// To the node that the refusal names.
    Named,
    /// To the same server, with the text of the script.
    Spelled,
}

/// An error reply, by its first word.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    /// When servers say so.
    #[cfg_attr(not(test), expect(dead_code, reason = "the documentation has it"))]
    when: &'static str,
    /// The same request may succeed a little later without any change by an operator.
    pub(crate) passes: bool,
    /// At a command of a script it comes before the script has changed anything: the server refuses
    /// all writes, or the first one; and our scripts read a key before they write to it.
    pub(crate) is_before_writes: bool,
    pub(crate) next: Next,
}

const fn passing(code: &'static str, when: &'static str, is_before_writes: bool, next: Next) -> Refusal {
    Refusal { code, when, passes: true, is_before_writes, next }
}

const fn lasting(code: &'static str, when: &'static str, is_before_writes: bool, next: Next) -> Refusal {
    Refusal { code, when, passes: false, is_before_writes, next }
}

/// All that are told apart. Others do not pass.
static ALL: [Refusal; 18] = [
    passing("LOADING", "the server reads its data after a start", false, Next::Look),
    passing("BUSY", "a script keeps the server busy", false, Next::Same),
    passing("MISCONF", "the server cannot write its data to the disk", true, Next::Same),
    passing("OOM", "the memory of the server is full", true, Next::Same),
    passing("NOREPLICAS", "too few replicas are connected for `min-replicas-to-write`", true, Next::Same),
    passing("READONLY", "the server is a replica", true, Next::Another),
    passing("MASTERDOWN", "the server is a replica that has lost its master", true, Next::Another),
    passing("CLUSTERDOWN", "nodes of the cluster are missing", false, Next::Look),
    passing("TRYAGAIN", "the slot of the keys is being moved", false, Next::Moving),
    lasting("UNBLOCKED", "the server has become a replica", false, Next::Another),
    lasting("MOVED", "another node of the cluster has the slot", false, Next::Named),
    lasting("ASK", "another node of the cluster has the key already", false, Next::Named),
    lasting("NOSCRIPT", "the server does not know the script yet", false, Next::Spelled),
    lasting("NOPERM", "the user lacks a right", false, Next::Same),
    lasting("NOAUTH", "the server wants a password", false, Next::Same),
    lasting("WRONGPASS", "the password is wrong", false, Next::Same),
    lasting("WRONGTYPE", "the key is of another kind of object", true, Next::Same),
    lasting("CROSSSLOT", "the keys have several slots", false, Next::Same),
];

/// What an error reply that begins with `code` means, if it is one of those that are told apart.
pub(crate) fn of(code: &str) -> Option<&'static Refusal> {
    ALL.iter().find(|refusal| refusal.code == code)
}

/// Whether a refusal passes by itself.
pub(crate) fn passes(code: &str) -> bool {
    of(code).is_some_and(|refusal| refusal.passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of `refusals.md`.
    fn printed() -> String {
        let row = |refusal: &Refusal| {
            let Refusal { code, when, passes, .. } = refusal;
            let what = match (passes, refusal.next) {
                (true, Next::Same) => "yes, by that server",
                (true, Next::Look) => "yes, while the client looks for another master",
                (true, Next::Another) => "yes, by the server that is the master",
                (true, Next::Moving) => "yes, by the node that has all keys of the slot",
                (_, Next::Named) => "it is sent to that node, at once",
                (_, Next::Spelled) => "it is sent with the text of the script, at once",
                (false, _) => "no",
            };
            format!("| `{code}` | {when} | {what} |\n")
        };
        let head = "| refusal | when | is it repeated? |\n| --- | --- | --- |\n";
        head.to_owned() + &ALL.iter().map(row).collect::<String>()
    }

    #[test]
    fn the_documentation_has_the_table() {
        let documented = include_str!("refusals.md");
        assert!(documented.contains(&printed()), "refusals.md should have\n{}", printed());
    }

    #[test]
    fn each_code_is_there_once() {
        for (at, refusal) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.code != refusal.code), "{refusal:?}");
        }
        assert!(of("ERR").is_none() && !passes("NOPERM") && passes("OOM"));
    }
}
