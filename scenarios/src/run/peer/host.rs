//! A client that is a separate process with a lock library on trial. Its host starts, stops and
//! kills it, and the same scripts and workloads as for our own client send it requests for locks.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use lockstorm_world::{HostCtx, HostState, time::True};
use tokio::{io::AsyncWriteExt, sync::mpsc};

use super::{Can, Hello, InitLock, Link, Peer, PeerProcess, Pipes, Reader, Request};
use crate::{
    file::{
        plan::{PlannedLine, PlannedPeer},
        scenario::Client,
    },
    run::{
        Engine, Stage, client,
        process::{Planned, Process, Program},
        real::{Opening, PORT},
        recorder::Line,
        subject::{
            Local, Subject, SubjectContext,
            peer::{Library, PeerSubject},
        },
    },
    units::millis,
};

/// The longest time for a peer's connection to its nodes.
const READY_MAX: Duration = Duration::from_secs(30);

/// The peer of one client over all its lives.
struct PeerProgram {
    peer: Rc<Peer>,
    process: RefCell<Option<PeerProcess>>,
    /// The pipes of a process that has sent its hello, until its host takes them.
    pipes: RefCell<Option<Pipes>>,
    /// The reason why the process did not come up before the run began.
    problem: RefCell<Option<String>>,
    /// All peers wait for this. `is_ready` is set once this one is ready or will never be.
    connecting: Rc<Opening>,
    is_ready: Cell<bool>,
}

impl PeerProgram {
    fn new(peer: Rc<Peer>, connecting: Rc<Opening>) -> PeerProgram {
        connecting.awaits_one_more();
        let (process, pipes, problem, is_ready) = Default::default();
        PeerProgram { peer, process, pipes, problem, connecting, is_ready }
    }

    fn start(&self) -> Result<Pipes, String> {
        let command = &self.peer.command;
        let (process, pipes) = PeerProcess::start(command).map_err(|error| format!("{command}: {error}"))?;
        self.process.replace(Some(process));
        Ok(pipes)
    }

    /// Stops others from waiting for this peer.
    fn is_ready(&self) {
        if !self.is_ready.replace(true) {
            self.connecting.one_is_ready();
        }
    }

    /// Returns the first and last lines that the process wrote to its standard error.
    fn last_words(&self) -> String {
        let process = self.process.borrow();
        process.as_ref().map_or_else(|| "it has ended".to_owned(), PeerProcess::last_words)
    }
}

impl Program for PeerProgram {
    fn comes_up(&self, _name: &str) {
        let started = self.start().and_then(|mut pipes| {
            let process = self.process.borrow();
            let process = process.as_ref().ok_or("it has not started")?;
            pipes.hello(process).map(|_| pipes)
        });
        match started {
            Ok(pipes) => drop(self.pipes.replace(Some(pipes))),
            Err(why) => drop(self.problem.replace(Some(why))),
        }
    }

    fn is_now(&self, state: HostState) {
        if state == HostState::Down {
            self.pipes.take();
            self.process.take();
            if !self.is_ready.replace(true) {
                self.connecting.one_is_gone();
            }
        } else if let Some(process) = &*self.process.borrow() {
            process.hold(matches!(state, HostState::Paused | HostState::Suspended));
        }
    }

    fn end(&self) {
        self.pipes.take();
        self.process.take();
    }
}

/// A client that runs as a peer.
struct PeerClient {
    stage: Rc<Stage>,
    client: Rc<Client>,
    lines: Rc<Vec<PlannedLine>>,
    program: Rc<PeerProgram>,
}

pub(in crate::run) fn process(planned: &Planned<'_>) -> Option<Box<dyn Process>> {
    let PlannedPeer { client, lines, peer, .. } =
        planned.software().filter(|_| planned.engine == Engine::Real)?;
    let program = Rc::new(PeerProgram::new(peer.clone(), planned.stage.connecting.clone()));
    let (client, lines) = (Rc::new(client.clone()), Rc::new(lines.clone()));
    Some(Box::new(PeerClient { stage: planned.stage.clone(), client, lines, program }))
}

impl Process for PeerClient {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        let (stage, client) = (self.stage.clone(), self.client.clone());
        let (lines, program) = (self.lines.clone(), self.program.clone());
        Box::pin(async move {
            if let Err(why) = play(&ctx, &stage, &client, &lines, &program).await {
                stage.fail(&ctx, format!("the peer of {}: {why}", ctx.name()));
            }
        })
    }

    fn program(&self) -> Option<Rc<dyn Program>> {
        Some(self.program.clone())
    }
}

