//! Writes users as the ACL rules that would make them, with as few words as possible.

use super::{
    Known, Table,
    rules::{set_category, set_command},
};
use crate::{
    acl::{Commands, KeyPattern, Selector, User},
    commands::Categories,
    generation::Generation,
    resp::{quotable, quoted},
};

/// Writes a user as in ACL LIST, without the word `user` and the name.
pub(in crate::commands) fn describe(user: &User, table: Table) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = flags(user, table).iter().map(|flag| flag.as_bytes().to_vec()).collect();
    words.extend(user.passwords.iter().map(|digest| format!("#{digest}").into_bytes()));
    words.push(rules_of_selector(&user.root, table));
    words.extend(
        user.selectors.iter().map(|selector| [b"(", &rules_of_selector(selector, table)[..], b")"].concat()),
    );
    words.join(&b' ')
}

/// Returns the flags of a user: its properties besides permissions.
pub(in crate::commands) fn flags(user: &User, table: Table) -> Vec<&'static str> {
    // Older servers name only what a rule has set; Valkey 9.1 checks all values.
    let sanitizes = match table.generation() {
        Generation::Redis62 | Generation::Redis70 => user.sanitizes,
        Generation::Redis82 | Generation::Valkey81 => user.sanitizes.or(Some(true)),
        Generation::Valkey91 => None,
    };
    let all = [
        (user.enabled, "on"),
        (!user.enabled, "off"),
        (user.nopass, "nopass"),
        (sanitizes == Some(false), "skip-sanitize-payload"),
        (sanitizes == Some(true), "sanitize-payload"),
    ];
    all.into_iter().filter_map(|(is, flag)| is.then_some(flag)).collect()
}

/// Writes a selector as rules.
pub(in crate::commands) fn rules_of_selector(selector: &Selector, table: Table) -> Vec<u8> {
    let mut words = Vec::new();
    words.extend(Some(rules_of_keys(selector)).filter(|keys| !keys.is_empty()));
    if !selector.all_channels {
        words.push(b"resetchannels".to_vec());
    }
    words.extend(Some(rules_of_channels(selector)).filter(|channels| !channels.is_empty()));
    words.push(rules_of_commands(selector, table));
    words.join(&b' ')
}

/// Writes the keys of a selector as rules.
pub(in crate::commands) fn rules_of_keys(selector: &Selector) -> Vec<u8> {
    if selector.all_keys {
        return b"~*".to_vec();
    }
    let word = |KeyPattern { pattern, read, write }: &KeyPattern| {
        let sign: &[u8] = match (read, write) {
            (true, true) => b"~",
            (true, false) => b"%R~",
            _ => b"%W~",
        };
        [sign, pattern].concat()
    };
    selector.keys.iter().map(word).collect::<Vec<_>>().join(&b' ')
}

/// Writes the channels of a selector as rules.
pub(in crate::commands) fn rules_of_channels(selector: &Selector) -> Vec<u8> {
    if selector.all_channels {
        return b"&*".to_vec();
    }
    selector.channels.iter().map(|channel| [b"&", &channel[..]].concat()).collect::<Vec<_>>().join(&b' ')
}

/// Writes the commands of a selector as rules: starts from all or from none, then adds the best
/// categories, then single commands.
pub(in crate::commands) fn rules_of_commands(selector: &Selector, table: Table) -> Vec<u8> {
    let adds = !selector.commands.has_those_to_come();
    // `made` holds the commands that the words so far allow; `left` those that no category covers
    // yet.
    let mut made = Selector::new(false);
    made.set_all_commands(!adds);
    let mut left = Selector::new(false);
    left.commands = selector.commands;
    let mut words = vec![if adds { "-@all" } else { "+@all" }.to_owned()];
    let mut used = Categories::empty();
    while let Some((name, category)) = best_category(&left.commands, adds, used, table) {
        set_category(&mut made, category, adds, table);
        set_category(&mut left, category, !adds, table);
        let sign = if adds { '+' } else { '-' };
        words.push(format!("{sign}@{}", name.to_ascii_lowercase()));
        used |= category;
    }
    // A rule for a container changes its subcommands, so their rules follow it.
    for &Known { id, spec, .. } in table.known() {
        let wanted = selector.commands.contains(id);
        if wanted != made.commands.contains(id) {
            words.push(format!("{}{}", if wanted { '+' } else { '-' }, spec.name));
            set_command(&mut made, spec, wanted);
        }
        if !wanted && let Some(args) = selector.first_args.get(&id) {
            let word = |arg: &bytes::Bytes| format!("+{}|{}", spec.name, quotable(arg));
            words.extend(args.iter().map(word));
        }
    }
    quoted(&words.join(" ")).into_owned()
}

/// Returns the category with the fewest unwanted commands, and among these the one with the most
/// wanted commands. `None` if none has more wanted than unwanted ones.
fn best_category(
    commands: &Commands,
    adds: bool,
    used: Categories,
    table: Table,
) -> Option<(&'static str, Categories)> {
    let mut best: Option<(usize, usize, (&'static str, Categories))> = None;
    for (name, category) in Categories::all().iter_names().filter(|(_, category)| !used.intersects(*category))
    {
        let (mut fit, mut unfit) = (0, 0);
        for known in table.known().iter().filter(|known| known.categories.intersects(category)) {
            if commands.contains(known.id) == adds { fit += 1 } else { unfit += 1 }
        }
        let better = best.is_none_or(|(fewest, most, _)| unfit < fewest || (unfit == fewest && fit > most));
        if fit > unfit && better {
            best = Some((unfit, fit, (name, category)));
        }
    }
    best.map(|(.., category)| category)
}
