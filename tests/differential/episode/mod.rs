//! Episodes: some hundred steps of several clients, drawn from one PRNG stream.

mod across;
mod scripts;
mod spoil;
mod telling;
mod waiting;

use lockstorm_sim::generation::Generation;

use crate::{
    dialect,
    grammar::Group,
    prng::Prng,
    servers::REFERENCE,
    steps::{Command, Step},
    words::Words,
};

/// The groups of commands, by the syntax of each.
pub(crate) struct Groups {
    generation: Generation,
    /// Commands that only some generations have, for other ones than the reference.
    newer: Vec<Group>,
    /// Groups of commands that any client may send at any time.
    plain: Vec<Group>,
    blocking: Group,
    pubsub: Group,
    connection: Group,
    users: Group,
    tracking: Group,
    databases: Group,
    settings: Group,
    possible: Group,
}

impl Groups {
    /// Reads the groups for servers of a generation.
    pub(crate) fn read(generation: Generation) -> Groups {
        let newer = [
            Group::read(include_str!("../syntax/newer.txt")),
            Group::read(include_str!("../syntax/field_times.txt")),
        ];
        Groups {
            generation,
            newer: if generation == REFERENCE { Vec::new() } else { newer.into() },
            plain: vec![
                Group::read(include_str!("../syntax/stream.txt")),
                Group::read(include_str!("../syntax/functions.txt")),
                Group::read(include_str!("../syntax/string.txt")),
                Group::read(include_str!("../syntax/bitmap.txt")),
                Group::read(include_str!("../syntax/hyperloglog.txt")),
                Group::read(include_str!("../syntax/geo.txt")),
                Group::read(include_str!("../syntax/hash.txt")),
                Group::read(include_str!("../syntax/list.txt")),
                Group::read(include_str!("../syntax/set.txt")),
                Group::read(include_str!("../syntax/sorted_set.txt")),
                Group::read(include_str!("../syntax/generic.txt")),
            ],
            blocking: Group::read(include_str!("../syntax/blocking.txt")),
            pubsub: Group::read(include_str!("../syntax/pubsub.txt")),
            connection: Group::read(include_str!("../syntax/connection.txt")),
            users: Group::read(include_str!("../syntax/users.txt")),
            tracking: Group::read(include_str!("../syntax/tracking.txt")),
            databases: Group::read(include_str!("../syntax/databases.txt")),
            settings: Group::read(include_str!("../syntax/settings.txt")),
            possible: Group::read(include_str!("../syntax/possible.txt")),
        }
    }
}

/// Steps that are drawn together.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scene {
    Plain,
    Newer,
    Cached,
    Transaction,
    Scripts,
    Waiting,
    Expiring,
    Pubsub,
    Connection,
    Close,
    Raw,
    Pipeline,
    Users,
    Tracking,
    Events,
    Pausing,
    Silent,
    Databases,
    Across,
    Settings,
    Possible,
}

/// Scenes: the weight of each in an episode that has it, and the percentage of episodes that do.
const SCENES: &[(Scene, usize, usize)] = &[
    (Scene::Plain, 62, 100),
    (Scene::Transaction, 10, 100),
    (Scene::Scripts, 10, 100),
    (Scene::Waiting, 6, 100),
    (Scene::Expiring, 3, 100),
    (Scene::Pubsub, 4, 100),
    (Scene::Connection, 3, 100),
    (Scene::Close, 1, 100),
    (Scene::Raw, 1, 100),
    (Scene::Pipeline, 12, 50),
    (Scene::Users, 25, 12),
    (Scene::Tracking, 25, 15),
    (Scene::Events, 8, 15),
    (Scene::Pausing, 4, 15),
    (Scene::Silent, 4, 15),
    (Scene::Databases, 12, 20),
    (Scene::Across, 10, 30),
    (Scene::Settings, 4, 25),
    (Scene::Possible, 6, 40),
];

/// The scenes of other generations than the reference, all in each episode.
const NEWER_SCENES: &[(Scene, usize)] = &[
    (Scene::Plain, 30),
    (Scene::Newer, 40),
    (Scene::Transaction, 10),
    (Scene::Scripts, 10),
    (Scene::Cached, 2),
    (Scene::Waiting, 3),
    (Scene::Expiring, 3),
    (Scene::Close, 1),
    (Scene::Pipeline, 6),
];

/// The connection for commands with random results, used for nothing else.
const THROWER: usize = 20;

/// The state from which an episode is drawn.
struct Draw<'a> {
    prng: Prng,
    words: Words,
    groups: &'a Groups,
    /// The weight of each plain group; a few are preferred, so that their commands meet.
    weights: Vec<usize>,
    /// The weight of each scene.
    scenes: Vec<(Scene, usize)>,
    /// The percentage of commands that are spoilt.
    spoilt: usize,
    clients: usize,
    steps: Vec<Step>,
}

