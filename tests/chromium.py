"""Headless Chromium, driven over the DevTools protocol through a pipe, without a driver or library."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")  # the most expensive last
CHROMIUM: Final = next(filter(None, map(shutil.which, _NAMES)), None)
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--proxy-server=127.0.0.1:9",  # nothing listens there, so every request that leaves this machine fails
    "--remote-debugging-pipe",
    "--hide-scrollbars",
    "--renderer-process-limit=1",  # all pages are trusted, so one process is enough
    "--disable-site-isolation-trials",
    "--disable-features=BackForwardCache,IsolateOrigins,site-per-process",
)
_KEYS: Final = {
    "ArrowRight": 39,
    "ArrowLeft": 37,
    "Home": 36,
    "End": 35,
    "Tab": 9,
    "h": 72,
    "b": 66,
    " ": 32,
    "Enter": 13,
}
_TYPED: Final = {" ": " ", "Enter": "\r"}
_ON_3_AND_4: Final = (  # Chromium expects the ends of the pipe here
    "import os, sys, fcntl; ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]; "
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
_POLLS: Final = 1500  # gives up after this many polls


class Chrome:
    """A browser with one page at a time. It collects the errors of its pages until they are cleared."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = os.fdopen(to, "wb", buffering=0), os.fdopen(of, "rb", buffering=0)
        self._read, self._number, self._session = b"", 0, ""
        self.errors: list[str] = []  # console errors and warnings, exceptions, failed loads
        self.asked: list[str] = []  # every requested address
        self._loaded = 0
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            incoming = self._next()
            if incoming.get("id") == self._number:
                assert "error" not in incoming, incoming["error"]
                result: dict[str, Any] = incoming["result"]
                return result

    def close(self) -> None:
        self._to.close()
        self._of.close()

    def forget(self) -> None:
        self.errors, self.asked = [], []

    def leave(self) -> None:
        self._went("about:blank")

    def forget_what_is_stored(self, origin: str) -> None:
        self("Storage.clearDataForOrigin", origin=origin, storageTypes="local_storage")

    def screen(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Set the window's size and the preferred colour scheme."""
        mobile = width < 600
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def open(self, page: Path | str, after: str = "") -> None:
        """Load a file or an address, with `after` appended, and wait until it is drawn."""
        address = page.resolve().as_uri() if isinstance(page, Path) else page
        if not self._went(address + after):  # only the fragment differs from the open page
            self._went("about:blank")
            self._went(address + after)
        self.drawn()

    def go_to(self, part: str) -> None:
        self.run(f"location.hash = {json.dumps(part)}")
        self.drawn()

    def _went(self, address: str) -> bool:
        """Navigate there, and return whether a page was loaded, which the caller must wait for."""
        before = self._loaded
        if "loaderId" not in self("Page.navigate", url=address):
            return False
        while self._loaded == before:
            self._next()
        return True

    def drawn(self) -> None:
        self._run_again_if_navigated(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
        )

    def run(self, script: str) -> Any:
        message = self("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in message, message
        return message["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until this expression is true in the page, including during navigation."""
        waits = (
            "new Promise((done, fail) => { let polls = 0; const poll = () => "
            f"({condition}) ? done(true) : ++polls > {_POLLS} ? fail('never: ' + document.body.innerText) "
            ": setTimeout(poll, 10); poll(); })"
        )
        self._run_again_if_navigated(waits)

    def _run_again_if_navigated(self, script: str) -> None:
        """Run a script, and again if the page changes, such as after a click on a link."""
        while True:
            try:
                self.run(script)
            except AssertionError as error:
                if "navigat" in str(error) or "context" in str(error):
                    continue
                raise
            return

    def text(self, selector: str) -> str:
        text: str = self.run(f"document.querySelector({json.dumps(selector)}).textContent")
        return text

    def click(self, selector: str) -> None:
        """Click an element at its position on the screen."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{element}.scrollIntoView({{block: 'center'}})")
        box = self.run(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({element}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        self.drawn()

    def key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            pressed = {"key": name, "windowsVirtualKeyCode": _KEYS[name], "text": _TYPED.get(name, "")}
            self("Input.dispatchKeyEvent", type=kind, **pressed)
        self.drawn()

    def screenshot(self, file: Path) -> None:
        kind: dict[str, Any] = {"format": file.suffix[1:], "quality": 80} if file.suffix != ".png" else {}
        file.write_bytes(base64.b64decode(self("Page.captureScreenshot", **kind)["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            got = self._of.read(1 << 16)
            assert got, "the browser has exited"
            self._read += got
        line, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, usage: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded += 1
            case "Network.requestWillBeSent":
                self.asked.append(usage["request"]["url"])
            case "Network.loadingFailed" if not usage.get("canceled"):
                self.errors.append(f"not loaded: {usage['errorText']}")
            case "Runtime.exceptionThrown":
                details = usage["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded":
                self.errors.append(usage["entry"]["text"])
            case "Runtime.consoleAPICalled" if usage["type"] in ("error", "warning", "assert"):
                self.errors.append(str(usage["args"]))


@contextmanager
def start_browser() -> Iterator[Chrome]:
    """Start a separate browser that ends with the test."""
    assert CHROMIUM is not None
    theirs_in, to = os.pipe()
    of, theirs_out = os.pipe()
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        ends = (str(theirs_in), str(theirs_out))
        command = [sys.executable, "-c", _ON_3_AND_4, *ends, CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"]
        with subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL) as process:
            os.close(theirs_in)
            os.close(theirs_out)
            chrome = Chrome(to, of)
            try:
                yield chrome
            finally:
                chrome.close()
                process.kill()
