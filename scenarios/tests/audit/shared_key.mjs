// An application that keeps its data under the key by which it locks: node shared_key.mjs PORT.

import { createRequire } from "node:module";

// The libraries of the trials.
const require = createRequire(new URL("../../../target/trials/node/package.json", import.meta.url));
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");

const redis = new Redis({ host: "127.0.0.1", port: Number(process.argv[2]) });
const redlock = new Redlock([redis], { retryCount: 2, retryDelay: 200, retryJitter: 0 });
redlock.on("error", () => {});

for (let request = 1; request <= 2; request += 1) {
  try {
    const lock = await redlock.acquire(["order:7"], 1000);
    await redis.set("order:7", JSON.stringify({ request }));
    await lock.release();
  } catch (error) {
    console.log(`request ${request}: ${error.name}: ${error.message}`);
  }
}
redis.disconnect();
