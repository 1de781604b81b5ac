// A peer of `lockstorm trial` with one of Node's lock libraries: node peer.mjs LIBRARY.
//
// Each library is an entry below: what it calls its keys, what it can do, and how it acquires, releases and extends a lock, with its own
// defaults where the trial does not say otherwise.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import Redis from "ioredis";

const require = createRequire(import.meta.url);
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

function connect(node, init) {
  const [host, port] = node.split(":");
  const timeout = init.timeout_ms ?? undefined;
  // Without the second a connection whose replies are lost is kept for ever, and each of its commands fails.
  const redis = new Redis({ host, port: Number(port), commandTimeout: timeout, socketTimeout: timeout });
  // Each command that fails says so to its caller.
  redis.on("error", () => {});
  return redis;
}

async function connected(redis) {
  await redis.ping();
  return redis;
}

const libraries = {
  redlock: {
    library: "node-redlock",
    package: "redlock",
    key: "{}",
    can: ["extend", "quorum"],
    async open(lock, init) {
      const { default: Redlock } = await import("redlock");
      const nodes = await Promise.all(lock.nodes.map((node) => connected(connect(node, init))));
      // lockstorm asks again; a library that did so as well would ask for longer than it is to.
      const redlock = new Redlock(nodes, { retryCount: 0 });
      redlock.on("error", () => {});
      return redlock;
    },
    async acquire(redlock, { name, lease }) {
      try {
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

/** Whether all that went wrong is that another owner has the lock. */
async function isRefused(error) {
  const { ResourceLockedError } = await import("redlock");
  if (!error.attempts) return error instanceof ResourceLockedError;
  const attempts = await Promise.all(error.attempts);
  return attempts.every(({ votesAgainst }) =>
    [...votesAgainst.values()].every((vote) => vote instanceof ResourceLockedError));
}

// What a timer of redis-semaphore throws when the node cannot be reached, no caller can catch. Node ends the process, unless the application
// has this.
process.on("unhandledRejection", (error) => console.error(`unhandled: ${error}`));

const chosen = libraries[process.argv[2]];
if (!chosen) {
  console.error(`usage: peer.mjs ${Object.keys(libraries).join("|")}`);
  process.exit(1);
}
const locks = new Map();
const holds = new Map();

async function answer(asked) {
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
const installed = JSON.parse(readFileSync(new URL(`node_modules/${chosen.package}/package.json`, import.meta.url), "utf8"));
const { library, key, can } = chosen;
say({ type: "hello", protocol: 1, library, version: installed.version.replace(/^v/, ""), key, can });
createInterface({ input: process.stdin })
  .on("line", (line) => obey(JSON.parse(line)))
  .on("close", () => process.exit(0));
