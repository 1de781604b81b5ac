//! Checks if a user may run a command with its arguments, and makes the error if not.

use bytes::Bytes;

use super::id;
use crate::{
    acl::{Entry, Reason, Selector, User},
    commands::{Ctx, Error, Flags, KeyFlags, KeyUse, Origin, Spec, has_keys, key_uses, printable},
    env::Env,
    event::ConnId,
    generation::{Feature, Generation},
    node::{Node, clients::Role},
};

/// Reason for a denial, with the index of the denied argument, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    /// The command itself.
    Command,
    /// The key at this index of the arguments.
    Key(usize),
    /// The channel at this index of the arguments.
    Channel(usize),
}

impl Denied {
    /// Returns the error NOPERM for the client.
    pub fn error(self, spec: &Spec, node: &Node, conn: ConnId) -> Error {
        let generation = node.config.generation;
        if generation.has(Feature::NamedDenials) {
            return Error(format!("NOPERM {}", self.reason(spec, node, conn)).into());
        }
        let why = match self {
            Denied::Command if generation == Generation::Redis62 => {
                let name = spec.name.split('|').next().unwrap_or_default();
                format!("has no permissions to run the '{name}' command or its subcommand")
            }
            Denied::Command => format!("has no permissions to run the '{}' command", spec.name),
            Denied::Key(_) => "has no permissions to access one of the keys used as arguments".into(),
            Denied::Channel(_) => "has no permissions to access one of the channels used as arguments".into(),
        };
        Error(format!("NOPERM this user {why}").into())
    }

    /// Returns the reason as servers since Redis 7.2 give it.
    fn reason(self, spec: &Spec, node: &Node, conn: ConnId) -> String {
        match self {
            Denied::Command => {
                let session = node.clients.sessions.get(conn);
                let user = session.map_or_else(String::new, |session| printable(&session.user, usize::MAX));
                format!("User {user} has no permissions to run the '{}' command", spec.name)
            }
            Denied::Key(_) => "No permissions to access a key".into(),
            Denied::Channel(_) => "No permissions to access a channel".into(),
        }
    }

    /// Returns the error for a queued command that is no longer allowed.
    pub fn error_in_exec(self) -> Error {
        let why = match self {
            Denied::Command => "no permission to execute the command or subcommand",
            Denied::Key(_) => "no permission to touch the specified keys",
            Denied::Channel(_) => "no permission to access one of the channels used as arguments",
        };
        Error(
            format!(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
                 command is no longer allowed for the following reason: {why}"
            )
            .into(),
        )
    }

    /// Returns the error for a script that called the command.
    pub fn error_in_script(self, spec: &Spec, node: &Node, conn: ConnId) -> Error {
        if node.config.generation.has(Feature::NamedDenials) {
            return Error(format!("ERR ACL failure in script: {}", self.reason(spec, node, conn)).into());
        }
        Error::of(match self {
            Denied::Command => "ERR The user executing the script can't run this command or subcommand",
            Denied::Key(_) => {
                "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
            }
            Denied::Channel(_) => {
                "ERR The user executing the script can't publish to the channel mentioned in the command"
            }
        })
    }
}

/// Checks that `user` may run a command.
///
/// # Errors
/// The reason for the denial, from the selector that comes closest to allowing the command.
pub fn check(user: &User, generation: Generation, spec: &Spec, args: &[Bytes]) -> Result<(), Denied> {
    if user.root.is_open() {
        return Ok(());
    }
    let keys = if has_keys(spec) { key_uses(spec, args) } else { Vec::new() };
    let is_free = spec.flags_in(generation).contains(Flags::NO_AUTH);
    let mut closest = Denied::Command;
    for selector in user.all_selectors() {
        match allows(selector, spec, is_free, args, &keys) {
            Ok(()) => return Ok(()),
            Err(denied) => closest = closest.max(denied),
        }
    }
    Err(closest)
}

/// Returns true if the user may read keys whose names the command finds in data. That requires the
/// permission to read any key.
pub(in crate::commands) fn may_follow(ctx: &Ctx<'_>, spec: &Spec, args: &[Bytes]) -> bool {
    if ctx.node.acl.is_open() || ctx.origin == Origin::Replication {
        return true;
    }
    let session = ctx.node.clients.sessions.get(ctx.conn);
    let Some(user) = session.and_then(|session| ctx.node.acl.user(&session.user)) else { return true };
    let keys = key_uses(spec, args);
    user.all_selectors().any(|selector| {
        selector.allows_any_key(true, false) && allows(selector, spec, false, args, &keys).is_ok()
    })
}

