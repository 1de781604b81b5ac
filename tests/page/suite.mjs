// node suite.mjs CHROMIUM SCREENSHOTS PAGE..: what run.py calls, in a folder with the pages and playwright-core.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [browser, screenshots, ...names] = process.argv.slice(2);
const profile = await mkdtemp(join(tmpdir(), "lockstorm-page-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: browser,
  viewport: { width: 1280, height: 900 },
  permissions: ["clipboard-read", "clipboard-write"],
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});

// What the page says of what is in view. The address follows it a moment later.
const view = page => page.evaluate(() => [from, until]);
const whole = page => page.evaluate(() => [0, run.end]);
const span = ([from, until]) => until - from;
const ratio = (one, other) => Math.round(span(one) / span(other) * 1000) / 1000;
const picture = (page, name) => page.screenshot({ path: join(screenshots, name + ".png"), fullPage: true });
// Bars and words that are drawn within the plot and can be seen.
const seen = (page, selector) => page.locator(selector).evaluateAll(nodes => nodes.filter(node => {
  const box = node.getBoundingClientRect();
  return box.width + box.height > 0 && getComputedStyle(node).display !== "none";
}).length);

// The page is no wider than a phone. What is wider has a container of its own that scrolls.
async function fitsPhones(page, name) {
  for (const width of [420, 375, 360]) {
    await page.setViewportSize({ width, height: 800 });
    const over = await page.evaluate(() => {
      const isHeld = node => node.closest("svg, pre") || [...ancestors(node)].some(one => getComputedStyle(one).overflowX === "auto");
      function* ancestors(node) { for (let one = node.parentElement; one; one = one.parentElement) yield one; }
      const beyond = [...document.body.querySelectorAll("*")].filter(node => node.getBoundingClientRect().right > innerWidth + .5 && !isHeld(node));
      return { by: document.documentElement.scrollWidth - innerWidth, beyond: beyond.map(node => node.outerHTML.slice(0, 80)).slice(0, 5) };
    });
    assert.deepEqual(over, { by: 0, beyond: [] }, `${name} at ${width} px`);
  }
  await page.setViewportSize({ width: 375, height: 800 });
  await picture(page, `${name.replace("/", "-")}-phone`);
  await page.setViewportSize({ width: 1280, height: 900 });
}
// The sample of each entry of the legend, and what is drawn so.
const SHAPES = {
  holder: ".bar", asks: ".ask", two: ".over", "fault-bar": ".fault", stands: ".still", "role-of": ".role", write: ".dot:not(.no)",
  rejected: ".dot.no", said: ".mark", jumps: ".jump", stops: ".frozen", calms: ".calm",
};

