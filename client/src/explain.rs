//! Names the right that the user of the server lacks, because the refusal does not.

use std::pin::pin;

use crate::env::within;
use crate::error::{Error, ErrorKind};
use crate::key::Key;
use crate::rights::Rights;
use crate::route::Request;
use crate::session::Session;

/// Adds the missing right to `error`, a refusal of a request for the object `name` with these keys,
/// if a right is missing. If a key was refused, asks the server which one.
pub(crate) async fn explained(
    session: &Session,
    rights: &Rights,
    name: &Key,
    keys: &[String],
    error: Error,
) -> Error {
    let Some(lack) = Lack::of(&error) else { return error };
    let missing = match lack {
        Lack::Channel => rights.all_channels(name),
        Lack::Command => rights.all_commands(),
        Lack::Key => {
            let limit = session.env().now() + session.config.response_timeout;
            match within(session.env(), limit, pin!(refused_key(session, keys))).await.flatten() {
                Some(key) => format!("~{}", rights.key(name, key)),
                None => rights.all_keys(name),
            }
        }
    };
    error.explained(&format!("{} needs {missing}", rights.object))
}

/// As [`explained`], for a request that involves a channel or only the object's own key.
pub(crate) fn explained_alone(rights: &Rights, name: &Key, error: Error) -> Error {
    let missing = match Lack::of(&error) {
        Some(Lack::Channel) => rights.all_channels(name),
        Some(Lack::Key) => rights.all_keys(name),
        Some(Lack::Command) => rights.all_commands(),
        None => return error,
    };
    error.explained(&format!("{} needs {missing}", rights.object))
}

/// The kind of right that a user lacks.
#[derive(Debug, PartialEq)]
enum Lack {
    Key,
    Channel,
    Command,
}

impl Lack {
    /// Returns the kind of right that a refusal is about. The refusal may be of a request or of a
    /// command within a script.
    fn of(error: &Error) -> Option<Self> {
        let text = match error.kind() {
            ErrorKind::Server { code, message } if code == "NOPERM" || is_of_script(message) => message,
            ErrorKind::NotPublished { reason } if reason.contains("NOPERM") || is_of_script(reason) => reason,
            _ => return None,
        };
        // A refusal of a command may name the user, who may be called `key`, so check that first.
        let parts = [(" run ", Self::Command), (" channel", Self::Channel), (" key", Self::Key)];
        parts.into_iter().find(|(word, _)| text.contains(word)).map(|(_, lack)| lack)
    }
}

/// Returns true for the refusal of a command within a script, which has no `NOPERM`. The second
/// text is that of Redis and Valkey since 7.2.
fn is_of_script(text: &str) -> bool {
    ["The user executing the script can't", "ACL failure in script: "].iter().any(|part| text.contains(part))
}

/// Returns the first of the keys that the server refuses to this user. Passing a key to an empty
/// script takes the same right as using it in one.
async fn refused_key<'k>(session: &Session, keys: &'k [String]) -> Option<&'k str> {
    for key in keys {
        let mut question = redis::cmd("EVAL");
        question.arg("return 1").arg(1).arg(key);
        let slot = crate::wire::Slot::of(key);
        let mut path = session.router.path(slot).await.ok()?;
        match session.router.once(slot, &mut path, &Request::Question(&question)).await {
            Err(error) if Lack::of(&error) == Some(Lack::Key) => return Some(key),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_all_versions_are_understood() {
        let server = |reply: &str| {
            let (code, message) = reply.split_once(' ').unwrap();
            Error::definite(ErrorKind::Server { code: code.to_owned(), message: message.to_owned() })
        };
        for (reply, lack) in [
            ("NOPERM this user has no permissions to run the 'hexists' command", Some(Lack::Command)),
            (
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                Some(Lack::Key),
            ),
            (
                "NOPERM this user has no permissions to access one of the channels used as arguments",
                Some(Lack::Channel),
            ),
            ("NOPERM No permissions to access a key", Some(Lack::Key)),
            ("NOPERM No permissions to access a channel", Some(Lack::Channel)),
            (
                "ERR The user executing the script can't run this command or subcommand script: 1f, on @user_script:8.",
                Some(Lack::Command),
            ),
            (
                "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
                Some(Lack::Key),
            ),
            ("NOPERM User key has no permissions to run the 'hexists' command", Some(Lack::Command)),
            (
                "ERR ACL failure in script: User u has no permissions to run the 'hexists' command script: 4f, on @user_script:1.",
                Some(Lack::Command),
            ),
            (
                "ERR ACL failure in script: No permissions to access a key script: e1, on @user_script:1.",
                Some(Lack::Key),
            ),
            (
                "ERR ACL failure in script: No permissions to access a channel script: on @user_script:1.",
                Some(Lack::Channel),
            ),
            ("OOM command not allowed when used memory > 'maxmemory'.", None),
            ("ERR unknown command 'hexists'", None),
        ] {
            assert_eq!(Lack::of(&server(reply)), lack, "{reply}");
        }
    }
}