/// Runs the client from one start to its crash.
async fn play(
    ctx: &HostCtx,
    stage: &Rc<Stage>,
    client: &Client,
    lines: &Rc<Vec<PlannedLine>>,
    program: &Rc<PeerProgram>,
) -> Result<(), String> {
    stage.opening.is_over().await;
    if let Some(why) = program.problem.take() {
        return Err(why);
    }
    let context = client::context(ctx, stage, client);
    let owner = context.history.on(Line::FIRST).owner();
    let (link, mut reader) = converse(program).await?;
    let library = Library::new(&context, link.clone(), program.peer.can(Can::Wait));
    let request = init(&context).await.map_err(|error| error.to_string())?;
    let hearing = {
        let (link, library, program) = (link.clone(), library.clone(), program.clone());
        async move {
            loop {
                let line = reader.next().await.map_err(|error| error.to_string())?;
                let line = line.ok_or_else(|| program.last_words())?;
                link.hear(&line)?.into_iter().for_each(|unasked| library.hears(unasked));
            }
        }
    };
    let work = async {
        let late = ctx.wire_delay(READY_MAX);
        tokio::select! {
            biased;
            (_, answer) = link.ask(request) => drop(answer.map_err(|refusal| refusal.text)?),
            () = late => return Err(format!("it is not ready after {READY_MAX:?}")),
        }
        program.is_ready();
        stage.connecting.is_over().await;
        if stage.connecting.lacks_one() {
            return Err("another peer was killed before it was ready".to_owned());
        }
        if let Some(late) = is_late(ctx, lines) {
            return Err(late);
        }
        let subject: Rc<dyn Subject> = Rc::new(PeerSubject(library.clone()));
        let subjects = context.plan.locks.iter().map(|_| subject.clone()).collect();
        client::perform(stage, &context, lines, vec![owner], vec![subjects]).await;
        Ok(())
    };
    // Poll the incoming lines first: an answer that has arrived is older than any timer.
    tokio::select! {
        biased;
        heard = hearing => heard,
        worked = work => worked,
    }
}

/// Begins the conversation with the process. Starts the process unless it runs already.
async fn converse(program: &PeerProgram) -> Result<(Rc<Link>, Reader), String> {
    let said_hello = program.pipes.take();
    let is_new = said_hello.is_none();
    let pipes = said_hello.map_or_else(|| program.start(), Ok)?;
    let (mut input, mut reader) = pipes.open().map_err(|error| error.to_string())?;
    if is_new {
        let line = reader.next().await.map_err(|error| error.to_string())?;
        let line = line.ok_or_else(|| program.last_words())?;
        Hello::parse(&line)?;
    }
    let (lines, mut given) = mpsc::unbounded_channel::<String>();
    tokio::task::spawn_local(async move {
        while let Some(line) = given.recv().await {
            // The reader detects the end of the process.
            if input.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    });
    Ok((Rc::new(Link::new(lines)), reader))
}

/// Returns a peer's first request. It contains the addresses of the nodes beyond the links from the
/// peer's host.
async fn init(context: &SubjectContext) -> std::io::Result<Request> {
    let (ctx, plan) = (&context.ctx, &context.plan);
    let mut locks = Vec::new();
    for (lock, groups) in plan.locks.iter().zip(&context.groups) {
        let mut nodes = Vec::new();
        // A library gets only the first node of a group of replicas that its client knows.
        for node in groups.iter().filter_map(|group| group.first()) {
            nodes.push(ctx.gate(node, PORT).await?.to_string());
        }
        let name = plan.scenario.lock.keys_in_redis().nth(locks.len()).unwrap_or(&lock.name).to_owned();
        locks.push(InitLock { lock: lock.name.clone(), name, nodes });
    }
    let first = &plan.locks[0].written;
    Ok(Request::Init {
        host: context.history.client_id(),
        locks,
        watchdog_ms: millis(first.watchdog.0),
        timeout_ms: first.response_timeout.map(|timeout| millis(timeout.0)),
    })
}

/// Returns a message if the first step of a newly started process is already overdue.
fn is_late(ctx: &HostCtx, lines: &[PlannedLine]) -> Option<String> {
    let first = lines.first()?.script.first()?.at?;
    let now = ctx.moment().0.since(True::ZERO);
    let late = ctx.incarnation() == 0 && now > first.0;
    late.then(|| {
        format!("it was ready {now:?} after the start, and its first step is to be taken {first} after it")
    })
}
