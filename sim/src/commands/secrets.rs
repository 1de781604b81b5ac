//! Secret arguments: MONITOR and SLOWLOG show that they exist, but not their content.

use bytes::Bytes;

/// Options whose values are secrets.
const OPTIONS: [&str; 7] = [
    "masterauth",
    "masteruser",
    "primaryauth",
    "primaryuser",
    "requirepass",
    "tls-client-key-file-pass",
    "tls-key-file-pass",
];

/// Returns the indices of the secrets among the arguments of the command with this full name.
pub(super) fn secrets(name: &str, args: &[Bytes]) -> Vec<usize> {
    let is =
        |at: usize, word: &str| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    let mut found: Vec<usize> = match name {
        "auth" => (1..args.len()).collect(),
        "acl|setuser" => (2..args.len()).collect(),
        "config|set" => {
            let secret = |at: &usize| OPTIONS.iter().any(|option| is(*at, option));
            (2..args.len()).step_by(2).filter(secret).map(|at| at + 1).collect()
        }
        "hello" => (2..args.len()).filter(|at| is(*at, "auth")).flat_map(|at| [at + 1, at + 2]).collect(),
        "migrate" => {
            let after = |at: usize| match at {
                at if is(at, "auth") => 1,
                at if is(at, "auth2") => 2,
                _ => 0,
            };
            (6..args.len()).flat_map(|at| at + 1..=at + after(at)).collect()
        }
        _ => Vec::new(),
    };
    found.retain(|at| *at < args.len());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_left_out_and_nothing_else_is() {
        let rows = [
            ("auth", "AUTH user pass", "AUTH . ."),
            ("hello", "HELLO 3 SETNAME x AUTH user pass", "HELLO 3 SETNAME x AUTH . ."),
            ("hello", "HELLO 3 AUTH", "HELLO 3 AUTH"),
            ("acl|setuser", "ACL SETUSER name >pass", "ACL SETUSER . ."),
            ("acl|getuser", "ACL GETUSER name", "ACL GETUSER name"),
            (
                "config|set",
                "CONFIG SET port 1 RequirePass x masterauth",
                "CONFIG SET port 1 RequirePass . masterauth",
            ),
            ("migrate", "MIGRATE h 1 auth 0 1 COPY AUTH p", "MIGRATE h 1 auth 0 1 COPY AUTH ."),
            ("migrate", "MIGRATE h 1 k 0 1 AUTH2 u p KEYS k", "MIGRATE h 1 k 0 1 AUTH2 . . KEYS k"),
            ("set", "SET auth x", "SET auth x"),
        ];
        for (name, line, shown) in rows {
            let mut args: Vec<Bytes> =
                line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
            secrets(name, &args).into_iter().for_each(|at| args[at] = Bytes::from_static(b"."));
            let got: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
            assert_eq!(got.join(" "), shown);
        }
    }
}
