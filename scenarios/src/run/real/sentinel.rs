//! A Sentinel that is a process of a real server. Its events come from a subscription.

use std::rc::Rc;

use lockstorm_world::{HostCtx, HostState};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    sync::oneshot,
};

use super::{AGAIN, START_MAX, announce, files, lives::Lives, places::SENTINEL_PORT, process::Home};
use crate::{
    file::{plan::PlannedSentinel, server::Server},
    judge::history::EventKind,
    run::{
        Engine, Stage,
        operator::{self, BACK_DOOR, Console, Operated},
        process::{Planned, Process, Program},
        subject::Local,
    },
};

/// The Sentinel of one host over all its lives.
struct RealSentinel {
    /// Its file, which names hosts.
    file: String,
    password: String,
    server: Option<Server>,
    console: Console,
    lives: Lives,
}

impl Operated for RealSentinel {
    fn console(&self) -> &Console {
        &self.console
    }

    fn is_master(&self) -> bool {
        false
    }
}

impl Program for RealSentinel {
    fn is_now(&self, state: HostState) {
        self.lives.is_now(state);
    }

    // A Sentinel counts the time without word from a master, so it starts with the run.
    fn comes_up(&self, _: &str) {}

    fn end(&self) {
        self.lives.end();
    }
}

/// A Sentinel process of this machine, for a Sentinel of a run in real time.
struct RealProcess {
    stage: Rc<Stage>,
    sentinel: Rc<RealSentinel>,
}

pub(in crate::run) fn process(planned: &Planned<'_>) -> Option<Box<dyn Process>> {
    let sentinel = planned.software::<PlannedSentinel>().filter(|_| planned.engine == Engine::Real)?;
    let server = sentinel.server.clone().and_then(Result::ok);
    let program = server.as_ref().map_or_else(|| "redis-server".into(), |server| server.program.clone());
    let password = sentinel.options.iter().find(|(name, _)| name == "requirepass");
    let password = password.map_or_else(String::new, |(_, value)| value.clone());
    let lives = Lives::new(program, planned.stage.opening.clone());
    let (file, console) = (sentinel.file.clone(), Console::default());
    let sentinel = Rc::new(RealSentinel { file, password, server, console, lives });
    Some(Box::new(RealProcess { stage: planned.stage.clone(), sentinel }))
}

impl Process for RealProcess {
    fn run(&self, ctx: HostCtx) -> Local<'static, ()> {
        Box::pin(play(ctx, self.stage.clone(), self.sentinel.clone()))
    }

    fn node(&self) -> Option<Rc<dyn Operated>> {
        Some(self.sentinel.clone())
    }

    fn program(&self) -> Option<Rc<dyn Program>> {
        Some(self.sentinel.clone())
    }
}

impl RealSentinel {
    /// Starts the Sentinel if it is not running, with the file that it has written if it had one.
    fn start(&self, name: &str, stage: &Stage) -> std::io::Result<Rc<Home>> {
        let ip = stage.places.ip(name).ok_or(std::io::ErrorKind::AddrNotAvailable)?;
        self.lives.start(
            || Home::at(name, ip, false),
            |home| {
                let own = (name, home.address);
                let file = files::sentinel_file(&self.file, &stage.places, own, self.server.as_ref());
                home.begin_file(files::SENTINEL_FILE, &file)?;
                Ok([files::SENTINEL_FILE, "--sentinel"].map(str::to_owned).to_vec())
            },
        )
    }
}

/// Runs a Sentinel from one start to its crash.
async fn play(ctx: HostCtx, stage: Rc<Stage>, sentinel: Rc<RealSentinel>) {
    let started = sentinel.start(ctx.name(), &stage);
    let home = match started.map_err(|error| error.to_string()) {
        Ok(home) => home,
        Err(why) => {
            let why = stage.places.lack().unwrap_or(why);
            return stage.fail(&ctx, format!("{} does not start: {why}", sentinel.lives.program.display()));
        }
    };
    if let Err(why) = announce(&ctx, &stage.places, &home, SENTINEL_PORT) {
        return stage.fail(&ctx, why);
    }
    let (deadline, mut subscribed) = (ctx.monotonic() + START_MAX, None);
    while subscribed.is_none() && ctx.monotonic() < deadline && !sentinel.lives.has_ended() {
        subscribed = subscribe(&ctx, &sentinel.password).await;
        if subscribed.is_none() {
            ctx.wire_delay(AGAIN).await;
        }
    }
    let Some(mut lines) = subscribed else {
        let words = home.last_words();
        return stage.fail(&ctx, format!("the Sentinel of {} did not start: {words}", ctx.name()));
    };
    ctx.stand_for(SENTINEL_PORT, Some(home.address));
    sentinel.lives.is_opened();
    let (console, password) = (sentinel.console.clone(), sentinel.password.clone());
    tokio::task::spawn_local(operator::operate(ctx.clone(), SENTINEL_PORT, console, password));
    let (ended, end) = oneshot::channel();
    let recording = stage.clone();
    stage.outside.give(async move {
        let host = recording.host(ctx.name());
        while let Some((event, message)) = next_event(&mut lines).await {
            let message = recording.places.named(&message).into();
            let what = EventKind::Sentinel { event: event.into(), message };
            recording.shared.get().history.record(ctx.moment().0, host, what);
        }
        // The receiver is dropped if the Sentinel has crashed.
        let _ = ended.send(());
    });
    let _ = end.await;
}

/// The lines of a subscription.
type Told = Lines<BufReader<lockstorm_world::TcpStream>>;

/// Subscribes to all events of the Sentinel on this host. Returns `None` if it does not answer yet.
async fn subscribe(ctx: &HostCtx, password: &str) -> Option<Told> {
    let mut stream = ctx.dial(ctx.name(), BACK_DOOR).await.ok()?;
    if !password.is_empty() {
        let auth = format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{password}\r\n", password.len());
        stream.write_all(auth.as_bytes()).await.ok()?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.ok().filter(|_| answer == *b"+OK\r\n")?;
    }
    stream.write_all(b"PSUBSCRIBE *\r\n").await.ok()?;
    let mut lines = BufReader::new(stream).lines();
    // The answer is `psubscribe`, the pattern and the number of subscriptions.
    for _ in 0..6 {
        lines.next_line().await.ok()??;
    }
    Some(lines)
}

/// Returns the next event with its message; `None` once the Sentinel is gone.
async fn next_event<R: tokio::io::AsyncBufRead + Unpin>(lines: &mut Lines<R>) -> Option<(String, String)> {
    loop {
        // A message is an array of `pmessage`, the pattern, the channel and the text, each after
        // its length.
        if lines.next_line().await.ok()?? != "*4" {
            continue;
        }
        let mut words = Vec::new();
        for _ in 0..4 {
            lines.next_line().await.ok()??;
            words.push(lines.next_line().await.ok()??);
        }
        let text = words.pop()?;
        return Some((words.pop()?, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_event_is_read_from_the_message_of_a_subscription() {
        let sent = "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$6\r\n+sdown\r\n$20\r\nmaster m 10.0.0.1 79\r\n\
                    *4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$5\r\n+tilt\r\n$0\r\n\r\n*4\r\n$8\r\npmess";
        let mut lines = sent.as_bytes().lines();
        let event = |name: &str, message: &str| Some((name.to_owned(), message.to_owned()));
        assert_eq!(next_event(&mut lines).await, event("+sdown", "master m 10.0.0.1 79"));
        assert_eq!(next_event(&mut lines).await, event("+tilt", ""));
        assert_eq!(next_event(&mut lines).await, None);
    }
}
