"use strict";
// Everything with data-a (and data-b) lies on the axis of true time, in microseconds; zooming lays it out anew.
const run = JSON.parse(document.getElementById("run").textContent);
const plot = document.getElementById("plot"), ticks = document.getElementById("ticks");
const NS = "http://www.w3.org/2000/svg";
// Where the rows begin: on a phone their names have less room.
let left = run.left;
let from = 0, until = run.end;
const width = () => plot.clientWidth - left - 12;
const x = t => left + (t - from) / (until - from) * width();
function put(parent, name, attributes, text) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
}
// How wide a text will be, without laying out the page for it.
const pen = document.createElement("canvas").getContext("2d"), family = getComputedStyle(plot.querySelector("text")).fontFamily;
function wide(text, size) {
  pen.font = size + "px " + family;
  return pen.measureText(text).width;
}
function cut(text, room, size) {
  if (wide(text, size) <= room) return text;
  while (text && wide(text + "…", size) > room) text = text.slice(0, -1);
  return text.trimEnd() + "…";
}
// The names of the rows are cut to their room; their titles have all of them. What a heading says besides is left out where it does not fit.
const names = [...plot.querySelectorAll(".name")].map(node => [node, node.firstChild, node.firstChild.data.trimEnd(), node.querySelector(".sub")]);
const heads = [...plot.querySelectorAll(".head")].map(node => [node.firstChild.data, node.querySelector(".sub")]);
function label() {
  const narrow = plot.clientWidth < 560, at = narrow ? 8 : 22;
  left = narrow ? 96 : run.left;
  for (const node of plot.querySelectorAll(".stripe, #window")) node.setAttribute("x", left);
  for (const [node, text, full, sub] of names) {
    const room = left - at - 6, beside = sub.textContent ? wide(" " + sub.textContent, 11) : 0;
    node.setAttribute("x", at);
    sub.style.display = wide(full, 12) + beside > room ? "none" : "";
    text.data = cut(full, room, 12) + " ";
  }
  for (const [text, sub] of heads) sub.style.display = 10 + wide(text, 13) + wide(sub.textContent, 11) > plot.clientWidth - 6 ? "none" : "";
}
// A round distance between ticks, so that about `wanted` of them fit.
function step(range, wanted) {
  const raw = range / wanted, ten = 10 ** Math.floor(Math.log10(raw));
  return ten * [1, 2, 5, 10].find(factor => factor * ten >= raw);
}
function seconds(micros, distance) {
  const decimals = Math.max(0, Math.min(6, -Math.floor(Math.log10(distance / 1e6) + 1e-9)));
  return (micros / 1e6).toFixed(decimals);
}
// Words about a clock that begin at `at`, or as far left of it as they need to fit into the plot.
function note(y, at, text) {
  put(ticks, "text", { class: "jumped", x: Math.max(left, Math.min(at, left + width() - wide(text, 11))), y }, text);
}
function axis(y, height, pieces, isTrue) {
  const distance = step(until - from, Math.max(2, width() / (left < run.left ? 62 : 95))), right = left + width();
  // Where the words before end: those that would cover them are left out.
  let taken = -1e9;
  pieces.forEach((piece, at) => {
    const ends = at + 1 < pieces.length ? pieces[at + 1][0] : run.end;
    const begin = Math.max(from, piece[0]), end = Math.min(until, ends);
    const shown = t => piece[1] + (t - piece[0]) * piece[2];
    if (at > 0 && piece[0] >= from && piece[0] <= until) {
      const before = pieces[at - 1], jump = piece[1] - (before[1] + (piece[0] - before[0]) * before[2]);
      if (Math.abs(jump) >= run.jump) {
        put(ticks, "line", { class: "jump", x1: x(piece[0]), x2: x(piece[0]), y1: y, y2: y + height });
        const words = (jump > 0 ? "+" : "") + jump / 1e6 + " s", before = x(piece[0]) - 4 - wide(words, 11);
        note(y + 11, before >= left ? before : x(piece[0]) + 4, words);
      }
    }
    if (end <= begin) return;
    if (piece[2] <= 0) {
      put(ticks, "line", { class: "frozen", x1: x(begin), x2: x(end), y1: y + height / 2, y2: y + height / 2 });
      note(y + 10, x(begin) + 6, "stands still at " + (piece[1] / 1e6) + " s");
      return;
    }
    const first = Math.ceil(shown(begin) / distance), last = Math.floor(shown(end) / distance);
    const every = Math.max(1, Math.ceil((last - first) / 40));
    for (let k = first; k <= last; k += every) {
      const at = x(piece[0] + (k * distance - piece[1]) / piece[2]);
      const group = document.createElementNS(NS, "g");
      group.setAttribute("class", "tick");
      put(group, "line", { x1: at, x2: at, y1: y, y2: isTrue ? y + height : y + 5 });
      const words = seconds(k * distance, distance) + (isTrue ? " s" : ""), length = wide(words, 11);
      const begins = Math.max(left, Math.min(at + 3, right - length));
      if (begins > taken) {
        put(group, "text", { x: begins, y: isTrue ? y - 4 : y + 18 }, words);
        taken = begins + length + 5;
      }
      ticks.appendChild(group);
    }
  });
}
function layout() {
  const right = left + width();
  document.getElementById("window").setAttribute("width", Math.max(0, width() + 1));
  // On paper the plot is as wide as the page, and all of it is there.
  plot.setAttribute("viewBox", `0 0 ${plot.clientWidth} ${run.height}`);
  for (const node of plot.querySelectorAll("[data-a]")) {
    const a = x(+node.dataset.a), b = x(+(node.dataset.b ?? node.dataset.a));
    if (node.tagName === "rect") {
      const l = Math.max(left - 5, Math.min(a, right + 5)), r = Math.max(left - 5, Math.min(b, right + 5));
      node.setAttribute("x", l); node.setAttribute("width", Math.max(r - l, b >= left && a <= right ? 2 : 0));
      // What is in force all the time that is shown sets nothing apart: its bar says so.
      if (node.classList.contains("band")) node.style.display = a <= left && b >= right - 1 ? "none" : "";
    } else if (node.tagName === "circle") node.setAttribute("cx", a);
    else if (node.tagName === "line") { node.setAttribute("x1", a); node.setAttribute("x2", a); }
    else if (node.classList.contains("in")) {
      const l = Math.max(a, left), room = Math.min(b, right) - l;
      node.setAttribute("x", l + 5); node.style.display = room > wide(node.textContent, 11) + 10 ? "" : "none";
    } else {
      // Words about a bar stand behind it; where that is off the plot, before it; and where that is, too, on it.
      const out = node.classList.contains("out");
      if (out) node.textContent = cut(node.full ??= node.textContent, width() - 14, 11);
      const length = out ? wide(node.textContent, 11) + 12 : 0;
      const behind = Math.max(Math.min(b, right), left), before = Math.min(Math.max(a, left), right);
      const end = out && behind + length > right && before - length > left;
      const on = out && behind + length > right && !end;
      node.setAttribute("x", !out ? a : end ? before - 7 : on ? Math.min(before + 7, right - length + 5) : behind + 7);
      node.style.textAnchor = end ? "end" : "";
      node.style.display = out && (b < left || a > right) ? "none" : "";
    }
  }
  // A label of a write that would cover the one before it is left out; the title has it.
  let taken = -1e9;
  for (const node of plot.querySelectorAll(".token")) {
    const at = +node.getAttribute("x"), half = node.textContent.length * 3.4 + 3;
    node.style.display = at - half < taken ? "none" : "";
    if (at - half >= taken) taken = at + half;
  }
  drawMessages();
  ticks.replaceChildren();
  axis(run.top, run.height - run.top, [[0, 0, 1]], true);
  for (const clock of run.clocks) axis(clock.y, clock.height, clock.pieces, false);
}
// The messages in view, from row to row, as they leave and arrive; when they are too many to tell apart, how many there are.
const arrows = document.getElementById("messages"), ARROWS_MAX = 350;
function drawMessages() {
  arrows.replaceChildren();
  if (!run.messages) return;
  const inView = run.messages.list.filter(([, , sent, due]) => (due ?? sent) >= from && sent <= until);
  if (inView.length > ARROWS_MAX) {
    const y = Math.min(...run.messages.list.map(message => message[0])) - 8;
    put(arrows, "text", { class: "many", x: left + 8, y: y + 12 }, cut(inView.length + " messages: zoom in to see them" +
      (run.messages.leftOut ? " (" + run.messages.leftOut + " farther away are not on this page)" : ""), width() - 10, 12));
    return;
  }
  for (const [y1, y2, sent, due, isRequest, words] of inView) {
    // What never arrived ends half way.
    const never = due === null || due > run.end, group = document.createElementNS(NS, "g");
    const x1 = x(sent), x2 = never ? x1 + 14 : x(due), ends = never ? (y1 + y2) / 2 : y2;
    group.setAttribute("class", "message" + (isRequest ? "" : " reply") + (never ? " never" : ""));
    const title = document.createElementNS(NS, "title");
    title.textContent = words + "\nleft at " + sent / 1e6 + " s, " + (never ? "never arrived" : (isRequest ? "read at " : "due at ") + due / 1e6 + " s");
    group.appendChild(title);
    put(group, "line", { class: "reach", x1, y1, x2, y2: ends });
    put(group, "line", { x1, y1, x2, y2: ends });
    const turn = Math.atan2(ends - y1, x2 - x1) * 180 / Math.PI;
    const head = never ? "M-4,-4 L4,4 M-4,4 L4,-4" : "M0,0 L-7,-3 L-7,3 Z";
    put(group, "path", { d: head, transform: `translate(${x2} ${ends}) rotate(${turn})` });
    arrows.appendChild(group);
  }
}
function show(a, b) {
  const span = Math.max(b - a, 200);
  if (a < 0) { b -= a; a = 0; }
  from = Math.max(0, Math.min(a, run.end - span)); until = Math.min(run.end, Math.max(b, from + span));
  layout();
  remember();
}
// The address names what is in view, so that it can be sent to someone: #t=10.2s..11.4s, or #t=10.2s for the second around it.
let pending = 0;
function remember() {
  clearTimeout(pending);
  pending = setTimeout(() => {
    const whole = from === 0 && until === run.end;
    const hash = whole ? "#t=all" : "#t=" + from / 1e6 + "s.." + until / 1e6 + "s";
    if (location.hash !== hash) history.replaceState(null, "", hash);
  }, 150);
}
function fromAddress() {
  if (location.hash === "#t=all") return [0, run.end];
  const found = /^#t=([\d.]+)s?(?:\.\.([\d.]+)s?)?$/.exec(location.hash.replace(/(\d)\.\.(\d)/, "$1s..$2"));
  if (!found || !isFinite(+found[1]) || (found[2] && !isFinite(+found[2]))) return null;
  const at = +found[1] * 1e6;
  return found[2] ? [at, +found[2] * 1e6] : [at - 5e5, at + 5e5];
}
function zoom(factor, around) {
  const span = (until - from) * factor, share = (around - from) / (until - from);
  show(around - span * share, around + span * (1 - share));
}
// The keys and the buttons zoom about where the violation begins, if that can be seen: the middle of a witness is mostly bars alone.
const centre = () => run.focus && run.focus[0] > from && run.focus[0] < until ? run.focus[0] : (from + until) / 2;
const time = event => from + (event.clientX - plot.getBoundingClientRect().left - left) / width() * (until - from);
// The timeline must not hold up who scrolls past it: what begins beside it, or over its names, goes on scrolling, and so does what would
// zoom out of the whole run.
let scrolled = -1e9;
addEventListener("wheel", event => {
  const isOver = plot.contains(event.target) && event.clientX >= plot.getBoundingClientRect().left + left;
  const isWhole = event.deltaY > 0 && from === 0 && until === run.end;
  if (!isOver || isWhole || event.timeStamp - scrolled < 400) { scrolled = event.timeStamp; return; }
  event.preventDefault();
  zoom(event.deltaY > 0 ? 1.25 : .8, time(event));
}, { passive: false });
let held = null;
plot.addEventListener("pointerdown", event => { held = { x: event.clientX, from, until }; plot.setPointerCapture(event.pointerId); });
plot.addEventListener("pointermove", event => {
  if (!held) return;
  const by = (event.clientX - held.x) / width() * (held.until - held.from);
  show(held.from - by, held.until - by);
});
for (const over of ["pointerup", "pointercancel"]) plot.addEventListener(over, () => { held = null; });
plot.addEventListener("dblclick", () => show(0, run.end));
function around([a, b]) {
  const margin = Math.max((b - a) * .6, 2000);
  show(a - margin, b + margin);
}
// What is shown from below comes into view.
function bring() {
  const { top } = plot.getBoundingClientRect();
  if (top < 0 || top > innerHeight * .6) document.querySelector(".bar-line").scrollIntoView({ behavior: "smooth" });
}
// A verdict above the timeline and its story below it have the same witness.
const spans = [...document.querySelectorAll("[data-show]")].map(button => {
  button.addEventListener("click", () => { around(button.dataset.show.split(" ").map(Number)); bring(); });
  return button.dataset.show;
});
const witnesses = [...new Set(spans)].map(span => span.split(" ").map(Number));
for (const link of document.querySelectorAll("a[href^='#t=']")) link.addEventListener("click", bring);
let latest = -1;
function nextWitness() {
  if (!witnesses.length) return;
  latest = (latest + 1) % witnesses.length;
  around(witnesses[latest]);
}
document.getElementById("witness").addEventListener("click", nextWitness);
document.getElementById("witness").disabled = !witnesses.length;
const keys = {
  "+": () => zoom(.5, centre()), "=": () => zoom(.5, centre()), "-": () => zoom(2, centre()),
  ArrowLeft: () => move(-.2), ArrowRight: () => move(.2), 0: () => show(0, run.end), w: nextWitness,
};
function move(share) {
  const by = Math.max(-from, Math.min(run.end - until, share * (until - from)));
  show(from + by, until + by);
}
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});
for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", async () => {
  const text = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "copied";
  } catch {
    // Without the right to the clipboard the text is selected, to be copied by hand.
    getSelection().selectAllChildren(text);
    button.textContent = "selected";
  }
  setTimeout(() => { button.textContent = "copy"; }, 1500);
});
document.getElementById("in").addEventListener("click", () => zoom(.5, centre()));
document.getElementById("out").addEventListener("click", () => zoom(2, centre()));
document.getElementById("all").addEventListener("click", () => show(0, run.end));
addEventListener("resize", () => { label(); layout(); });
addEventListener("hashchange", () => { const span = fromAddress(); if (span) show(...span); });
label();
// At first what the address asks for, else the witness, else the whole run.
const asked = fromAddress();
if (asked) show(...asked);
else if (run.focus) around(run.focus);
else layout();
