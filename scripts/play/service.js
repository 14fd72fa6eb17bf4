// The service worker: keeps the site's files for visits without a network, and passes the requests of pages to a tab.

const STORE = "dubito play";
const SCOPE = new URL("./", location.href);
const PAGES = new URL("app/", SCOPE).pathname;
const FILES = new URL("files/", SCOPE).pathname;
const SHELL = ["./", "play.css", "play.js", "engine.js", "icon.svg", "files.json"];

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(caches.open(STORE).then((store) => store.addAll(SHELL)));
});
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("message", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url);
  if (origin !== location.origin || !pathname.startsWith(SCOPE.pathname)) return;
  if (pathname.startsWith(PAGES)) event.respondWith(visit(event.request));
  else if (!pathname.startsWith(FILES)) event.respondWith(fetchNewest(event.request));
  else if (!pathname.endsWith(".packed")) event.respondWith(caches.match(event.request));
});

async function fetchNewest(request) {
  const store = await caches.open(STORE);
  try {
    const response = await fetch(request);
    if (response.ok && request.method === "GET") await store.put(request.url.split(/[?#]/)[0], response.clone());
    return response;
  } catch (error) {
    const kept = await store.match(request, { ignoreSearch: true });
    if (!kept) throw error;
    return kept;
  }
}

async function visit(request) {
  const { pathname, search } = new URL(request.url);
  const address = `${pathname.slice(PAGES.length - 1)}${search}`;
  if (request.destination === "document") return Response.redirect(`${SCOPE.href}#${address}`);
  const body = request.method === "POST" ? await request.text() : "";
  const { text, status, headers } = await ask({ method: request.method, address, body });
  return new Response(text, { status, headers });
}

// Asks all tabs. The one that has the engine answers, and the others are told.
async function ask(data) {
  const all = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const tabs = all.filter(({ url }) => !new URL(url).pathname.startsWith(PAGES));
  const ports = [];
  return new Promise((resolve) => {
    for (const tab of tabs) {
      const { port1, port2 } = new MessageChannel();
      ports.push(port1);
      port1.onmessage = (event) => {
        resolve(event.data);
        for (const port of ports) port.postMessage("answered");
      };
      tab.postMessage(data, [port2]);
    }
  });
}
