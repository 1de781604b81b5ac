//! Payloads of real servers, and damaged payloads.

use proptest::prelude::*;

use super::{
    super::{dump, restore, unseal},
    *,
};
use crate::{blob::Blob, config::Config, generation::Generation};

fn unhex(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
        .collect()
}

/// Returns the contents of a value in a comparable form: its type and its elements, sorted by their
/// bytes if the type has no order.
fn contents(value: &Value) -> (&'static str, Vec<String>) {
    let shown = |bytes: &Blob| String::from_utf8_lossy(bytes).into_owned();
    let mut contents: Vec<String> = match value {
        Value::String(string) => vec![shown(string.bytes())],
        Value::List(list) => list.iter().map(shown).collect(),
        Value::Set(set) => set.iter().map(|member| shown(&member)).collect(),
        Value::Hash(hash) => {
            hash.iter().map(|(field, value)| format!("{}={}", shown(field), shown(value))).collect()
        }
        Value::SortedSet(set) => {
            set.iter().map(|(score, member)| format!("{}={score}", shown(member))).collect()
        }
        Value::Stream(stream) => stream.log.iter().map(|entry| entry.id().to_string()).collect(),
    };
    if matches!(value, Value::Set(_) | Value::Hash(_)) {
        contents.sort();
    }
    (value.kind().name(), contents)
}

/// Payloads of DUMP on `redis-server` 7.0, without the version and checksum at the end.
fn recorded() -> Vec<(&'static str, &'static str, Vec<String>)> {
    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let long = "x".repeat(70);
    vec![
        ("00c007", "string", strings(&["7"])),
        ("00c1d4fe", "string", strings(&["-300"])),
        ("00c270110100", "string", strings(&["70000"])),
        ("00c30a405002616261e04201016162", "string", strings(&[&"ab".repeat(40)])),
        (
            "120102c32940691a690000000600816102dffb02f1881303f2a0860104f4ff0fa5d4e820190309e04678e03c000148ff",
            "list",
            strings(&["a", "-5", "5000", "100000", "999999999999", &long]),
        ),
        ("0b14040000000300000090eefeff0100000003000000", "set", strings(&["-70000", "1", "3"])),
        ("02010162", "set", strings(&["b"])),
        ("101414000000040081660201018167028374776f04ff", "hash", strings(&["f=1", "g=two"])),
        ("1118180000000400816202842d696e660581610283312e3504ff", "zset", strings(&["b=-inf", "a=1.5"])),
        ("05010161000000000000f83f", "zset", strings(&["a=1.5"])),
        ("040101660176", "hash", strings(&["f=v"])),
    ]
}

/// `redis-server` refuses the same ones (RESTORE, with its checksums switched off).
#[test]
fn a_list_has_no_empty_nodes() {
    for (hex, expected) in [("010161", Ok(1)), ("0100", Err(())), ("0200", Err(()))] {
        let bytes = unhex(&format!("01{hex}"));
        let read = value(&mut Input::new(&bytes), kind::LIST_QUICKLIST2, &Config::default());
        assert_eq!(read.map(|value| contents(&value).1.len()).map_err(drop), expected, "{hex}");
    }
}

#[test]
fn every_encoding_that_a_real_server_dumps_is_read_and_written_again() {
    let config = Config::of(Generation::Redis70);
    for (hex, kind, expected) in recorded() {
        let bytes = unhex(hex);
        let mut input = Input::new(&bytes[1..]);
        let value = value(&mut input, bytes[0], &config).expect(hex);
        assert_eq!(contents(&value), (kind, expected), "{hex}");
        assert_eq!(input.left(), 0, "{hex} is read to its end");
        // Every cut is an error, and never a panic.
        for end in 1..bytes.len() {
            assert!(restore(&bytes[..end], &config).is_err(), "{hex} cut at {end}");
        }
        // A table of one element is read into a compact encoding, as in Redis; all others are
        // written as they were read.
        let sealed = dump(&value, &config);
        let again = unseal(&sealed, true, config.generation).expect("what was just sealed");
        if !matches!(bytes[0], kind::HASH | kind::ZSET) {
            assert_eq!(again, bytes, "{hex}");
        }
    }
}

