// Loads Python once, then shows the pages of `dubito web`. They are answered by a worker (engine.js) instead of a server:
// service.js passes their requests to this page, and this page passes them on.

const $ = (id) => document.getElementById(id);
const SCOPE = new URL("./", location.href);
const PAGES = new URL("app/", SCOPE); // addresses of the pages
const STORE = "dubito play";
const TYPES = { wasm: "application/wasm", mjs: "text/javascript", json: "application/json", zip: "application/zip" };
const MB = 1e6;

const frame = $("page");
let engine; // only one tab has it, since all tabs have the same games
const waiting = new Map(); // visits by port, until this tab has the engine or another one has answered

// --- Loading ---

// Returns once all requests of this page and of `frame` go to service.js.
async function control() {
  if (!navigator.serviceWorker) throw new Error("This page needs https, and a window that is not private.");
  navigator.serviceWorker.addEventListener("message", forward);
  const change = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve));
  await navigator.serviceWorker.register("service.js");
  const { active } = await navigator.serviceWorker.ready;
  if (navigator.serviceWorker.controller) return;
  active.postMessage("claim"); // a reload that skips caches also skips service.js
  await change;
}

async function findMissing(store) {
  const files = await (await fetch("files.json")).json();
  const kept = await Promise.all(files.map(({ name }) => store.match(`files/${name}`)));
  return files.filter(({ digest }, place) => kept[place]?.headers.get("digest") !== digest);
}

async function download() {
  const store = await caches.open(STORE);
  const missing = await findMissing(store);
  const total = missing.reduce((sum, { bytes }) => sum + bytes, 0);
  let got = 0;
  await Promise.all(missing.map(async ({ name, digest }) => {
    const response = await fetch(`files/${name}.packed?${digest}`);
    if (!response.ok) throw new Error(`A file is missing here: ${name}`);
    const counter = new TransformStream({
      transform(chunk, to) {
        got += chunk.length;
        report(`Loading ${(got / MB).toFixed(1)} of ${(total / MB).toFixed(1)} MB …`, got / total);
        to.enqueue(chunk);
      },
    });
    const whole = response.body.pipeThrough(counter).pipeThrough(new DecompressionStream("gzip"));
    const headers = { "Content-Type": TYPES[name.split(".").at(-1)], digest };
    await store.put(`files/${name}`, new Response(whole, { headers }));
  }));
}

async function startEngine() {
  await download();
  report("Dealing the cards …");
  engine = new Worker("engine.js", { type: "module" });
  engine.addEventListener("error", (event) => fail(new Error(event.message || "Python could not start.")));
  engine.addEventListener("message", ({ data }) => fail(new Error(data)));
  for (const [port, visit] of waiting) engine.postMessage(visit, [port]);
}

function report(step, share) {
  $("step").textContent = step;
  if (share === undefined) $("progress").removeAttribute("value");
  else $("progress").value = share;
}

function fail(error) {
  $("loading").hidden = false;
  frame.hidden = true;
  $("progress").hidden = true;
  $("step").textContent = "";
  $("fault").textContent =
    `Dubito cannot start in this browser. ${error.message} With Python you can play by: uvx dubito web`;
}

// --- Pages ---

function forward({ data, ports: [port] }) {
  showAddress();
  const name = /(?:^|; )dubito-name=([^;]*)/.exec(document.cookie)?.[1] ?? "";
  const visit = { ...data, person: decodeURIComponent(name) };
  if (engine) return engine.postMessage(visit, [port]);
  waiting.set(port, visit);
  port.onmessage = () => waiting.delete(port);
}

// The address bar shows the page after `#/`. A link to these cards has them in its query, like a link to the lobby.
function open() {
  const page = location.hash.startsWith("#/") ? location.hash.slice(2) : location.search;
  frame.contentWindow.location.replace(new URL(page, PAGES));
}

async function save(event) {
  const link = event.target.closest("a[download]");
  if (!link || link.protocol === "data:") return;
  event.preventDefault();
  const response = await fetch(link.href);
  const file = URL.createObjectURL(await response.blob());
  Object.assign(document.createElement("a"), { href: file, download: link.download || "game.html" }).click();
}

function showAddress() {
  const { href } = frame.contentWindow.location;
  if (href.startsWith(PAGES.href)) {
    history.replaceState(null, "", `${SCOPE.pathname}#/${href.slice(PAGES.href.length)}`);
  }
}

frame.addEventListener("load", () => {
  if (!frame.contentWindow.location.href.startsWith(PAGES.href)) return; // still empty
  showAddress();
  document.title = frame.contentDocument.title;
  frame.contentWindow.addEventListener("hashchange", showAddress);
  frame.contentDocument.addEventListener("click", save);
  $("loading").hidden = true;
  frame.hidden = false;
  if (!frame.contentDocument.querySelector("[autofocus]")) frame.focus(); // for its keys
});
addEventListener("hashchange", open);

async function start() {
  await control();
  navigator.locks.request(`${STORE} ${SCOPE.pathname}`, () => {
    startEngine().catch(fail);
    return new Promise(() => {}); // until this tab is closed
  });
  open();
}

start().catch(fail);
