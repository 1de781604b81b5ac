//! The codes with which servers refuse requests: for each, if it is transient, if anything was
//! executed, and where to ask next. These codes are known only here; the crate documentation has
//! the same table.

/// The destination of a refused request when it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The same server.
    Same,
    /// The server that is the master, over another connection: this one is no master.
    Another,
    /// The node that will have all keys of the request once they have moved.
    Moving,
    /// The same server, after a look at the deployment: the server lacks something it needs, which
    /// the look may explain.
    Look,
    /// The node that the refusal names.
    Named,
    /// The same server, with the text of the script.
    Spelled,
}

/// An error reply, identified by its first word.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    /// The situation in which servers send it.
    #[cfg_attr(not(test), expect(dead_code, reason = "the documentation has it"))]
    when: &'static str,
    /// True if the same request may succeed a little later without any change by an operator.
    pub(crate) passes: bool,
    /// True if this reply to a command within a script means that the script has changed nothing
    /// yet. Either the server refuses all writes, so the first one; or our scripts read a key
    /// before they write to it.
    pub(crate) is_before_writes: bool,
    pub(crate) next: Next,
}

const fn passing(code: &'static str, when: &'static str, is_before_writes: bool, next: Next) -> Refusal {
    Refusal { code, when, passes: true, is_before_writes, next }
}

const fn lasting(code: &'static str, when: &'static str, is_before_writes: bool, next: Next) -> Refusal {
    Refusal { code, when, passes: false, is_before_writes, next }
}

/// All codes that are distinguished. All others are permanent.
static ALL: [Refusal; 19] = [
    passing("LOADING", "the server reads its data after a start", false, Next::Look),
    passing("BUSY", "a script keeps the server busy", false, Next::Same),
    passing("MISCONF", "the server cannot write its data to the disk", true, Next::Same),
    passing("OOM", "the memory of the server is full", true, Next::Same),
    passing("NOREPLICAS", "too few replicas are connected for `min-replicas-to-write`", true, Next::Same),
    passing("READONLY", "the server is a replica", true, Next::Another),
    passing("REDIRECT", "the server is a replica, and names its master (Valkey)", true, Next::Another),
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

/// Returns the refusal with this code, or `None` if the code is not distinguished.
pub(crate) fn of(code: &str) -> Option<&'static Refusal> {
    ALL.iter().find(|refusal| refusal.code == code)
}

/// Returns the code of an error reply with this first word and rest.
///
/// A server before Redis 7.0 hides the code of a command that a script calls in an error of its
/// own: `ERR Error running script (call to f_<sha>): @user_script:1: @user_script: 1: -READONLY You
/// ..`.
pub(crate) fn code<'a>(first: &'a str, rest: &'a str) -> &'a str {
    let of_script = rest.strip_prefix("Error running script (call to f_").filter(|_| first == "ERR");
    let Some((_, mut cause)) = of_script.and_then(|rest| rest.split_once("): ")) else { return first };
    // The places in the script, one or two of them.
    while let Some((_, after)) = cause.split_once(": ").filter(|_| cause.starts_with("@user_script:")) {
        cause = after.trim_start_matches(|digit: char| digit.is_ascii_digit()).trim_start_matches(": ");
    }
    let hidden = cause.split(' ').next().map(|word| word.trim_start_matches('-'));
    hidden.filter(|hidden| of(hidden).is_some()).unwrap_or(first)
}

/// Returns true if a refusal is transient.
pub(crate) fn passes(code: &str) -> bool {
    of(code).is_some_and(|refusal| refusal.passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows of `refusals.md`.
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

    /// The texts are those of Redis 6.2.5.
    #[test]
    fn the_code_of_a_command_in_a_script_is_found() {
        let of_script =
            |cause: &str| format!("Error running script (call to f_25ab): @user_script:1: {cause}");
        for (cause, expected) in [
            ("@user_script: 1: -READONLY You can't write against a read only replica.", "READONLY"),
            ("@user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.", "OOM"),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE"),
            ("@user_script: 1: Unknown Redis command called from Lua script", "ERR"),
            ("", "ERR"),
        ] {
            assert_eq!(code("ERR", &of_script(cause)), expected, "{cause}");
        }
        assert_eq!(code("ERR", "Error running script (call to f_"), "ERR");
        assert_eq!(code("READONLY", "You can't write against a read only replica."), "READONLY");
    }

    #[test]
    fn each_code_is_there_once() {
        for (at, refusal) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.code != refusal.code), "{refusal:?}");
        }
        assert!(of("ERR").is_none() && !passes("NOPERM") && passes("OOM"));
    }
}