#[test]
fn empty_collections_and_elements_that_are_there_twice_are_refused() {
    for (hex, error) in [
        ("0100", RdbError::Empty),
        ("0200", RdbError::Empty),
        ("0400", RdbError::Empty),
        ("0500", RdbError::Empty),
        ("1200", RdbError::Empty),
        ("1007070000000000ff", RdbError::Empty),
        ("020201610161", TWICE),
        ("04020161016101610162", TWICE),
        ("1013130000000400816102816202816102816202ff", TWICE),
        ("1013130000000300816102816202816102816202ff", RdbError::Damaged("a listpack")),
        ("1013130000000400816102816202816103816202ff", RdbError::Damaged("a listpack")),
        ("0b0c020000000200000001000100", RdbError::Damaged("an intset")),
        ("0b0c020000000200000002000100", RdbError::Damaged("an intset")),
        ("0b0c030000000200000001000200", RdbError::Damaged("an intset")),
    ] {
        assert_eq!(restore(&unhex(hex), &Config::default()).map(|_| ()), Err(error), "{hex}");
    }
}

/// Hashes whose fields have a time to live, as the servers write them.
#[test]
fn fields_keep_their_times_in_the_payloads_of_each_server() {
    for (generation, is_rewritten, hex) in [
        (
            Generation::Redis82,
            true,
            "19189c724e180900002d2d00000009008161020101f4189c724e1809000009816302c12c02f40c9e724e180900000981 620202010001ff",
        ),
        // The order of a table is that of its history.
        (Generation::Redis82, false, "18189c724e180900000341f50163c12c01000162c002010161c001"),
        (
            Generation::Valkey91,
            true,
            "16030161c001189c724e180900000162c002ffffffffffffffff0163c12c010c9e724e18090000",
        ),
    ] {
        let payload = unhex(&hex.replace(' ', ""));
        let config = Config::of(generation);
        let value = restore(&payload, &config).expect("a hash");
        assert_eq!(contents(&value), ("hash", ["a=1", "b=2", "c=300"].map(str::to_owned).to_vec()));
        let Value::Hash(hash) = &value else { panic!("no hash: {value:?}") };
        let times = ["a", "b", "c"].map(|field| hash.time_of(field.as_bytes()));
        assert_eq!(times, [Some(9_999_999_999_000), None, Some(9_999_999_999_500)]);
        let sealed = dump(&value, &config);
        let again = unseal(&sealed, true, generation).expect("a payload");
        assert!(!is_rewritten || again == payload, "{generation}: {again:02x?}");
        let again = restore(again, &config).expect("a hash");
        assert_eq!((again.encoding(), again.first_field_ms()), (value.encoding(), value.first_field_ms()));
        let old = Config::of(Generation::Redis70);
        assert!(restore(&payload, &old).is_err(), "7.0 knows no such value");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let word = || {
        prop_oneof![
            any::<i64>().prop_map(|n| Bytes::from(n.to_string())),
            any::<i16>().prop_map(|n| Bytes::from(n.to_string())),
            prop::collection::vec(any::<u8>(), 0..30).prop_map(Bytes::from),
            prop::collection::vec(0u8..3, 0..300).prop_map(Bytes::from),
        ]
    };
    let words = move || prop::collection::vec(word(), 1..600);
    let small = Encodings::default();
    prop_oneof![
        word().prop_map(|word| Value::String(Str::new(word))),
        words().prop_map(|words| Value::List(words.into_iter().collect())),
        words().prop_map(move |words| {
            let mut set = Set::default();
            for word in words {
                set.insert(word, &small);
            }
            Value::Set(set)
        }),
        words().prop_map(move |words| {
            let mut hash = Hash::default();
            for pair in words.chunks(2) {
                hash.set(&pair[0], pair[pair.len() - 1].clone(), &small);
            }
            Value::Hash(hash)
        }),
        prop::collection::vec((word(), any::<f64>()), 1..200).prop_map(move |members| {
            let mut set = SortedSet::default();
            for (member, score) in members {
                // A small set has no negative zero, so a set that becomes small loses it. Adding
                // zero removes it.
                set.insert(member, if score.is_nan() { 0.5 } else { score + 0.0 }, &small);
            }
            Value::SortedSet(Box::new(set))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_dumped_is_restored(value in values(), compression: bool) {
        let config = Config::default().with(|config| config.persistence.rdb_compression = compression);
        let sealed = dump(&value, &config);
        let restored = restore(unseal(&sealed, true, Generation::default()).expect("a payload"), &config).expect("a value");
        prop_assert_eq!(contents(&restored), contents(&value));
    }

    #[test]
    fn damaged_payloads_are_restored_or_refused(
        value in values(),
        compression: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        end in any::<prop::sample::Index>(),
    ) {
        let config = Config::default().with(|config| config.persistence.rdb_compression = compression);
        let sealed = dump(&value, &config);
        let mut payload = unseal(&sealed, true, Generation::default()).expect("a payload").to_vec();
        for (at, byte) in changes {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        let _ = restore(&payload, &config);
        payload.truncate(end.index(payload.len()));
        let _ = restore(&payload, &config);
    }

    #[test]
    fn bytes_from_anywhere_are_restored_or_refused(kind in 0u8..24, bytes in any::<Vec<u8>>()) {
        let _ = restore(&[&[kind][..], &bytes].concat(), &Config::default());
        let _ = unseal(&bytes, true, Generation::default());
    }
}

/// As each server dumps a stream with a group, a list of `a` and 12, a hash and a sorted set, or
/// small sets of strings, in the encodings that Redis 7.0 does not write.
#[test]
fn each_generation_writes_its_own_encodings() {
    const ROWS: &[(Generation, &str)] = &[
        (
            Generation::Redis62,
            "0f0110000000000000000100000000000000011d1d0000000a00010100010101816602000102 \
             01000100018176020401ff010101010167010101000000000000000100000000000000016267 \
             9e28a20100000101016362679e28a20100000100000000000000010000000000000001",
        ),
        (Generation::Redis62, "0e0110100000000d000000020000016103fdff"),
        (Generation::Redis62, "0d181800000013000000040000016603017603016e03c02c01ff"),
        (Generation::Redis62, "0c18180000001500000004000001610303312e3505016203f4ff"),
        (Generation::Redis82, "140d0d0000000200816102816202ff"),
        (Generation::Redis82, "1419190000000600000101010201826d3003826d3103826d3203ff"),
        (
            Generation::Redis82,
            "150110000000000000000100000000000000011d1d0000000a00010100010101816602000102 \
             01000100018176020401ff010101010100000101016701010101000000000000000100000000 \
             000000019e689e28a2010000010101639e689e28a20100009e689e28a2010000010000000000 \
             0000010000000000000001",
        ),
        (Generation::Valkey81, "140d0d0000000200816102816202ff"),
        (Generation::Valkey91, "140d0d0000000200816102816202ff"),
    ];
    for (generation, hex) in ROWS {
        let payload = unhex(&hex.replace(' ', ""));
        let config = Config::of(*generation).with(|config| config.persistence.rdb_compression = false);
        let value = restore(&payload, &config).expect("a value");
        let sealed = dump(&value, &config);
        assert_eq!(unseal(&sealed, true, *generation), Ok(&payload[..]), "{generation}: {hex}");
    }
}

/// The encodings that came with version 11 are unknown before, and their damages are found.
#[test]
fn sets_in_listpacks_are_read_from_version_11_on() {
    for generation in Generation::ALL {
        let config = Config::of(generation);
        let read = |hex: &str| restore(&unhex(hex), &config).map(|value| contents(&value).1);
        let set = read("140d0d0000000200816102816202ff");
        if generation.rdb_version() < 11 {
            assert_eq!(set, Err(RdbError::Unsupported("a value of type 20".into())), "{generation}");
            assert_eq!(read("1500"), Err(RdbError::Unsupported("a value of type 21".into())), "{generation}");
            continue;
        }
        assert_eq!(set, Ok(vec!["a".to_owned(), "b".to_owned()]), "{generation}");
        assert_eq!(read("140d0d0000000200816102816102ff"), Err(TWICE), "{generation}");
        assert_eq!(read("1407070000000000ff"), Err(RdbError::Empty), "{generation}");
    }
}
