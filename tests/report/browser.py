"""Headless Chromium, driven over its DevTools protocol through a pipe: no driver, no library, no network."""

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

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--proxy-server=127.0.0.1:9",  # nothing listens there: whatever leaves the disk fails
    "--remote-debugging-pipe",
    "--hide-scrollbars",
)
_KEYS: Final = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Tab": 9, "h": 72}
_ON_3_AND_4: Final = (  # where Chromium looks for the pipe's ends
    "import os, sys, fcntl; ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]; "
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One browser with one page at a time; what went wrong in the page is kept."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = os.fdopen(to, "wb", buffering=0), os.fdopen(of, "rb", buffering=0)
        self._read, self._number, self._session = b"", 0, ""
        self.errors: list[str] = []  # console errors, exceptions, loads that failed
        self.asked: list[str] = []  # every address that was loaded
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
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, said["error"]
                result: dict[str, Any] = said["result"]
                return result

    def close(self) -> None:
        """Let go of the pipe."""
        self._to.close()
        self._of.close()

    def open(self, page: Path, after: str = "", *, width: int = 1440, dark: bool = False) -> None:
        """Load a page from disk and wait until it is drawn."""
        self.errors, self.asked = [], []
        self("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme])
        self._go("about:blank")  # else another part of the same page would be no load
        self._go(page.resolve().as_uri() + after)
        self.drawn()

    def _go(self, address: str) -> None:
        before = self._loaded
        self("Page.navigate", url=address)
        while self._loaded == before:
            self._next()

    def drawn(self) -> None:
        """Wait until what was changed is on the screen."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def value(self, script: str) -> Any:
        """The value of an expression in the page."""
        said = self("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def text(self, selector: str) -> str:
        """What stands in an element."""
        text: str = self.value(f"document.querySelector({json.dumps(selector)}).textContent")
        return text

    def click(self, selector: str) -> None:
        """Click an element where it lies on the screen."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{element}.scrollIntoView({{block: 'center'}})")
        box = self.value(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({element}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        self.drawn()

    def key(self, name: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=_KEYS[name])
        self.drawn()

    def screenshot(self, file: Path) -> None:
        """The whole page as PNG."""
        size = self("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        data = self("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        file.write_bytes(base64.b64decode(data))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            got = self._of.read(1 << 16)
            assert got, "the browser is gone"
            self._read += got
        line, _, self._read = self._read.partition(b"\0")
        said: dict[str, Any] = json.loads(line)
        self._note(said.get("method", ""), said.get("params", {}))
        return said

    def _note(self, method: str, said: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded += 1
            case "Network.requestWillBeSent":
                self.asked.append(said["request"]["url"])
            case "Network.loadingFailed":
                self.errors.append(f"not loaded: {said['errorText']}")
            case "Runtime.exceptionThrown":
                details = said["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            case "Log.entryAdded":
                self.errors.append(said["entry"]["text"])
            case "Runtime.consoleAPICalled" if said["type"] in ("error", "warning", "assert"):
                self.errors.append(str(said["args"]))


@contextmanager
def started() -> Iterator[Browser]:
    """A browser of its own; never outlives the test."""
    assert CHROMIUM is not None
    theirs_in, to = os.pipe()
    of, theirs_out = os.pipe()
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        ends = (str(theirs_in), str(theirs_out))
        command = [sys.executable, "-c", _ON_3_AND_4, *ends, CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"]
        with subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL) as process:
            os.close(theirs_in)
            os.close(theirs_out)
            browser = Browser(to, of)
            try:
                yield browser
            finally:
                browser.close()
                process.kill()
