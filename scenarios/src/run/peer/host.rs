//! A client that is a process of its own, with a lock library on trial: started, stopped and killed
//! as its host is, and asked for its locks by the same scripts and workloads as our own client.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use lockstorm_sim::{
    time::True,
    world::{HostCtx, HostState},
};
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

/// How long a peer may take to connect to its nodes.
const READY_MAX: Duration = Duration::from_secs(30);

/// The peer of one client over all its lives.
struct PeerProgram {
    peer: Rc<Peer>,
    process: RefCell<Option<PeerProcess>>,
    /// Of a process that has said hello and that its host has not taken over yet.
    pipes: RefCell<Option<Pipes>>,
    /// Why the process that was to be up when the run began is not.
    problem: RefCell<Option<String>>,
    /// What all peers wait for, and whether this one is ready.
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

    /// Others need not wait for it any more.
    fn is_ready(&self) {
        if !self.is_ready.replace(true) {
            self.connecting.one_is_ready();
        }
    }

    /// What the process has complained of last.
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

/// A client that a peer is.
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

/// Plays the client from one start to its crash.
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
    // What is heard comes first: an answer that has arrived is older than any timer.
    tokio::select! {
        biased;
        heard = hearing => heard,
        worked = work => worked,
    }
}

/// Begins the conversation with the process, which is started unless it is there already.
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
            // A process that is gone is found by reading.
            if input.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    });
    Ok((Rc::new(Link::new(lines)), reader))
}

/// What a peer is told at first: where its nodes are, beyond the links from its host.
async fn init(context: &SubjectContext) -> std::io::Result<Request> {
    let (ctx, plan) = (&context.ctx, &context.plan);
    let mut locks = Vec::new();
    for (lock, groups) in plan.locks.iter().zip(&context.groups) {
        let mut nodes = Vec::new();
        // Of a group of replicas a library is told the first node that its client knows.
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

/// That the first step of a process that has just been started should have been taken already.
fn is_late(ctx: &HostCtx, lines: &[PlannedLine]) -> Option<String> {
    let first = lines.first()?.script.first()?.at?;
    let now = ctx.moment().0.since(True::ZERO);
    let late = ctx.incarnation() == 0 && now > first.0;
    late.then(|| {
        format!("it was ready {now:?} after the start, and its first step is to be taken {first} after it")
    })
}
