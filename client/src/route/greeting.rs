//! Captures what a server sends while a connection is set up, even if it hangs up immediately.
//!
//! A server that refuses a connection sends the reason and closes it, without waiting for a
//! request. The RESP reader of the `redis` crate drops replies that no request asked for, and hides
//! the reason of a refused login. Under TLS 1.3 a server also refuses a client certificate only
//! after the handshake; the RESP reader then sees just a broken stream.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::env::BoxStream;
use crate::mutex::locked;
use crate::tls;

/// Longer greetings are cut to this many bytes.
const MOST: usize = 4096;

/// The bytes received on a stream until it is set up.
#[derive(Clone, Default)]
pub(super) struct Greeting(Arc<Mutex<Option<Heard>>>);

#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    /// The reason for which one side did not accept the other.
    tls_refusal: Option<String>,
}

impl Greeting {
    /// Records what `stream` receives, until [`Greeting::end`].
    pub(super) fn of(stream: BoxStream) -> (Self, Overheard) {
        let greeting = Self(Arc::new(Mutex::new(Some(Heard::default()))));
        (greeting.clone(), Overheard { stream, greeting: Some(greeting) })
    }

    /// Ends the recording: the connection is set up.
    pub(super) fn end(&self) {
        *locked(&self.0) = None;
    }

    /// Returns the first error reply, without its `-`.
    pub(super) fn refusal(&self) -> Option<String> {
        let heard = locked(&self.0);
        let text = String::from_utf8_lossy(&heard.as_ref()?.bytes);
        text.lines().find_map(|line| line.strip_prefix('-')).map(|line| line.trim_end().to_owned())
    }

    /// Returns the reason for which TLS ended, if one side did not accept the other.
    pub(super) fn tls_refusal(&self) -> Option<String> {
        locked(&self.0).as_ref()?.tls_refusal.clone()
    }

    /// Records `bytes`. Returns false if the greeting has ended.
    fn hear(&self, bytes: &[u8]) -> bool {
        let mut heard = locked(&self.0);
        let Some(Heard { bytes: all, .. }) = heard.as_mut() else { return false };
        all.extend_from_slice(&bytes[..bytes.len().min(MOST - all.len().min(MOST))]);
        true
    }

    /// Records the TLS reason of a broken stream.
    fn break_off(&self, error: &io::Error) {
        if let (Some(heard), Some(refusal)) = (locked(&self.0).as_mut(), tls::refusal(error)) {
            heard.tls_refusal = Some(refusal);
        }
    }
}

/// A stream whose input is recorded while it is set up.
pub(super) struct Overheard {
    stream: BoxStream,
    greeting: Option<Greeting>,
}

impl Overheard {
    fn hear(&mut self, bytes: &[u8]) {
        if self.greeting.as_ref().is_some_and(|greeting| !greeting.hear(bytes)) {
            self.greeting = None;
        }
    }

    fn break_off(&self, error: &io::Error) {
        if let Some(greeting) = &self.greeting {
            greeting.break_off(error);
        }
    }

    /// Reads what the server sent before it hung up without reading our request.
    fn hear_the_rest(&mut self, cx: &mut Context<'_>) {
        while self.greeting.is_some() {
            let mut bytes = [0; 512];
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => self.hear(buffer.filled()),
                Poll::Ready(Err(error)) => return self.break_off(&error),
                _ => return,
            }
        }
    }
}

impl AsyncRead for Overheard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        match &read {
            Poll::Ready(Err(error)) => self.break_off(error),
            _ if self.greeting.is_some() => self.hear(&buffer.filled()[before..]),
            _ => {}
        }
        read
    }
}

impl AsyncWrite for Overheard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if matches!(written, Poll::Ready(Err(_))) {
            self.hear_the_rest(cx);
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        if matches!(written, Poll::Ready(Err(_))) {
            self.hear_the_rest(cx);
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that has hung up: writes fail, and what it sent before can be read, followed by the
    /// reason, or else by the end of the stream. That end is read once.
    struct HungUp {
        said: &'static [u8],
        reason: Option<io::Error>,
        is_over: bool,
    }

    impl HungUp {
        fn after(said: &'static [u8], reason: Option<io::Error>) -> Box<HungUp> {
            Box::new(HungUp { said, reason, is_over: false })
        }
    }

    impl AsyncRead for HungUp {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            assert!(!self.is_over, "the stream is read beyond its end");
            self.is_over = self.said.is_empty();
            if self.is_over {
                return Poll::Ready(self.reason.take().map_or(Ok(()), Err));
            }
            let (now, later) = self.said.split_at(self.said.len().min(buffer.remaining()));
            buffer.put_slice(now);
            self.said = later;
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for HungUp {
        fn poll_write(self: Pin<&mut Self>, _cx: &mut Context<'_>, _bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[cfg(feature = "tls")]
    #[tokio::test]
    async fn a_write_that_fails_is_followed_by_what_the_server_said_before_it_hung_up() {
        use tokio::io::AsyncWriteExt;
        use tokio_rustls::rustls::{AlertDescription, Error};
        let alert = Error::AlertReceived(AlertDescription::CertificateRequired);
        let alert = io::Error::new(io::ErrorKind::InvalidData, alert);
        let (greeting, mut stream) = Greeting::of(HungUp::after(b"-ERR closing\r\n", Some(alert)));
        stream.write_all(b"PING\r\n").await.unwrap_err();
        assert_eq!(greeting.refusal().as_deref(), Some("ERR closing"));
        assert_eq!(greeting.tls_refusal().as_deref(), Some("the server asks for a client certificate"));
    }

    #[tokio::test]
    async fn after_a_write_that_fails_the_stream_is_read_up_to_its_end() {
        use tokio::io::AsyncWriteExt;
        let (greeting, mut stream) = Greeting::of(HungUp::after(b"-ERR closing\r\n", None));
        stream.write_all(b"PING\r\n").await.unwrap_err();
        assert_eq!(greeting.refusal().as_deref(), Some("ERR closing"));
        assert_eq!(greeting.tls_refusal(), None, "it is no matter of TLS");
    }

    /// A TLS stream may keep written bytes back until it is flushed.
    #[tokio::test]
    async fn what_is_flushed_is_flushed_on_the_stream_below() {
        use tokio::io::AsyncWriteExt;
        let (near, mut far) = tokio::io::duplex(64);
        let (_greeting, mut stream) = Greeting::of(Box::new(tokio::io::BufWriter::new(near)));
        stream.write_all(b"PING").await.unwrap();
        stream.flush().await.unwrap();
        let mut read = [0; 4];
        let read =
            futures_util::FutureExt::now_or_never(tokio::io::AsyncReadExt::read_exact(&mut far, &mut read));
        assert!(read.is_some(), "it is kept back");
    }

    /// A server that never stops sending must not fill the memory of its client.
    #[test]
    fn a_refusal_is_kept_up_to_a_length() {
        let (greeting, _stream) = Greeting::of(Box::new(tokio::io::empty()));
        assert!(greeting.hear(b"-ERR max number "));
        assert!(greeting.hear(b"of clients reached\r\n"));
        assert_eq!(greeting.refusal().as_deref(), Some("ERR max number of clients reached"));
        for _ in 0..3 {
            assert!(greeting.hear(&[b'x'; MOST / 2 + 1]));
        }
        assert_eq!(locked(&greeting.0).as_ref().map(|heard| heard.bytes.len()), Some(MOST));
        greeting.end();
        assert!(!greeting.hear(b"+OK"));
    }
}
