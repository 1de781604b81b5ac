// A peer of `lockstorm trial` with one of Node's lock libraries: node peer.mjs LIBRARY.
//
// Each library is an entry below: what it calls its keys, what it can do, and how it acquires, releases and extends a lock, with its own
// defaults where the trial does not say otherwise. An entry that derives from another one differs from it by what its name says.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import Redis from "ioredis";

const require = createRequire(import.meta.url);
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

function connect(node, init) {
  const [host, port] = node.split(":");
  const timeout = init.timeout_ms ?? undefined;
  // Without the second, which is not set by default, ioredis keeps a connection whose replies are lost, and each command on it fails.
  const socketTimeout = chosen.socketTimeout === false ? undefined : timeout;
  const redis = new Redis({ host, port: Number(port), commandTimeout: timeout, socketTimeout });
  // Each command that fails says so to its caller.
  redis.on("error", () => {});
  connections.push(redis);
  return redis;
}

/** Waits until a command has an answer: on a busy machine, the first one may take longer than the time-out. */
async function connected(redis) {
  for (let left = 5; ; left -= 1) {
    try {
      await redis.ping();
      return redis;
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

const libraries = {
  redlock: {
    library: "node-redlock",
    package: "redlock",
    key: "{}",
    can: ["extend", "quorum", "watchdog"],
    async open(lock, init) {
      const { default: Redlock } = await import("redlock");
      const nodes = await Promise.all(lock.nodes.map((node) => connected(connect(node, init))));
      // lockstorm asks again; a library that did so as well would ask for longer than it is to.
      const redlock = new Redlock(nodes, { retryCount: 0 });
      redlock.on("error", () => {});
      return { redlock, watchdog: init.watchdog_ms };
    },
    async acquire({ redlock, watchdog }, { name, lease, lost }) {
      try {
        if (lease === null) return { held: await using(redlock, name, watchdog, lost) };
        const held = await redlock.acquire([name], lease);
        return { held, owner: held.value, until_ms: held.expiration };
      } catch (error) {
        if (await isRefused(error)) return null;
        throw error;
      }
    },
    release: (held) => held.release(),
    async extend(held, lease, hold) {
      const extended = await held.extend(lease);
      hold.held = extended;
      return extended.expiration;
    },
  },
  "redis-semaphore": {
    library: "redis-semaphore Mutex",
    package: "redis-semaphore",
    key: "mutex:{}",
    can: ["wait", "watchdog"],
    open: async (lock, init) => ({ redis: await connected(connect(lock.nodes[0], init)), watchdog: init.watchdog_ms }),
    async acquire({ redis, watchdog }, { name, wait, lease, lost }) {
      const { Mutex } = require("redis-semaphore");
      const mutex = new Mutex(redis, name, {
        lockTimeout: lease ?? watchdog,
        ...(lease === null ? {} : { refreshInterval: 0 }),
        ...(wait === null ? { acquireTimeout: 2 ** 31 - 1 } : { acquireTimeout: wait || 1000 }),
        ...(wait === 0 ? { acquireAttemptsLimit: 1 } : {}),
        onLockLost: lost,
      });
      return (await mutex.tryAcquire()) ? { held: mutex, owner: mutex.identifier } : null;
    },
    release: (mutex) => mutex.release(),
  },
};

const derived = {
  "redlock-default": { ...libraries.redlock, library: "node-redlock, no socketTimeout", socketTimeout: false },
  "redis-semaphore-default": {
    ...libraries["redis-semaphore"],
    library: "redis-semaphore Mutex, no socketTimeout",
    socketTimeout: false,
  },
  "redis-semaphore-kept": {
    ...libraries["redis-semaphore"],
    library: "redis-semaphore Mutex, unhandledRejection handled",
    survives: true,
  },
};

/** A lock of `using`, which renews it until it is released, and aborts a signal when it cannot. It tells no deadline. */
function using(redlock, name, lease, lost) {
  return new Promise((granted, failed) => {
    let end;
    const work = new Promise((resolve) => (end = resolve));
    const used = redlock.using([name], lease, async (signal) => {
      signal.addEventListener("abort", lost);
      granted({
        release() {
          end();
          return used;
        },
      });
      await work;
    });
    used.catch(failed);
  });
}

/** Whether all that went wrong is that another owner has the lock. */
async function isRefused(error) {
  const { ResourceLockedError } = await import("redlock");
  if (!error.attempts) return error instanceof ResourceLockedError;
  const attempts = await Promise.all(error.attempts);
  return attempts.every(({ votesAgainst }) =>
    [...votesAgainst.values()].every((vote) => vote instanceof ResourceLockedError));
}

const connections = [];
let ended = null;

// A timer of redis-semaphore renews a lock. When it fails, for a node that cannot be reached, nobody can catch the error, and Node ends the
// process, unless the application has a handler for such errors. With the process ends what it believes: all locks are lost to it, and it
// does nothing more. A peer that ended itself would end the trial, so this one only behaves as if it had.
process.on("unhandledRejection", (error) => {
  console.error(`unhandled: ${error}`);
  if (chosen.survives || ended) return;
  ended = new Error(`the process has ended: ${error}`);
  for (const hold of holds.keys()) say({ type: "lost", hold });
  for (const redis of connections) redis.disconnect();
});

const all = { ...libraries, ...derived };
const chosen = all[process.argv[2]];
if (!chosen) {
  console.error(`usage: peer.mjs ${Object.keys(all).join("|")}`);
  process.exit(1);
}
const locks = new Map();
const holds = new Map();

async function answer(asked) {
  if (ended) throw ended;
  switch (asked.type) {
    case "init":
      for (const lock of asked.locks) locks.set(lock.lock, { name: lock.name, of: await chosen.open(lock, asked) });
      return { type: "ready" };
    case "acquire": {
      const { name, of } = locks.get(asked.lock);
      const lost = () => say({ type: "lost", hold: asked.id });
      const granted = await chosen.acquire(of, { name, wait: asked.wait_ms, lease: asked.lease_ms, lost });
      if (!granted) return { type: "refused" };
      holds.set(asked.id, granted);
      const { owner, until_ms } = granted;
      return { type: "granted", owner, until_ms };
    }
    case "release":
      await chosen.release(holds.get(asked.hold).held);
      holds.delete(asked.hold);
      return { type: "released" };
    case "extend": {
      const hold = holds.get(asked.hold);
      return { type: "extended", until_ms: await chosen.extend(hold.held, asked.lease_ms, hold) };
    }
    default:
      throw new Error(`no request of type ${asked.type}`);
  }
}

async function obey(asked) {
  try {
    say({ id: asked.id, ...(await answer(asked)) });
  } catch (error) {
    say({ id: asked.id, type: "error", text: `${error.name}: ${error.message}` });
  }
}

const { readFileSync } = await import("node:fs");
const versionOf = (name) =>
  JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), "utf8")).version.replace(/^v/, "");
const { library, key, can } = chosen;
const driver = `ioredis ${versionOf("ioredis")}`;
say({ type: "hello", protocol: 1, library, version: versionOf(chosen.package), driver, key, can });
createInterface({ input: process.stdin })
  .on("line", (line) => obey(JSON.parse(line)))
  .on("close", () => process.exit(0));
