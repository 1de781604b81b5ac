//! Commands about the connection itself.

mod auth;
mod client;
mod client_caching;
mod client_capa;
mod client_getname;
mod client_getredir;
mod client_help;
mod client_id;
mod client_import_source;
mod client_info;
mod client_kill;
mod client_list;
mod client_no_evict;
mod client_no_touch;
mod client_pause;
mod client_reply;
mod client_setinfo;
mod client_setname;
mod client_tracking;
mod client_trackinginfo;
mod client_unblock;
mod client_unpause;
pub(super) mod clients;
mod echo;
mod filters;
mod hello;
mod ping;
mod quit;
mod reset;
mod select;

use super::Spec;

/// The commands of the group, sorted by name.
pub(super) const ALL: &[&Spec] = &[
    &auth::SPEC,
    &client::SPEC,
    &echo::SPEC,
    &hello::SPEC,
    &ping::SPEC,
    &quit::SPEC,
    &reset::SPEC,
    &select::SPEC,
];
