//! Requests to a peer, and the callers that wait for the answers.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use tokio::sync::{mpsc, oneshot};

use super::protocol::{Numbered, Request, Said};

/// A peer's answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has connected, or has released.
    Done,
    /// It has the lock, or a new lease on it.
    Has { until_ms: Option<i64>, token: Option<u64>, owner: Option<String> },
    /// Another owner has the lock.
    Refused,
}

/// An error that a library has reported in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) text: String,
    /// True if the lock certainly did not change.
    pub(crate) definite: bool,
}

/// A report of a peer without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// A lock was lost.
    Lost { hold: u64 },
    /// A lease was renewed.
    Renewed { hold: u64, until_ms: Option<i64> },
}

type Result<T> = std::result::Result<T, Refusal>;

/// A request, and the sender that wakes its caller.
type Waiting = (Request, oneshot::Sender<Result<Answer>>);

/// The conversation with one process.
#[derive(Debug)]
pub(crate) struct Link {
    lines: mpsc::UnboundedSender<String>,
    last: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, Waiting>>,
}

impl Link {
    /// Creates a link that sends its lines through this channel.
    pub(crate) fn new(lines: mpsc::UnboundedSender<String>) -> Link {
        Link { lines, last: Cell::default(), waiting: RefCell::default() }
    }

    /// Sends a request, and waits without a limit for the answer. Returns the number of the request
    /// as well.
    pub(crate) async fn ask(&self, request: Request) -> (u64, Result<Answer>) {
        let id = self.last.get() + 1;
        self.last.set(id);
        let line = serde_json::to_string(&Numbered { id, request: &request });
        let mut line = line.expect("a request is JSON");
        line.push('\n');
        let (tell, told) = oneshot::channel();
        self.waiting.borrow_mut().insert(id, (request, tell));
        // If the process is gone, so is the run.
        let _ = self.lines.send(line);
        match told.await {
            Ok(answer) => (id, answer),
            Err(_) => std::future::pending().await,
        }
    }

    /// Processes a line of the peer. Returns a report that was not requested.
    ///
    /// # Errors
    /// A message, if the line breaks the protocol.
    pub(crate) fn hear(&self, line: &str) -> std::result::Result<Option<Unasked>, String> {
        let said = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        let none = None;
        let has = |until_ms, token, owner| Ok(Answer::Has { until_ms, token, owner });
        let (id, answer) = match said {
            Said::Ready { id } | Said::Released { id } => (id, Ok(Answer::Done)),
            Said::Granted { id, until_ms, token, owner } => (id, has(until_ms, token, owner)),
            Said::Extended { id, until_ms } => (id, has(until_ms, None, none)),
            Said::Refused { id } => (id, Ok(Answer::Refused)),
            Said::Error { id, text, definite } => (id, Err(Refusal { text, definite })),
            Said::Lost { hold } => return Ok(Some(Unasked::Lost { hold })),
            Said::Renewed { hold, until_ms } => return Ok(Some(Unasked::Renewed { hold, until_ms })),
            Said::Hello(_) => return Err(format!("it says hello again: {line}")),
        };
        let Some((request, tell)) = self.waiting.borrow_mut().remove(&id) else {
            return Err(format!("nothing with this id is to be answered: {line}"));
        };
        let fits = match (&request, &answer) {
            (_, Err(_)) => true,
            (Request::Init { .. } | Request::Release { .. }, Ok(answer)) => *answer == Answer::Done,
            (Request::Acquire { .. }, Ok(answer)) => *answer != Answer::Done,
            (Request::Extend { .. }, Ok(answer)) => matches!(answer, Answer::Has { .. }),
        };
        if !fits {
            return Err(format!("that is no answer to {request:?}: {line}"));
        }
        // A caller that is gone with its host needs no answer.
        let _ = tell.send(answer);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_answer_goes_to_its_request() {
        let (lines, mut sent) = mpsc::unbounded_channel();
        let link = Link::new(lines);
        let acquire = || Request::Acquire { lock: "a".into(), wait_ms: None, lease_ms: Some(1) };
        let answers = async {
            for id in 1..=2 {
                assert!(sent.recv().await.is_some_and(|line| line.contains(&format!("\"id\":{id},"))));
            }
            assert_eq!(link.hear(r#"{"type":"lost","hold":9}"#), Ok(Some(Unasked::Lost { hold: 9 })));
            assert_eq!(link.hear(r#"{"type":"refused","id":2}"#), Ok(None));
            assert_eq!(link.hear(r#"{"type":"granted","id":1,"token":4}"#), Ok(None));
            let rows = [
                (r#"{"type":"refused","id":2}"#, "nothing with this id"),
                (r#"{"type":"hello","protocol":1,"library":"x"}"#, "hello again"),
                ("{", "EOF"),
            ];
            for (line, part) in rows {
                assert!(link.hear(line).is_err_and(|error| error.contains(part)), "{line}");
            }
        };
        let (first, second, ()) = tokio::join!(link.ask(acquire()), link.ask(acquire()), answers);
        assert_eq!(first, (1, Ok(Answer::Has { until_ms: None, token: Some(4), owner: None })));
        assert_eq!(second, (2, Ok(Answer::Refused)));
    }

    #[tokio::test]
    async fn what_is_no_answer_to_a_request() {
        let rows = [
            (Request::Release { hold: 1 }, r#"{"type":"granted","id":1}"#),
            (
                Request::Acquire { lock: "a".into(), wait_ms: None, lease_ms: None },
                r#"{"type":"ready","id":1}"#,
            ),
            (Request::Extend { hold: 1, lease_ms: 1 }, r#"{"type":"refused","id":1}"#),
        ];
        for (request, line) in rows {
            let (lines, mut sent) = mpsc::unbounded_channel();
            let link = Link::new(lines);
            tokio::select! {
                biased;
                _ = link.ask(request) => panic!("{line} is an answer"),
                _ = sent.recv() => {}
            }
            assert!(link.hear(line).is_err_and(|error| error.contains("no answer")), "{line}");
        }
    }
}