/// The steps of one episode of a seed.
pub(crate) fn draw(groups: &Groups, seed: u64, episode: u64) -> Vec<Step> {
    let mut prng = Prng::new(seed, episode);
    let lengths = vec![*prng.pick(&[4, 8, 64]), 44, 64];
    let words = Words::new(&mut prng, lengths.clone());
    let weights = groups.plain.iter().map(|_| if prng.percent(30) { 12 } else { 1 }).collect();
    let spoilt = *prng.pick(&[0, 2, 5, 20]);
    let clients = 1 + prng.below(4);
    let length = *prng.pick(&[60, 200, 200, 400, 1500]);
    let mut scenes = Vec::new();
    for &(scene, weight, share) in SCENES {
        if prng.percent(share) {
            scenes.push((scene, weight));
        }
    }
    if groups.generation != REFERENCE {
        scenes = NEWER_SCENES.to_vec();
    }
    // A subscriber to every change would also receive the changes that make both servers equal
    // again.
    if scenes.iter().any(|(scene, _)| matches!(scene, Scene::Events | Scene::Tracking)) {
        scenes.retain(|(scene, _)| *scene != Scene::Possible);
    }
    let mut draw = Draw { prng, words, groups, weights, scenes, spoilt, clients, steps: Vec::new() };
    draw.configure(lengths[0]);
    for client in 0..clients {
        if draw.prng.percent(35) {
            draw.send(client, &["HELLO", "3"]);
        }
    }
    while draw.steps.len() < length {
        draw.scene();
    }
    dialect::prune(groups.generation, draw.steps)
}

impl Draw<'_> {
    /// Lets encodings change early, so that small values reach all of them.
    fn configure(&mut self, value: usize) {
        // Bits may be far apart: strings of half a gigabyte would only test the machine.
        self.send(0, &["CONFIG", "SET", "proto-max-bulk-len", "1mb"]);
        // Only some policies record frequency and time of use, and only from the start.
        if self.prng.percent(15) {
            let policy = *self.prng.pick(&["allkeys-lfu", "volatile-lfu", "allkeys-lru"]);
            self.send(0, &["CONFIG", "SET", "maxmemory-policy", policy]);
        }
        if self.prng.percent(70) {
            for (name, values) in [
                ("hash-max-listpack-entries", &["2", "4", "8"][..]),
                ("zset-max-listpack-entries", &["0", "2", "4", "8"]),
                ("set-max-intset-entries", &["0", "2", "4", "8"]),
            ] {
                let entries = *self.prng.pick(values);
                self.send(0, &["CONFIG", "SET", name, entries]);
            }
            let value = value.to_string();
            self.send(0, &["CONFIG", "SET", "hash-max-listpack-value", &value]);
            self.send(0, &["CONFIG", "SET", "zset-max-listpack-value", &value]);
        }
    }

    fn scene(&mut self) {
        let client = self.prng.below(self.clients);
        let total: usize = self.scenes.iter().map(|(_, weight)| weight).sum();
        let mut left = self.prng.below(total);
        let drawn = self.scenes.iter().find(|(_, weight)| {
            let here = left < *weight;
            left = left.saturating_sub(*weight);
            here
        });
        match drawn.expect("the weights add up").0 {
            Scene::Plain => {
                for _ in 0..1 + self.prng.below(30) {
                    self.plain(client);
                }
            }
            Scene::Newer => {
                for _ in 0..1 + self.prng.below(30) {
                    let groups = self.groups;
                    let command = self.prng.pick(&groups.newer).draw(&mut self.prng, &self.words);
                    self.command(client, command);
                }
            }
            Scene::Cached => self.cached(client),
            Scene::Transaction => self.transaction(client),
            Scene::Scripts => {
                for _ in 0..1 + self.prng.below(6) {
                    self.script(client);
                }
            }
            Scene::Waiting => self.waiting(client),
            Scene::Expiring => self.expiring(client),
            Scene::Pubsub => {
                for _ in 0..1 + self.prng.below(4) {
                    let client = self.prng.below(self.clients);
                    self.pubsub(client);
                }
            }
            Scene::Connection => {
                let command = self.groups.connection.draw(&mut self.prng, &self.words);
                self.command(client, command);
            }
            Scene::Close => self.steps.push(Step::Close(client)),
            Scene::Raw => self.raw(client),
            Scene::Pipeline => self.pipeline(client),
            Scene::Users => self.users(client),
            Scene::Tracking => self.tracking(client),
            Scene::Events => self.events(client),
            Scene::Pausing => self.pausing(client),
            Scene::Silent => self.silent(client),
            Scene::Databases => self.databases(client),
            Scene::Across => self.across(client),
            Scene::Settings => {
                for _ in 0..1 + self.prng.below(3) {
                    let command = self.groups.settings.draw(&mut self.prng, &self.words);
                    self.command(client, command);
                }
            }
            Scene::Possible => {
                for _ in 0..1 + self.prng.below(8) {
                    let command = self.groups.possible.draw(&mut self.prng, &self.words);
                    self.command(THROWER, command);
                }
            }
        }
    }

    fn send(&mut self, client: usize, words: &[&str]) {
        self.steps.push(Step::Send(client, words.iter().map(|word| word.as_bytes().to_vec()).collect()));
    }

    /// A command as it is sent, perhaps spoilt; `None` if spoiling leaves no words.
    fn sent(&mut self, mut words: Command) -> Option<Command> {
        if self.prng.percent(self.spoilt) {
            self.spoil(&mut words);
        }
        spoil::tame(&mut words);
        (!words.is_empty()).then_some(words)
    }

    /// Sends a command, perhaps spoilt.
    fn command(&mut self, client: usize, words: Command) {
        if let Some(words) = self.sent(words) {
            self.steps.push(Step::Send(client, words));
        }
    }

    fn draw_plain(&mut self) -> Command {
        let total: usize = self.weights.iter().sum();
        let mut left = self.prng.below(total);
        let mut at = 0;
        while left >= self.weights[at] {
            left -= self.weights[at];
            at += 1;
        }
        self.groups.plain[at].draw(&mut self.prng, &self.words)
    }

    fn plain(&mut self, client: usize) {
        let command = self.draw_plain();
        self.command(client, command);
    }
}
