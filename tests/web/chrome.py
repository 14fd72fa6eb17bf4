"""A headless Chromium, driven over its DevTools pipe: no driver, no websocket, no port."""

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]
_PIPED = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


_POLLS = 1500  # a backstop: whatever has not come by then never comes


class Chrome:
    """One page. `errors` collects what its console complains of, `asked` every address it asks for."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs, ours = os.pipe()
        mine, yours = os.pipe()
        low = [os.dup(fd) for fd in (theirs, yours)]  # above 4, wherever they were
        command = [sys.executable, "-c", _PIPED, *map(str, low), CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(command, pass_fds=low, stderr=subprocess.DEVNULL)
        for fd in (theirs, yours, *low):
            os.close(fd)
        self._to, self._from = os.fdopen(ours, "wb", buffering=0), os.fdopen(mine, "rb")
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.asked: list[str] = []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __enter__(self) -> "Chrome":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._to.close()
        self._process.kill()
        self._process.wait()
        self._from.close()

    def __call__(self, method: str, **parameters: Any) -> Any:
        """One DevTools command, and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self._hear(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._from.fileno(), 1 << 16)
            assert more, "Chromium has gone"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _hear(self, event: dict[str, Any]) -> None:
        details = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(details["exceptionDetails"]))
            case "Log.entryAdded" if details["entry"]["level"] == "error":
                self.errors.append(str(details["entry"]))
            case "Network.requestWillBeSent":
                self.asked.append(details["request"]["url"])

    def goto(self, url: str) -> None:
        """Open a page, and wait until it has loaded."""
        self("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        done = self("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until this is true in the page; a navigation under way is waited out."""
        waits = (
            "new Promise((done, fail) => { let polls = 0; const poll = () => "
            f"({condition}) ? done(true) : ++polls > {_POLLS} ? fail('never: ' + document.body.innerText) "
            ": setTimeout(poll, 10); poll(); })"
        )
        while True:
            try:
                self.run(waits)
            except AssertionError as error:
                if "navigat" in str(error) or "context" in str(error):
                    continue
                raise
            return

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        """One key, as from a keyboard."""
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def screen(self, width: int, height: int, dark: bool = False) -> None:
        """The size of the window, and the colour scheme that its user prefers."""
        mobile = width < 600
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def shot(self, path: Path, whole: bool = True) -> None:
        """The page as a picture."""
        data = self("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