async function opened(name, hash = "") {
  const page = await context.newPage();
  const complaints = [], beyond = [];
  page.on("console", message => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", error => complaints.push(String(error)));
  page.on("request", request => { if (!request.url().startsWith("file:")) beyond.push(request.url()); });
  await page.goto(pathToFileURL(resolve(name + ".html")).href + hash);
  page.done = async () => {
    assert.deepEqual(complaints, [], `${name}: on the console`);
    assert.deepEqual(beyond, [], `${name}: asked of the network`);
    await page.close();
  };
  return page;
}

const tests = {
  async "opens at the witness, and the buttons and keys lead to the whole run and back"(name) {
    const page = await opened(name), all = await whole(page);
    const hasWitness = await page.locator("#witness").isEnabled();
    const first = await view(page);
    await picture(page, `${name}-first`);
    if (!hasWitness) assert.deepEqual(first, all);
    else {
      // A witness that lasts for half of the run has no room around it.
      const focus = await page.evaluate(() => run.focus);
      assert.ok(first[0] <= focus[0] && first[1] >= focus[1], `${focus} is in ${first}`);
      assert.ok(span(first) < span(all) || span(focus) > span(all) * .45, `${first} of ${all}`);
    }
    await page.click("#all");
    assert.deepEqual(await view(page), all);
    await picture(page, `${name}-whole`);
    await page.click("#in");
    assert.equal(ratio(await view(page), all), .5);
    await page.keyboard.press("+");
    assert.equal(ratio(await view(page), all), .25);
    await page.keyboard.press("-");
    assert.equal(ratio(await view(page), all), .5);
    const before = await view(page);
    await page.keyboard.press("ArrowRight");
    const right = await view(page);
    assert.ok(right[0] > before[0] && Math.abs(span(right) - span(before)) < 1, `${before} to ${right}`);
    await page.keyboard.press("ArrowLeft");
    assert.ok(Math.abs((await view(page))[0] - before[0]) < 1);
    await page.click("#out");
    assert.deepEqual(await view(page), all);
    if (hasWitness) {
      const spans = await page.evaluate(() => witnesses);
      await page.keyboard.press("w");
      const shown = await view(page);
      assert.ok(shown[0] <= spans[0][0] && shown[1] >= spans[0][1], `${spans[0]} is in ${shown}`);
      await page.keyboard.press("0");
      assert.deepEqual(await view(page), all);
      const button = page.locator("[data-show]").first();
      const [a, b] = (await button.getAttribute("data-show")).split(" ").map(Number);
      await button.click();
      const clicked = await view(page);
      assert.ok(clicked[0] <= a && clicked[1] >= b, `${a}..${b} is in ${clicked}`);
    }
    await page.done();
  },

  async "the wheel zooms around the pointer, dragging moves, and a double click shows everything"(name) {
    const page = await opened(name, "#t=all"), all = await whole(page);
    await page.locator("#plot").scrollIntoViewIfNeeded();
    const box = await page.locator("#plot").boundingBox();
    const at = { x: box.x + box.width * .7, y: Math.min(box.y + 60, 880) };
    const under = () => page.evaluate(x => time({ clientX: x }), at.x);
    await page.mouse.move(at.x, at.y);
    const before = await under();
    for (let turn = 0; turn < 6; turn++) await page.mouse.wheel(0, -100);
    await page.waitForFunction(end => until - from < end * .3, all[1]);
    assert.ok(Math.abs(await under() - before) < all[1] * .002, `${before} has moved to ${await under()}`);
    const zoomed = await view(page);
    await page.mouse.down();
    await page.mouse.move(at.x - 150, at.y, { steps: 3 });
    await page.mouse.up();
    const moved = await view(page);
    assert.ok(moved[0] > zoomed[0] && Math.abs(span(moved) - span(zoomed)) < 1, `${zoomed} to ${moved}`);
    await page.mouse.dblclick(at.x, at.y);
    assert.deepEqual(await view(page), all);
    await page.done();
  },

  async "the address follows what is in view, and leads back to it"(name) {
    const page = await opened(name), all = await whole(page);
    await page.keyboard.press("0");
    await page.keyboard.press("+");
    const inView = await view(page);
    await page.waitForFunction(() => /^#t=[\d.]+s\.\.[\d.]+s$/.test(location.hash));
    await page.waitForFunction(([a, b]) => location.hash === `#t=${a / 1e6}s..${b / 1e6}s`, inView);
    const hash = new URL(page.url()).hash;
    await page.evaluate(() => { location.hash = "#t=all"; });
    await page.waitForFunction(end => from === 0 && until === end, all[1]);
    await page.done();
    const again = await opened(name, hash);
    const shown = await view(again);
    assert.ok(Math.abs(shown[0] - inView[0]) < 2 && Math.abs(shown[1] - inView[1]) < 2, `${hash} shows ${shown}`);
    await again.done();
    const moment = await opened(name, "#t=2.5s");
    assert.deepEqual(await view(moment), [2e6, 3e6]);
    await moment.done();
    // What is no time is no address.
    const wrong = await opened(name, "#t=soon"), plain = await opened(name);
    assert.deepEqual(await view(wrong), await view(plain));
    await wrong.done();
    await plain.done();
  },

  async "the timeline is on the first screen, below the verdicts in a line each and above their stories"(name) {
    const page = await opened(name);
    await page.setViewportSize({ width: 1440, height: 900 });
    const top = async selector => (await page.locator(selector).first().boundingBox()).y;
    const plot = await page.locator("#plot").boundingBox();
    assert.ok(plot.y < 400, `it begins at ${plot.y}`);
    assert.ok(await top(".first") < plot.y && await top(".glance") < plot.y);
    for (const below of [".again", ".verdicts", ".verdicts ol", ".chain", ".causes"])
      if (await page.locator(below).count()) assert.ok(await top(below) > plot.y + plot.height, below);
    // Each verdict leads to its story, which has the same word.
    const links = page.locator(".glance a");
    assert.ok(await links.count() > 0);
    for (const link of await links.all()) {
      const row = page.locator(`[id="${(await link.getAttribute("href")).slice(1)}"]`);
      const word = link.locator("xpath=ancestor::tr").locator(".pill");
      assert.equal(await word.textContent(), await row.locator(".pill").textContent());
      await link.click();
      await page.waitForFunction(node => { const { top } = node.getBoundingClientRect(); return top > -1 && top < innerHeight; }, await row.elementHandle());
    }
    // A witness or an instant that is shown from there brings the timeline back.
    for (const shows of [".verdicts [data-show]", ".chain[open] a"]) {
      if (!await page.locator(shows).count()) continue;
      await page.locator(shows).last().click();
      await page.waitForFunction(() => { const { top } = plot.getBoundingClientRect(); return top >= 0 && top < 400; });
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.done();
  },

  async "the legend has what is drawn, and nothing else"(name) {
    const page = await opened(name, "#t=all");
    const listed = (await page.locator(".legend i").evaluateAll(all => all.map(one => one.className))).map(sample => sample.split(" ").pop());
    for (const [sample, selector] of Object.entries(SHAPES)) {
      const drawn = await page.locator(`#plot ${selector}`).count() > 0;
      assert.equal(listed.includes(sample), drawn, `${sample} is ${drawn ? "" : "not "}drawn, and listed are ${listed}`);
    }
    const messages = await page.evaluate(() => {
      const never = ([, , , due]) => due === null || due > run.end, list = run.messages?.list ?? [];
      const kinds = list.map(one => never(one) ? "lost" : one[4] ? "sent" : "answer");
      return [...new Set(kinds)].sort();
    });
    assert.deepEqual(listed.filter(sample => ["sent", "answer", "lost"].includes(sample)).sort(), messages);
    assert.equal(listed.length, new Set(listed).size, `each once: ${listed}`);
    for (const sample of await page.locator(".legend i").all()) assert.ok((await sample.boundingBox()).width > 1);
    await page.done();
  },

  async "no word of the axis, of a clock or of a row is cut off, near or far, on a phone neither"(name) {
    const page = await opened(name);
    const words = () => page.evaluate(() => {
      const { left: edge, right: end } = plot.getBoundingClientRect();
      const boxes = (selector, low, high) => [...plot.querySelectorAll(selector)].filter(node => getComputedStyle(node).display !== "none")
        .map(node => [node.textContent, node.getBoundingClientRect()])
        .filter(([, box]) => box.width > 0 && (box.left < low - 1.5 || box.right > high + 1.5))
        .map(([text, box]) => [text, box.left - low, high - box.right]);
      return [
        ...boxes("#ticks text, #messages text", edge + left, end), ...boxes(".name", edge, edge + left), ...boxes(".head", edge, end),
        ...[...plot.querySelectorAll("text.out")].some(node => node.style.display !== "none") ? boxes("text.out", edge + left, end) : [],
      ];
    });
    const ticks = () => page.locator("#ticks .tick text").count();
    for (const width of [1440, 375]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForFunction(width => Number(plot.getAttribute("viewBox").split(" ")[2]) < width, width);
      await page.evaluate(() => run.focus ? around(run.focus) : show(0, run.end));
      assert.deepEqual(await words(), [], `${width}: at first`);
      await page.evaluate(() => show(0, run.end));
      for (let closer = 0; closer < 12; closer++) {
        assert.deepEqual(await words(), [], `${width}: ${await view(page)}`);
        assert.ok(await ticks() > 0, `${width}: an axis of ${await view(page)} has no words`);
        await page.evaluate(() => { zoom(.5, from + (until - from) * .37); });
      }
    }
    // Paper is narrower than the window for which it was laid out.
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.emulateMedia({ media: "print" });
    const [paper, end] = await page.evaluate(() => {
      document.body.style.width = "700px";
      const ends = [...plot.querySelectorAll("#ticks text")].map(node => node.getBoundingClientRect().right);
      return [plot.getBoundingClientRect().right, Math.max(...ends)];
    });
    assert.ok(end <= paper + 1, `${end} is on paper to ${paper}`);
    await page.done();
  },

  async "a fault tints the time that it takes, and not all that is shown"(name) {
    const page = await opened(name);
    for (const at of [() => show(0, run.end), () => run.focus && around(run.focus), () => zoom(.1, centre())]) {
      await page.evaluate(at);
      const wide = await page.locator("#plot .band").evaluateAll(all => all.filter(one => one.style.display !== "none")
        .map(one => one.getBBox()).filter(({ x: from, width: wide }) => from <= left && from + wide >= left + width() - 1).length);
      assert.equal(wide, 0, await view(page).then(String));
    }
    await page.done();
  },

  async "who scrolls past the timeline is not held up by it"(name) {
    const page = await opened(name, "#t=all"), all = await whole(page);
    const box = await page.locator("#plot").boundingBox();
    await page.mouse.move(box.x + box.width * .7, box.y + 60);
    const down = () => page.evaluate(() => scrollY);
    // There is nothing more to zoom out of.
    await page.mouse.wheel(0, 60);
    await page.waitForFunction(() => scrollY > 0);
    assert.deepEqual(await view(page), all);
    await page.keyboard.press("+");
    const inView = await view(page), before = await down();
    await page.mouse.move(box.x + 40, box.y + 200);
    await page.mouse.wheel(0, 60);
    await page.waitForFunction(before => scrollY > before, before);
    assert.deepEqual(await view(page), inView, "over the names");
    await page.done();
  },

  async "messages are arrows that say their command, and too many of them are counted"(name) {
    const page = await opened(name);
    const arrows = page.locator("#messages g.message");
    const count = await page.evaluate(() => run.messages.list.length);
    assert.ok(count > 0);
    // Around the one that is the quickest to arrive there are few.
    await page.evaluate(() => {
      const arrived = run.messages.list.filter(([, , , due]) => due !== null && due <= run.end);
      const [, , sent, due] = arrived.reduce((one, other) => other[3] - other[2] < one[3] - one[2] ? other : one);
      show(sent - 2 * (due - sent), due + 2 * (due - sent));
    });
    assert.ok(await arrows.count() > 0);
    await picture(page, `${name}-messages`);
    await arrows.first().scrollIntoViewIfNeeded();
    // The first whose middle is within the plot.
    const middles = await arrows.evaluateAll(nodes => nodes.map(node => {
      const box = node.querySelector("line").getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    }));
    const plot = await page.locator("#plot").boundingBox(), left = await page.evaluate(() => run.left);
    const at = middles.findIndex(({ x }) => x > plot.x + left + 5 && x < plot.x + plot.width - 20);
    assert.ok(at >= 0, JSON.stringify(middles));
    const arrow = arrows.nth(at), faint = await arrow.locator("line").last().evaluate(node => getComputedStyle(node).strokeWidth);
    const title = await arrow.locator("title").textContent();
    assert.match(title, /^.+(\n.+)?\nleft at [\d.]+ s, (read at|due at|never)/);
    // It may be lower on the page than the first one, out of the window.
    await arrow.scrollIntoViewIfNeeded();
    const line = await arrow.locator("line").first().evaluate(node => {
      const box = node.getBoundingClientRect();
      return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    });
    await page.mouse.move(line.x, line.y);
    // The arrow under the pointer stands out, which it does not by itself.
    const hovered = page.locator("#messages g.message:hover");
    await hovered.first().waitFor();
    const strong = await hovered.first().locator("line").last().evaluate(node => getComputedStyle(node).strokeWidth);
    assert.notEqual(strong, faint);
    // What makes it easy to point at is not seen, of messages that never arrived neither.
    await page.mouse.move(1, 1);
    await hovered.first().waitFor({ state: "detached" });
    const reaches = await page.evaluate(() => {
      for (const node of document.querySelectorAll("#messages g.message")) node.classList.add("never");
      return [...document.querySelectorAll("#messages .reach")].map(node => getComputedStyle(node).stroke);
    });
    assert.ok(reaches.every(stroke => stroke === "rgba(0, 0, 0, 0)"), reaches.join());
    await page.keyboard.press("0");
    if (count > 350) {
      assert.equal(await arrows.count(), 0);
      assert.match(await page.locator("#messages .many").textContent(), /^\d+ messages: zoom in to see them/);
    } else {
      assert.equal(await arrows.count(), count);
    }
    await page.done();
  },

  async "the line that replays the run is copied"(name) {
    const page = await opened(name);
    const line = await page.locator(".again code").first().textContent();
    assert.match(line, /^lockstorm replay '.+'$/);
    const button = page.locator(".again .copy").first();
    await button.click();
    await page.waitForFunction(() => document.querySelector(".again .copy").textContent === "copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), line);
    await page.waitForFunction(() => document.querySelector(".again .copy").textContent === "copy");
    await page.done();
  },

  async "it is dark where the reader wants it dark, fits a narrow window, and prints"(name) {
    const page = await opened(name);
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const ink = () => page.evaluate(() => getComputedStyle(document.body).color);
    const brightness = colour => colour.match(/[\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
    await page.emulateMedia({ colorScheme: "light" });
    const light = [brightness(await background()), brightness(await ink())];
    await page.emulateMedia({ colorScheme: "dark" });
    const dark = [brightness(await background()), brightness(await ink())];
    assert.ok(light[0] > 200 && light[1] < 80, `light: ${light}`);
    assert.ok(dark[0] < 60 && dark[1] > 170, `dark: ${dark}`);
    await picture(page, `${name}-dark`);
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 700, height: 900 });
    await page.waitForFunction(() => document.getElementById("window").getAttribute("width") < 700);
    await picture(page, `${name}-narrow`);
    await fitsPhones(page, name);
    // A tablet, and a sheet of A4: a chain that did not wrap made both wider than they are.
    for (const media of ["screen", "print"]) {
      await page.setViewportSize({ width: 794, height: 1123 });
      await page.emulateMedia({ media });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 794, `${media} takes ${wide} of 794 px`);
    }
    const again = await page.locator(".again > *:visible").evaluateAll(all => all.map(one => one.getBoundingClientRect().left));
    assert.deepEqual(again.filter((_, at) => at % 2 === 0).map(left => left - again[0]), again.length > 2 ? [0, 0] : [0],
      "each name of a line to copy begins its row");
    await picture(page, `${name}-print`);
    assert.ok(await seen(page, "#plot rect") > 0);
    assert.equal(await page.locator("#all").isVisible(), false, "buttons are not for paper");
    await page.done();
  },

  async "where a failover changes the master, each that was one has a bar, and what Sentinels and a cluster saw is told"(name) {
    const page = await opened(name, "#t=all");
    const fails = ["failover", "sentinel", "cluster"].includes(name);
    assert.equal(await page.locator("#plot .head", { hasText: /^masters/ }).count(), fails ? 1 : 0);
    assert.equal(await seen(page, "#plot rect.role") >= 2, fails, "the master before, and the one after");
    const said = await page.locator("#plot .mark title").allTextContents();
    assert.equal(said.some(words => words.includes("+switch-master")), name === "sentinel", said.join("; "));
    assert.equal(said.some(words => words.includes(" sees vote ")), name === "cluster", said.join("; "));
    await page.done();
  },

  async "what is folded unfolds, and how the violation came about is open and printed"(name) {
    const page = await opened(name), hasWitness = await page.locator("#witness").isEnabled();
    const open = page.locator("details[open]");
    assert.equal(await open.count(), hasWitness ? 1 : 0);
    if (hasWitness) {
      assert.equal(await open.locator("> summary").textContent(), "How it came about");
      await page.emulateMedia({ media: "print" });
      assert.equal(await open.locator("table").isVisible(), true);
      assert.equal(await page.locator("details:not([open])").first().isVisible(), false);
      await page.emulateMedia({ media: "screen" });
    }
    for (const summary of await page.locator("summary").all()) {
      if (await summary.evaluate(node => node.parentElement.open)) continue;
      const inside = summary.locator("xpath=following-sibling::*[1]");
      assert.equal(await inside.isVisible(), false);
      await summary.click();
      assert.equal(await inside.isVisible(), true);
      assert.ok((await inside.textContent()).trim().length > 0);
    }
    await page.done();
  },
};

// The page of a run of a sweep, of which the pictures are tried: its timeline is that of the others.
const sweep = {
  async "the heat map and the survival of holds are seen, are readable in the dark, and fit the width of a phone"(name) {
    const page = await opened(name);
    const pictures = page.locator(".picture svg");
    assert.equal(await pictures.count(), 2, "a heat map and a curve");
    for (const words of [/^The sweep /, /^How long holds survived/])
      assert.ok(await page.locator("h2", { hasText: words }).isVisible(), String(words));
    // The least contrast, by WCAG, of words with the last rectangle below them.
    const contrasts = () => pictures.evaluateAll(all => all.map(svg => {
      const light = colour => {
        const parts = colour.match(/[\d.]+/g).slice(0, 3).map(part => part / 255);
        const [red, green, blue] = parts.map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
        return .2126 * red + .7152 * green + .0722 * blue;
      };
      const rects = [...svg.querySelectorAll("rect")].map(rect => [rect.getBoundingClientRect(), rect]);
      const texts = [...svg.querySelectorAll("text")];
      return { texts: texts.length, least: Math.min(...texts.map(text => {
        const box = text.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
        const below = rects.filter(([{ left, right, top, bottom }]) => left <= x && x <= right && top <= y && y <= bottom).pop();
        const two = [text, below[1]].map(node => light(getComputedStyle(node).fill)).sort((one, other) => other - one);
        return (two[0] + .05) / (two[1] + .05);
      })) };
    }));
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const { texts, least } of await contrasts()) assert.ok(texts > 5 && least > 4.5, `${colorScheme}: ${least} in ${texts}`);
      await picture(page, `${name}-${colorScheme}`);
    }
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      for (const shown of await pictures.all()) {
        assert.ok(await shown.isVisible());
        const box = await shown.boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= width && box.width > width * .6, `${width}: ${JSON.stringify(box)}`);
        assert.ok(box.height > 80, JSON.stringify(box));
      }
    }
    await fitsPhones(page, name);
    await page.done();
  },
};

