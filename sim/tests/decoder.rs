//! The decoder reads the same commands however their bytes are cut.

use bytes::Bytes;
use lockstorm_sim::{
    replication::encode,
    resp::{Decoder, Limits},
};
use proptest::prelude::*;

/// The commands of a stream that arrives in pieces of these sizes, repeated, and the error that
/// ends it, if any.
fn decode(stream: &[u8], sizes: &[usize]) -> (Vec<Vec<Bytes>>, Option<String>) {
    let (mut decoder, mut commands, mut rest) = (Decoder::default(), Vec::new(), stream);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at((*size).min(rest.len()));
        decoder.feed(piece);
        rest = behind;
        loop {
            match decoder.next(&Limits::default()) {
                Ok(Some(command)) => commands.push(command),
                Ok(None) => break,
                Err(error) => return (commands, Some(error.to_string())),
            }
        }
    }
    (commands, None)
}

#[test]
fn arguments_without_bytes_take_room_too() {
    let mut decoder = Decoder::default();
    decoder.feed(b"*1000000\r\n");
    for _ in 0..1000 {
        decoder.feed(b"$0\r\n\r\n");
    }
    assert_eq!(decoder.next(&Limits::default()), Ok(None));
    // The decoder counts their overhead: by their bytes alone, a million of them would use memory
    // and no limit would notice.
    assert!(decoder.buffered() >= 1000 * size_of::<Bytes>(), "{}", decoder.buffered());
}

proptest! {
    #[test]
    fn commands_do_not_depend_on_the_cuts(
        commands in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..5), 1..6),
        sizes in prop::collection::vec(1usize..9, 1..6),
    ) {
        let stream: Vec<u8> = {
            let mut stream = Vec::new();
            commands.iter().for_each(|words| encode(words, &mut stream));
            stream
        };
        let (read, error) = decode(&stream, &sizes);
        prop_assert_eq!(error, None);
        let expected: Vec<Vec<Bytes>> =
            commands.into_iter().map(|words| words.into_iter().map(Bytes::from).collect()).collect();
        prop_assert_eq!(read, expected);
    }

    /// The decoder reads any input alike in one piece and in many, and never panics.
    #[test]
    fn noise_is_read_alike_however_it_is_cut(
        noise in prop::collection::vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'"'), any::<u8>()], 0..60),
        sizes in prop::collection::vec(1usize..9, 1..6),
    ) {
        let whole = decode(&noise, &[noise.len().max(1)]);
        prop_assert_eq!(decode(&noise, &sizes), whole);
    }
}
