//! CONFIG REWRITE: writes the options into the configuration file of the node.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, access},
    config::file,
    log::Level,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "config|rewrite",
    group: Group::Server,
    since: "2.8.0",
    summary: "Writes the options to the configuration file.",
    arity: 2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    rewrite(ctx, false)
}

/// Writes the options that differ from their defaults or that the file contains; with `all`, every
/// option.
pub(super) fn rewrite(ctx: &mut Ctx<'_>, all: bool) -> Result<Reply, Error> {
    let config = &ctx.node.config;
    let path = config.server.config_file.clone();
    if path.is_empty() {
        return Err(Error::of("ERR The server is running without a config file"));
    }
    // ACL SAVE writes the users to an ACL file.
    let lines = || access::lines(&ctx.node.acl, access::Table::of(ctx.node));
    let users = if config.security.aclfile.is_empty() { lines() } else { Vec::new() };
    // A missing file is created. For the node's own disk the initial options are unknown, so write
    // a line for each option.
    let (old, all) = match &ctx.env.files {
        Some(files) => (files.read(&path).unwrap_or_default(), all),
        None => (String::new(), true),
    };
    let text = file::rewrite(&old, config, users, all);
    let written = ctx.write_file(&path, text.into(), |disk, text| {
        disk.config = Some(String::from_utf8_lossy(&text).into_owned());
    });
    match written {
        Ok(()) => {
            ctx.env.log(Level::Warning, || format!("{path} is rewritten"));
            Ok(Reply::OK)
        }
        Err(error) => {
            ctx.env.log(Level::Warning, || format!("{path} cannot be rewritten: {error}"));
            let error = error.split(" (os error").next().unwrap_or_default();
            Err(Error(format!("ERR Rewriting config file: {error}").into()))
        }
    }
}
