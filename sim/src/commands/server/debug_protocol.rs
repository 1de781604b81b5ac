//! One reply of each kind, which DEBUG PROTOCOL returns for tests of clients.

use bytes::Bytes;

use crate::{
    commands::Error,
    resp::{Protocol, Reply},
};

/// Returns the reply of a kind.
#[expect(clippy::approx_constant, reason = "it is the number that Redis answers")]
pub(super) fn sample(kind: &[u8], protocol: Protocol) -> Result<Reply, Error> {
    let numbers = || (0..3).map(Reply::Integer).collect::<Vec<_>>();
    Ok(match &kind.to_ascii_lowercase()[..] {
        b"string" => Reply::bulk("Hello World"),
        b"integer" => Reply::Integer(12345),
        b"double" => Reply::Double(3.141),
        b"null" => Reply::Null,
        b"array" => Reply::Array(numbers()),
        b"set" => Reply::Set(numbers()),
        b"map" => Reply::Map((0..3).map(|n| (Reply::Integer(n), Reply::Boolean(n == 1))).collect()),
        b"push" if protocol == Protocol::Resp2 => {
            return Err(Error::of("ERR RESP2 is not supported by this command"));
        }
        b"push" => Reply::Several(vec![
            Reply::Push(vec![Reply::bulk("server-cpu-usage"), Reply::Integer(42)]),
            Reply::bulk("Some real reply following the push reply"),
        ]),
        b"attrib" => {
            let popularity = Reply::Array(vec![Reply::bulk("key:123"), Reply::Integer(90)]);
            Reply::Several(vec![
                Reply::Attribute(vec![(Reply::bulk("key-popularity"), popularity)]),
                Reply::bulk("Some real reply following the attribute"),
            ])
        }
        b"verbatim" => Reply::Verbatim(*b"txt", Bytes::from_static(b"This is a verbatim\nstring")),
        b"true" => Reply::Boolean(true),
        b"false" => Reply::Boolean(false),
        b"bignum" => Reply::BigNumber(Bytes::from_static(b"1234567999999999999999999999999999999")),
        _ => {
            return Err(Error::of(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    })
}
