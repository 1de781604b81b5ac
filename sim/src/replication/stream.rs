//! Encodes commands as bytes of the replication stream, which is also the format of the AOF.

use crate::effect::{Framing, Propagated};

/// Appends a command to `out`.
pub fn encode(args: &[impl AsRef<[u8]>], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the commands of one batch, between MULTI and EXEC if the framing asks for it. Adds a
/// SELECT before each command whose database is not the `selected` one; the first SELECT comes
/// before MULTI.
///
/// ```
/// use lockstorm_sim::{effect::{Framing, Propagated, PropagateTo}, replication::encode_batch};
/// let (mut out, mut selected) = (Vec::new(), Some(0));
/// let del = Propagated { db: 0, args: vec!["DEL".into(), "k".into()], to: PropagateTo::All };
/// encode_batch(&[del], Framing::Several, &mut selected, &mut out);
/// assert_eq!(out, b"*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
/// ```
pub fn encode_batch(
    commands: &[Propagated],
    framing: Framing,
    selected: &mut Option<usize>,
    out: &mut Vec<u8>,
) {
    let several = commands.len() > 1 || framing == Framing::Always && !commands.is_empty();
    for (at, Propagated { db, args, .. }) in commands.iter().enumerate() {
        if *selected != Some(*db) {
            encode(&["SELECT", &db.to_string()], out);
            *selected = Some(*db);
        }
        if several && at == 0 {
            encode(&["MULTI"], out);
        }
        encode(args, out);
    }
    if several {
        encode(&["EXEC"], out);
    }
}