/// Checks that a selector allows a command, which `is_free` if every user may run it.
fn allows(
    selector: &Selector,
    spec: &Spec,
    is_free: bool,
    args: &[Bytes],
    keys: &[KeyUse],
) -> Result<(), Denied> {
    if !selector.all_commands && !is_free && !allows_command(selector, spec, args) {
        return Err(Denied::Command);
    }
    if !selector.all_keys {
        for key in keys {
            let reads = key.flags.contains(KeyFlags::ACCESS);
            let writes = key.flags.intersects(KeyFlags::INSERT | KeyFlags::DELETE | KeyFlags::UPDATE);
            if args.get(key.at).is_some_and(|name| !selector.allows_key(name, reads, writes)) {
                return Err(Denied::Key(key.at));
            }
        }
    }
    if !selector.all_channels {
        let are_patterns = spec.flags.contains(Flags::ALL_ARE_PATTERNS);
        let channels = if are_patterns || spec.flags.contains(Flags::ALL_ARE_CHANNELS) {
            1..args.len()
        } else if spec.flags.contains(Flags::FIRST_IS_CHANNEL) {
            1..args.len().min(2)
        } else {
            0..0
        };
        for at in channels {
            if !selector.allows_channel(&args[at], are_patterns) {
                return Err(Denied::Channel(at));
            }
        }
    }
    Ok(())
}

fn allows_command(selector: &Selector, spec: &Spec, args: &[Bytes]) -> bool {
    let id = id(spec);
    if selector.commands.contains(id) {
        return true;
    }
    // The old way to allow one use of a command: by the first argument.
    let first = args.get(if spec.name.contains('|') { 2 } else { 1 });
    let allowed = selector.first_args.get(&id);
    first
        .zip(allowed)
        .is_some_and(|(first, allowed)| allowed.iter().any(|arg| arg.eq_ignore_ascii_case(first)))
}

/// Refuses a command that the connection's user may not run, and adds the denial to the ACL log.
///
/// # Errors
/// The reason for the denial.
pub fn refuse(
    node: &mut Node,
    env: &Env,
    conn: ConnId,
    spec: &Spec,
    args: &[Bytes],
    context: &'static str,
) -> Result<(), Denied> {
    if node.acl.is_open() {
        return Ok(());
    }
    // A node's link to its master may run everything.
    let session = node.clients.sessions.get(conn).filter(|session| session.role != Role::Master);
    let user = session.and_then(|session| node.acl.user(&session.user));
    let generation = node.config.generation;
    let Some((user, Err(denied))) = user.map(|user| (user, check(user, generation, spec, args))) else {
        return Ok(());
    };
    let (reason, object) = match denied {
        Denied::Command => (Reason::Command, Bytes::from_static(spec.name.as_bytes())),
        Denied::Key(at) => (Reason::Key, args[at].clone()),
        Denied::Channel(at) => (Reason::Channel, args[at].clone()),
    };
    let username = user.name.clone();
    note(node, env, conn, Refusal { reason, context, object, username });
    Err(denied)
}

/// A denial for the ACL log.
pub(in crate::commands) struct Refusal {
    pub(in crate::commands) reason: Reason,
    pub(in crate::commands) context: &'static str,
    pub(in crate::commands) object: Bytes,
    pub(in crate::commands) username: Bytes,
}

/// Adds a denial to the ACL log.
pub(in crate::commands) fn note(node: &mut Node, env: &Env, conn: ConnId, refusal: Refusal) {
    let session = node.clients.sessions.get(conn);
    let client =
        session.map_or_else(Vec::new, |session| session.describe(env.monotonic, node.config.generation));
    let Refusal { reason, context, object, username } = refusal;
    let entry = Entry {
        count: 1,
        reason,
        context,
        object,
        username,
        id: 0,
        since_ms: 0,
        at_ms: env.wall.as_millis(),
        client: client.trim_ascii_end().to_vec().into(),
    };
    node.acl.log.note(entry, node.config.security.acllog_max_len);
}
