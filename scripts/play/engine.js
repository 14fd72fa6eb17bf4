// Runs Dubito's Python code and answers the visits of its pages, one after another. Games are kept in this browser.

import { loadPyodide } from "./files/pyodide.mjs";

const GAMES = "/games";
let python;
let site;
let last = start();
last.catch((error) => postMessage(error.message));

async function start() {
  const packages = fetch("files/packages.zip").then((response) => response.arrayBuffer());
  python = await loadPyodide({ indexURL: new URL("files/", import.meta.url).href });
  python.unpackArchive(await packages, "zip", { extractDir: "/packages" });
  python.FS.mkdir(GAMES);
  python.FS.mount(python.FS.filesystems.IDBFS, {}, GAMES);
  await synchronize(true);
  site = python.runPython(`
import sys
from pathlib import Path

sys.path.insert(0, "/packages")
from dubito.web.in_page import InPage

InPage(Path("${GAMES}"), "${new URL("./", location.href)}")
`);
}

// Reads or saves the games. Where the browser keeps nothing, they can be played all the same.
function synchronize(isRead) {
  return new Promise((resolve) => {
    python.FS.syncfs(isRead, (error) => {
      if (error) console.warn("Games are not saved:", error);
      resolve();
    });
  });
}

async function answer({ method, address, body, person }) {
  const reply = JSON.parse(site.visit(method, address, body, person));
  if (method === "POST") await synchronize(false);
  return reply;
}

addEventListener("message", ({ data, ports: [port] }) => {
  last = last.then(() => answer(data)).then((reply) => port.postMessage(reply));
  last.catch((error) => postMessage(error.message));
});
