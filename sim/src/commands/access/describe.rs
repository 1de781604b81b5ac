//! Users as the rules that would make them, in as few words as there may be.

use super::{
    Known, Table,
    rules::{set_category, set_command},
};
use crate::{
    acl::{Commands, KeyPattern, Selector, User},
    commands::Categories,
    resp::{quotable, quoted},
};

/// A user as ACL LIST shows it, without the word `user` and its name.
pub(in crate::commands) fn describe(user: &User, table: Table) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = flags(user).iter().map(|flag| flag.as_bytes().to_vec()).collect();
    words.extend(user.passwords.iter().map(|digest| format!("#{digest}").into_bytes()));
    words.push(rules_of_selector(&user.root, table));
    words.extend(
        user.selectors.iter().map(|selector| [b"(", &rules_of_selector(selector, table)[..], b")"].concat()),
    );
    words.join(&b' ')
}

/// What is said of a user besides permissions.
pub(in crate::commands) fn flags(user: &User) -> Vec<&'static str> {
    let all = [
        (user.enabled, "on"),
        (!user.enabled, "off"),
        (user.nopass, "nopass"),
        (user.sanitizes == Some(false), "skip-sanitize-payload"),
        (user.sanitizes == Some(true), "sanitize-payload"),
    ];
    all.into_iter().filter_map(|(is, flag)| is.then_some(flag)).collect()
}

/// A selector in words.
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

/// The keys of a selector in words.
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

/// The channels of a selector in words.
pub(in crate::commands) fn rules_of_channels(selector: &Selector) -> Vec<u8> {
    if selector.all_channels {
        return b"&*".to_vec();
    }
    selector.channels.iter().map(|channel| [b"&", &channel[..]].concat()).collect::<Vec<_>>().join(&b' ')
}

/// The commands of a selector in words: from all or from none, by the categories that fit best,
/// then one by one.
pub(in crate::commands) fn rules_of_commands(selector: &Selector, table: Table) -> Vec<u8> {
    let adds = !selector.commands.has_those_to_come();
    // What the words so far make of it, and what of it no category has explained yet.
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
    // A container changes its subcommands, so these come after it.
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

/// The category with the fewest commands that do not belong, then with the most that do; none where
/// the former are not fewer than the latter.
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
