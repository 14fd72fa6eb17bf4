"""The template files of a prompt: found, read once, parsed, checked; and how a template writes a value."""

from collections.abc import Mapping, MutableMapping, Sequence, Set
from pathlib import Path
from typing import Any, Final

from jinja2 import (
    Environment,
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
    Undefined,
    meta,
    nodes,
)
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dubito.errors import UsageError, one_line, suggestion
from dubito.user_files import read_text

DESCRIPTION: Final = "prompt.yaml"
TEMPLATES: Final = ("system.jinja", "user.jinja")
HISTORY: Final = "history.jinja"
_WANTED: Final = f": a prompt's folder has {DESCRIPTION}, {' and '.join(TEMPLATES)}, and what these include"


def plain(value: object) -> object:
    """How a template writes a value: unknown, yes, no, two decimals, words with spaces, `2x 7, 1x king`."""
    if isinstance(value, str) or type(value) is int:  # most are one or the other; a bool is not
        return value
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple):
        return " ".join(str(plain(item)) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{n}x {key}" for key, n in value.items()) or "none"
    if not isinstance(value, int | Undefined):  # a function, say: it would be written with its address in memory
        raise TypeError(f"a value of type {type(value).__name__} cannot be written; are brackets missing?")
    return value


class TemplateFiles:
    """The templates of one prompt, each read once from the first folder that has it."""

    def __init__(self, folder: Path, sources: Mapping[str, str] | None, shared: Sequence[Path]) -> None:
        self._roots = [] if sources else [folder, folder.parent, *shared]
        self.sources: dict[str, str] = dict(sources or {})
        self.paths = {name: folder / name for name in self.sources}
        self._folder = folder

    def has(self, name: str) -> bool:
        """Whether the prompt's own folder, or what stands for it, has this file."""
        return (self._folder / name).is_file() if self._roots else name in self.sources

    def source(self, name: str) -> str:
        """The text of a template, named as an include names it; raises UsageError if there is none."""
        if name not in self.sources:
            inside = (root / name for root in self._roots if (root / name).resolve().is_relative_to(root.resolve()))
            path = next((path for path in inside if path.is_file()), None)
            if path is None:
                raise UsageError(f"there is no {one_line(str(self._folder / name))}{_WANTED}")
            self.sources[name], self.paths[name] = read_text(path), path
        return self.sources[name]

    def loaded(self, name: str) -> tuple[str, str, None]:
        """What a FunctionLoader gives: the text, and the path for tracebacks."""
        return self.source(name), str(self.paths[name]), None

    def reachable(self, environment: Environment, name: str) -> dict[str, nodes.Template]:
        """The template and all that it includes, parsed; raises UsageError naming file and line."""
        trees: dict[str, nodes.Template] = {}
        wanted = [name]
        while wanted:
            name = wanted.pop()
            if name in trees:
                continue
            trees[name] = self._parsed(environment, name)
            for other in meta.find_referenced_templates(trees[name]):
                if other is None:
                    raise UsageError(f"{self.paths[name]}: the name of an included file must be a plain text")
                wanted.append(other)
        return trees

    def _parsed(self, environment: Environment, name: str) -> nodes.Template:
        try:
            tree = environment.parse(self.source(name), name)
            environment.compile(tree, name)
        except TemplateSyntaxError as error:
            raise UsageError(f"{self.paths[name]}, line {error.lineno}: {said(error)}; correct it") from None
        return tree

    def place(self, error: BaseException) -> str:
        """File and line of the template where it was raised."""
        names = {str(path) for path in self.paths.values()}
        place, trace = str(self.paths[TEMPLATES[0]].parent), error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename in names:
                place = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
            trace = trace.tb_next
        return place


class _Environment(ImmutableSandboxedEnvironment):
    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """The globals as one dictionary: each rendering copies them, and a chain of two takes far longer."""
        return {**self.globals, **(d or {})}


def new_environment(files: TemplateFiles) -> Environment:
    environment = _Environment(
        loader=FunctionLoader(files.loaded),
        undefined=StrictUndefined,
        finalize=plain,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    del environment.globals["lipsum"], environment.filters["random"]  # the same facts give the same bytes
    return environment


def check_names(files: TemplateFiles, trees: Mapping[str, nodes.Template], known: Set[str]) -> None:
    """Refuse a variable that is neither a fact nor set by a template: it would be an error one day."""
    own = {node.name for tree in trees.values() for node in tree.find_all(nodes.Name) if node.ctx == "store"}
    for name, tree in trees.items():
        allowed = known if name in (*TEMPLATES, HISTORY) else known | own
        for unknown in sorted(meta.find_undeclared_variables(tree) - allowed):
            hint = suggestion(unknown, known)
            if HISTORY in trees:
                hint += f"; what changes in a game belongs in {TEMPLATES[1]}"
            raise UsageError(f"{files.paths[name]}: there is no variable '{unknown}': {hint}")


def read_described(folder: Path) -> str:
    """What a prompt's folder says of itself; raises UsageError."""
    if not (folder / DESCRIPTION).exists():
        raise UsageError(f"there is no {one_line(str(folder / DESCRIPTION))}{_WANTED}")
    return read_text(folder / DESCRIPTION)


def said(error: Exception) -> str:
    text = error.message if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
    return one_line(text or type(error).__name__).rstrip(".")
