//! The resource that the lock guards. It accepts writes over the network, and rejects those that
//! its fence refuses.
//!
//! It records for each rule if the write would be accepted, independent of its own rule, so that
//! one run answers for all rules.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use lockstorm_world::{HostCtx, TcpStream};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::{
    Stage,
    process::{Planned, Process},
};
use crate::{
    file::{plan::PlannedResource, scenario::Fence},
    judge::history::{Accepted, EventKind, Lock, Owner, WriteLine},
    run::subject::Local,
};

pub(super) const PORT: u16 = 7000;

/// The highest tokens seen. They survive a crash of the resource, because a fence without durable
/// state would be useless.
#[derive(Debug, Default)]
struct Memory {
    /// The highest token of each lock, and its owner. Tokens of different locks cannot be compared.
    highest: BTreeMap<Lock, (u64, Owner)>,
}

impl Memory {
    /// Decides for each rule if it accepts a write with this token.
    fn judge(&mut self, lock: Lock, owner: Owner, token: Option<u64>) -> Accepted {
        let highest = self.highest.get(&lock).copied();
        // A write without a token is indistinguishable from an old one. A fence rejects it once it
        // has seen any token.
        let Some(token) = token else {
            let unfenced = highest.is_none();
            return Accepted { greater: unfenced, at_least: unfenced };
        };
        let (greater, at_least) = match highest {
            None => (true, true),
            // The owner of the highest token may write repeatedly.
            Some((highest, of)) => (token > highest || (token == highest && of == owner), token >= highest),
        };
        if highest.is_none_or(|(highest, _)| token > highest) {
            self.highest.insert(lock, (token, owner));
        }
        Accepted { greater, at_least }
    }
}

/// The guarded resource. Its memory outlives a crash.
struct Resource {
    stage: Rc<Stage>,
    memory: Rc<RefCell<Memory>>,
}

pub(super) fn process(planned: &Planned<'_>) -> Option<Box<dyn Process>> {
    planned.software::<PlannedResource>()?;
    Some(Box::new(Resource { stage: planned.stage.clone(), memory: Rc::default() }))
}

impl Process for Resource {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(play(ctx, self.stage.clone(), self.memory.clone()))
    }
}

/// Serves the resource's connections.
async fn play(ctx: HostCtx, stage: Rc<Stage>, memory: Rc<RefCell<Memory>>) {
    let Ok(listener) = ctx.listen(PORT).await else { return };
    while let Ok((stream, _)) = listener.accept().await {
        let (ctx, stage, memory) = (ctx.clone(), stage.clone(), memory.clone());
        tokio::task::spawn_local(async move {
            let (reading, mut writing) = tokio::io::split(stream);
            let mut lines = BufReader::new(reading).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Some(accepted) = write(&ctx, &stage, &memory, &line) else { return };
                let answer: &[u8] = if accepted { b"accepted\n" } else { b"refused\n" };
                if writing.write_all(answer).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// Processes one line. Returns true if the resource's own rule accepts the write, `None` if the
/// line is malformed.
fn write(ctx: &HostCtx, stage: &Stage, memory: &RefCell<Memory>, line: &str) -> Option<bool> {
    let WriteLine { lock, owner, token, sent } = line.parse().ok()?;
    let accepted = memory.borrow_mut().judge(lock, owner, token);
    let what = EventKind::Write { lock, owner, token, sent, accepted };
    stage.shared.get().history.record(ctx.moment().0, stage.host(ctx.name()), what);
    let fence = stage.plan.scenario.resource.as_ref().map_or(Fence::None, |resource| resource.fence);
    Some(fence.accepts(accepted))
}

/// One client's connection to the resource.
pub(super) struct Writer {
    ctx: HostCtx,
    stream: RefCell<Option<Connected>>,
}

type Connected =
    (tokio::io::Lines<BufReader<tokio::io::ReadHalf<TcpStream>>>, tokio::io::WriteHalf<TcpStream>);

impl Writer {
    pub(super) fn new(ctx: HostCtx) -> Writer {
        Writer { ctx, stream: RefCell::default() }
    }

    /// Connects early, so that a later write needs one message and no handshake.
    pub(super) async fn connect(&self) {
        if let Ok(stream) = self.ctx.dial("resource", PORT).await {
            let (reading, writing) = tokio::io::split(stream);
            self.stream.replace(Some((BufReader::new(reading).lines(), writing)));
        }
    }

    /// Writes under this lock and waits for the answer. Returns true if the write was accepted.
    pub(super) async fn write(&self, lock: Lock, owner: Owner, token: Option<u64>) -> bool {
        let mut taken = self.stream.take();
        if taken.is_none() {
            // The resource was not up before, or the connection has broken.
            self.connect().await;
            taken = self.stream.take();
        }
        let Some((mut lines, mut writing)) = taken else { return false };
        let line = format!("{}\n", WriteLine { lock, owner, token, sent: self.ctx.moment().0 });
        if writing.write_all(line.as_bytes()).await.is_err() {
            return false;
        }
        let answer = lines.next_line().await;
        self.stream.replace(Some((lines, writing)));
        matches!(answer, Ok(Some(answer)) if answer == "accepted")
    }
}