// Those of a folder with the pages of several claims.
const site = {
  async "each claim is listed with its verdict, and its links lead to a run, to its causes and to its file"(name) {
    const page = await opened(name);
    assert.ok(await page.locator(".pill").count() >= 2);
    await picture(page, "site");
    const links = await page.locator("a[href]").evaluateAll(all => all.map(one => one.getAttribute("href")));
    const local = links.filter(link => !link.includes("://"));
    assert.ok(local.some(link => link.endsWith(".toml")), `a file is linked: ${local}`);
    const runs = local.filter(link => link.endsWith(".html"));
    assert.ok(runs.length >= 2, `runs are linked: ${local}`);
    await fitsPhones(page, name);
    await page.done();
    let causes = 0;
    for (const link of runs) {
      const run = await opened(join(name, "..", link.slice(0, -".html".length)));
      assert.ok(await seen(run, "#plot rect") > 0, link);
      await fitsPhones(run, link.slice(0, -".html".length));
      const violated = await run.locator(".verdicts .pill.violated").count();
      const told = await run.locator(".causes li").allTextContents();
      assert.equal(told.length > 0, violated > 0, `${link} has ${violated} violations, and says: ${told}`);
      causes += told.length;
      await run.done();
    }
    assert.ok(causes > 0, "some run is violated");
    for (const link of local.filter(link => link.startsWith("#"))) {
      const shown = await opened(name, link);
      assert.equal(await shown.locator(`[id="${link.slice(1)}"]`).count(), 1, link);
      await shown.done();
    }
  },
};

