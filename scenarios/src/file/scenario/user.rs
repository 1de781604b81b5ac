//! Users of the nodes (ACL), with their passwords and rights, and the clients that authenticate as
//! them.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use lockstorm_sim::{
    commands::access::{Table, configured},
    config::Config,
    generation::Generation,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Client, Node, Scenario, error::Mistake, places::Places};
use crate::file::name::Name;

/// A user of the nodes with its own rights: `[user.app]`. Clients that name no user are the user
/// `default`, which may do everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct User {
    /// The password. Default: none; the nodes then accept any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Its rights, one rule each as in ACL SETUSER, such as `"~app:*"`, `"&*"` or `"+@all"`.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The nodes that know the user. Default: all. Every other node refuses the connections of
    /// clients that are this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<Name>>,
}

/// The user of clients that name none, and of the console of every node.
const DEFAULT: &str = "default";

impl User {
    /// Returns the words after `user` in a node's configuration file.
    fn words(&self, name: &str) -> Vec<String> {
        let password = self.password.as_ref().map_or("nopass".to_owned(), |password| format!(">{password}"));
        let first = [name.to_owned(), "on".to_owned(), password];
        first.into_iter().chain(self.rules.iter().cloned()).collect()
    }

    fn is_on(&self, scenario: &Scenario, host: &str) -> bool {
        let named = |names: &Vec<Name>| {
            names.iter().any(|name| scenario.members(name.as_str()).iter().any(|member| member == host))
        };
        self.nodes.as_ref().is_none_or(named)
    }
}

/// The users of a scenario, by name.
pub(super) type Users = IndexMap<String, User>;

impl Scenario {
    /// Returns the users that the node on this host knows besides `default`, each as the words of
    /// its line in the configuration file.
    pub fn users_of(&self, host: &str) -> Vec<Vec<String>> {
        let known = self.user.iter().filter(|(_, user)| user.is_on(self, host));
        known.map(|(name, user)| user.words(name)).collect()
    }

    /// Returns the name and the password with which a client authenticates; `None` if it does not.
    pub fn login(&self, client: &Client) -> Option<(String, String)> {
        let name = client.user.as_ref()?.as_str();
        let password = self.user.get(name)?.password.clone();
        // The nodes accept any password for a user without one, but AUTH requires one.
        Some((name.to_owned(), password.unwrap_or_else(|| "any".to_owned())))
    }
}

/// Checks that the names, passwords and rules of the users are valid for a node.
pub(super) fn check(scenario: &Scenario, places: &Places<'_, '_>) -> Result<(), Mistake> {
    for (name, user) in &scenario.user {
        let wrong = |place, message: String| Err(Mistake::at(place, message));
        if name == DEFAULT {
            let message =
                "the console and the observers of the nodes are the user `default`: give clients another one";
            return wrong(places.of_key(&["user", name]), message.to_owned());
        }
        let is_odd = |letter: char| letter.is_whitespace() || letter == '\0';
        if name.is_empty() || name.starts_with('-') || name.contains(is_odd) {
            let message =
                format!("a user cannot be called {name:?}: its name has no spaces, and begins with no `-`");
            return wrong(places.of_key(&["user", name]), message);
        }
        let password = user.password.as_deref();
        if password.is_some_and(|word| word.is_empty() || word.contains(['\0', '\r', '\n'])) {
            let message =
                format!("user {name}: a password is one line, and not empty; leave it out for none");
            return wrong(places.of_value(&["user", name, "password"]), message);
        }
        // Rules name commands, which not every server has.
        let generations: BTreeSet<Generation> = scenario.node.values().map(Node::generation).collect();
        let plain = User { rules: Vec::new(), ..user.clone() };
        for (at, rule) in user.rules.iter().enumerate() {
            let mut one = plain.words(name);
            // A rule may be invalid because of the rules before it.
            one.extend(user.rules[..=at].iter().cloned());
            let config = Config::default().with(|config| config.security.users = vec![one]);
            let refused = generations.iter().find_map(|&generation| {
                configured(&config, Table::Data(generation), |_| Err(String::new())).err()
            });
            let Some(why) = refused else { continue };
            let why = why.rsplit_once("': ").map_or(&*why, |(_, why)| why);
            let message = format!("user {name}: {rule:?} is no rule of ACL SETUSER: {why}");
            return wrong(places.of_value(&["user", name, "rules", &at.to_string()]), message);
        }
    }
    Ok(())
}

/// Checks that the user of a client exists.
pub(super) fn check_client(scenario: &Scenario, client: &Client) -> Result<(), Mistake> {
    match &client.user {
        Some(user) if !scenario.user.contains_key(user.as_str()) => {
            let known = scenario.user.keys().map(String::as_str);
            Err(Mistake::unknown(user.span(), "user", user.as_str(), known))
        }
        _ => Ok(()),
    }
}
