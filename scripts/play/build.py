"""Build the site that plays without Python: python scripts/play/build.py FOLDER. Needs `npm` and `node`.

Pyodide, from the npm registry, runs this project's code in the visitor's browser. The packages are the installed ones,
except for the compiled part of Pydantic, which comes from the package index.
"""

import gzip
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import distribution, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

HERE: Final = Path(__file__).resolve().parent
REPO: Final = HERE.parent.parent
CACHE: Final = REPO / "build" / "pyodide"  # downloads
PYODIDE, PYTHON, PLATFORM = "314.0.7", "3.14", "pyemscripten_2026_0_wasm32"  # of this version of Pyodide
COMPILED: Final = "pydantic-core"
PACKAGES: Final = (
    *("annotated-types", "jinja2", "markupsafe", "pluggy", "pydantic", "pyyaml", "typing-extensions"),
    "typing-inspection",
)
ENGINE: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json")
PAGES: Final = ("index.html", "play.css", "play.js", "engine.js", "service.js")
OURS: Final = ("bots", "prompts")  # folders that the wheel has inside `dubito`
# What the pages do not use, by the start of its path.
_UNUSED: Final = """
    dubito/cli dubito/house dubito/plugins dubito/prompts dubito/sandbox dubito/seats dubito/workshop
    dubito/llm/prices dubito/report/static/echarts jinja2/ext pydantic/deprecated pydantic/mypy pydantic/v1
    pydantic_core/_pydantic_core/ _pydatetime _pyio _pyrepl ctypes/ curses doctest encodings/big5 encodings/cp1
    encodings/cp8 encodings/cp9 encodings/euc encodings/gb encodings/iso encodings/koi encodings/mac encodings/ptcp
    encodings/shift ftplib imaplib mailbox multiprocessing optparse pdb pickletools poplib pydoc smtplib
    sqlite3/__main__ turtle unittest wsgiref xml
"""
LEFT_OUT: Final = tuple(_UNUSED.split())


def build(site: Path) -> None:
    pyodide, wheel = fetch_pyodide(), fetch_wheel()
    shutil.rmtree(site, ignore_errors=True)
    (site / "files").mkdir(parents=True)
    with TemporaryDirectory() as made:
        library, packages = Path(made, "library"), Path(made, "packages")
        unzip(pyodide / "python_stdlib.zip", library)
        collect_packages(packages)
        unzip(wheel, packages)
        subprocess.run(("node", HERE / "compile.mjs", pyodide, made), check=True)  # noqa: S607
        write_zip(Path(made, "python_stdlib.zip"), library)
        write_zip(Path(made, "packages.zip"), packages)
        sources = [*(pyodide / name for name in ENGINE), Path(made, "python_stdlib.zip"), Path(made, "packages.zip")]
        files = [pack(source, site / "files") for source in sources]
    (site / "files.json").write_text(json.dumps(files), encoding="utf-8")
    for name in PAGES:
        shutil.copy(HERE / name, site / name)
    shutil.copy(REPO / "dubito" / "web" / "static" / "icon.svg", site)
    print(f"{site / 'index.html'} ({sum(file['bytes'] for file in files) / 1e6:.1f} MB)")


def fetch_pyodide() -> Path:
    folder = CACHE / PYODIDE
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(("npm", "pack", "--silent", f"pyodide@{PYODIDE}"), cwd=CACHE, check=True, stdout=sys.stderr)  # noqa: S607
        with tarfile.open(CACHE / f"pyodide-{PYODIDE}.tgz") as archive:
            archive.extractall(CACHE / "fetched", filter="data")
        (CACHE / "fetched" / "package").rename(folder)
    return folder


def fetch_wheel() -> Path:
    name = f"{COMPILED.replace('-', '_')}-{version(COMPILED)}-cp{PYTHON.replace('.', '')}-*-{PLATFORM}.whl"
    if not [*CACHE.glob(name)]:
        where = ("--no-deps", "--only-binary", ":all:", "--platform", PLATFORM, "--python-version", PYTHON)
        words = ("pip", "download", "--quiet", *where, "--dest", CACHE, f"{COMPILED}=={version(COMPILED)}")
        subprocess.run((sys.executable, "-m", *words), check=True)
    (wheel,) = CACHE.glob(name)
    return wheel


def collect_packages(folder: Path) -> None:
    """Copy the packages without their compiled parts, which are for this machine. They work without them."""
    for package in PACKAGES:
        for file in distribution(package).files or ():
            if file.suffix == ".py" and ".." not in file.parts:
                copy(Path(str(file.locate())), folder / file)
    for top in ("dubito", *OURS):
        for file in (REPO / top).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so":
                copy(file, folder / (f"dubito/{top}" if top in OURS else top) / file.relative_to(REPO / top))


def copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)


def unzip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)  # noqa: S202, from a registry


def write_zip(archive: Path, folder: Path) -> None:
    """Write an archive that is not compressed, because the site's files are compressed as a whole."""
    with zipfile.ZipFile(archive, "w") as written:
        for file in used_files(folder):
            written.writestr(zipfile.ZipInfo(file.relative_to(folder).as_posix()), file.read_bytes())


def used_files(folder: Path) -> Iterator[Path]:
    """Yield the files that the site needs. Only games and bots keep their source, by which they are found."""
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        is_source = file.suffix in (".py", ".pyi") and not name.startswith(("dubito/bots/", "dubito/games/"))
        if file.is_file() and not (is_source or ".dist-info/" in name or name.startswith(LEFT_OUT)):
            yield file


def pack(source: Path, folder: Path) -> dict[str, str | int]:
    """Compress a file, since not every host does it. The name tells no server that it is compressed."""
    packed = gzip.compress(source.read_bytes(), 9, mtime=0)
    (folder / f"{source.name}.packed").write_bytes(packed)
    return {"name": source.name, "bytes": len(packed), "digest": sha256(packed).hexdigest()[:16]}


if __name__ == "__main__":
    build(Path(sys.argv[1]))