// The chapter of the book that shows a page.
const book = {
  async "the chapter on the page shows one, which can be zoomed there"(name) {
    const page = await opened(name);
    const frame = page.frames().find(frame => frame.parentFrame());
    assert.ok(frame, "a page is shown");
    const box = await page.locator("iframe").boundingBox();
    assert.ok(box.width > 500 && box.height > 300, JSON.stringify(box));
    assert.ok(await frame.locator("#plot rect").count() > 0);
    const top = await frame.evaluate(() => plot.getBoundingClientRect().top);
    assert.ok(top < box.height / 2, `the timeline begins at ${top} of ${box.height}`);
    await frame.click("#all");
    const whole = await frame.evaluate(() => [from, until]);
    await frame.click("#in");
    const closer = await frame.evaluate(() => [from, until]);
    assert.equal(ratio(closer, whole), .5);
    await picture(page, "book");
    await page.done();
  },
};

// The scoreboard of libraries.
const scoreboard = {
  async "each library has a cell for each claim, and what was found is said with the line that shows it again"(name) {
    const page = await opened(name);
    const claims = await page.locator("thead").first().locator("th a").evaluateAll(all => all.map(one => one.getAttribute("href")));
    assert.ok(claims.length >= 4, claims.join());
    const rows = page.locator("tbody tr");
    assert.ok(await rows.count() >= 4);
    for (const row of await rows.all()) assert.equal(await row.locator("td").count(), claims.length, await row.textContent());
    // A lock that is right, and what is wrong with the others.
    const found = await page.locator("td.otherwise").count();
    assert.ok(found > 0 && await page.locator("td.as-expected").count() > 0);
    const lines = await page.locator("li code").allTextContents();
    assert.equal(lines.length, found + await page.locator("td.undecided").count());
    for (const line of lines) assert.match(line, /^lockstorm trial --peer /);
    for (const cell of await page.locator("td.otherwise").all()) assert.ok(await cell.getAttribute("title"), "it says why");
    await page.click(`thead >> nth=0 >> a >> nth=1`);
    assert.equal(new URL(page.url()).hash, claims[1]);
    assert.ok((await page.locator(`[id="${claims[1].slice(1)}"] + dd`).textContent()).length > 20);
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, "scoreboard-dark");
    await page.emulateMedia({ colorScheme: "light" });
    await picture(page, "scoreboard");
    // On a phone the table scrolls; its words are not broken to letters.
    await page.setViewportSize({ width: 375, height: 800 });
    const broken = await page.locator(".board td").evaluateAll(all => all.filter(cell => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getClientRects().length > 1;
    }).length);
    assert.equal(broken, 0, "words that are broken");
    await page.setViewportSize({ width: 1280, height: 900 });
    await fitsPhones(page, name);
    await page.done();
  },
};

const kinds = { sweep, "site/index": site, "book/page": book, scoreboard };

let failed = 0;
try {
  for (const name of names) {
    for (const [says, test] of Object.entries(kinds[name] ?? tests)) {
      try {
        await test(name);
        console.log(`ok    ${name}: ${says}`);
      } catch (error) {
        failed += 1;
        console.log(`FAILED ${name}: ${says}\n${error.stack}`);
      }
    }
  }
} finally {
  await context.close();
  await rm(profile, { recursive: true, force: true });
}
console.log(failed ? `${failed} failed` : "done");
process.exitCode = failed ? 1 : 0;
