//! Feeds any bytes, cut anywhere, to a connection: the server reads them like one piece, holds them
//! within limits, and replies or refuses.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use lockstorm_sim::resp::{Decoder, Limits};

/// The commands in `pieces`, and the error that ends them, if any.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<Bytes>>, Option<String>) {
    let limits = Limits { bulk_len_max: 1 << 20, ..Limits::default() };
    let (mut decoder, mut commands, mut fed) = (Decoder::default(), Vec::new(), 0);
    for piece in pieces {
        decoder.feed(piece);
        fed += piece.len();
        loop {
            match decoder.next(&limits) {
                Ok(Some(command)) => commands.push(command),
                Ok(None) => break,
                Err(error) => return (commands, Some(error.to_string())),
            }
        }
        // An argument takes at least six bytes of the stream, and a few times that in memory.
        assert!(decoder.buffered() <= 8 * fed + 64, "{fed} bytes are held as {}", decoder.buffered());
    }
    (commands, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, stream)) = input.split_first() else { return };
    let whole = read(std::iter::once(stream));
    assert_eq!(read(stream.chunks(1 + usize::from(size))), whole);
});
