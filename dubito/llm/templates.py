"""The template files of a prompt: found, read once, parsed, checked; and how a template writes a value."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from contextlib import contextmanager
from functools import wraps
from itertools import islice
from math import prod
from pathlib import Path
from types import BuiltinMethodType, GeneratorType, MethodType
from typing import Any, Final, NamedTuple

from jinja2 import (
    Environment,
    FunctionLoader,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateRuntimeError,
    TemplateSyntaxError,
    Undefined,
    meta,
    nodes,
)
from jinja2.compiler import CodeGenerator, Frame, operators
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from dubito.errors import UsageError, one_line, suggestion
from dubito.files import read_text
from dubito.game.speech import quoted

DESCRIPTION: Final = "prompt.yaml"
_STEPS: Final = 1_000_000  # of one rendering; the longest of ours takes a hundredth
_LONGEST: Final = 500_000  # characters of a text: a model reads a token of about four at a time, and few read more
_PRODUCT: Final = 20_000_000  # of the two largest values of an operation that may make a longer one
_AT_ONCE: Final = 4096  # pieces of a text that are looked at together
_BITS: Final = 4096  # of a whole number
_WIDENING: Final = {"*", "format", "center", "ljust", "rjust", "zfill", "expandtabs", "to_bytes"} | {
    *("indent", "batch", "slice", "tojson", "wordwrap"),
}  # where a number is a width or a count
_MULTIPLYING: Final = {"join", "replace", "urlize", "xmlattr", "sum"}  # filters that put one text into many places
_INSTANT: Final = {"count", "length", "first", "default", "d", "defined", "undefined", "none", "sameas"} | {
    *("boolean", "callable", "float", "integer", "iterable", "mapping", "number", "sequence", "string"),
}  # filters and tests that do not go through what they are given
_LEAVES: Final = {int, float, bool, type(None)}  # a step each
_QUADRATIC: Final = {"encode", "decode"}  # methods, with some of their codecs; a prompt needs none
_WIDEST: Final = 9999  # characters of a field in a format
_WIDE: Final = re.compile(r"%(\(.*?\))?[-#0 +]*(\*|\d{5}|\d*\.(\*|\d{5}))|:[^{}]*(\d{5}|\{)").search
TEMPLATES: Final = ("system.jinja", "user.jinja")
HISTORY: Final = "history.jinja"
PARAGRAPH: Final = "paragraph.jinja"  # of a prompt that extends another: what stands behind the other's system text
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

    def __init__(
        self, folder: Path, sources: Mapping[str, str] | None, shared: Sequence[Path], extends: str | None = None
    ) -> None:
        """Of the folder, or instead of it these `sources`; where it `extends` another prompt, what it lacks is that
        one's. Raises UsageError where there is no such prompt."""
        self._roots = [] if sources else [folder, folder.parent, *shared]
        self.sources: dict[str, str] = dict(sources or {})
        self.paths = {name: folder / name for name in self.sources}
        self._own = [folder]  # where the prompt's own files may lie
        if extends and not sources:
            self._own.append(self._extended(extends))
            self._roots.insert(1, self._own[1])

    def _extended(self, name: str) -> Path:
        found = next((root / name for root in self._roots[1:] if (root / name / DESCRIPTION).is_file()), None)
        if found is None:
            where = "beside it or in the project"
            raise UsageError(f"{one_line(str(self._own[0] / DESCRIPTION))}: extends: there is no prompt {name} {where}")
        if (found / PARAGRAPH).is_file():
            what = f"{name} extends another prompt itself: name that one"
            raise UsageError(f"{one_line(str(self._own[0] / DESCRIPTION))}: extends: {what}")
        return found

    def has(self, name: str) -> bool:
        return any((folder / name).is_file() for folder in self._own) if self._roots else name in self.sources

    def source(self, name: str) -> str:
        """The text of a template, named as an include names it; raises UsageError if there is none."""
        if name not in self.sources:
            inside = (root / name for root in self._roots if (root / name).resolve().is_relative_to(root.resolve()))
            path = next((path for path in inside if path.is_file()), None)
            if path is None:
                raise UsageError(f"there is no {one_line(str(self._own[0] / name))}{_WANTED}")
            behind = name == TEMPLATES[0] and len(self._own) > 1 and self.has(PARAGRAPH)
            self.sources[name] = read_text(path) + (f'\n{{% include "{PARAGRAPH}" %}}\n' if behind else "")
            self.paths[name] = path
        return self.sources[name]

    def loaded(self, name: str) -> tuple[str, str, None]:
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
        except (
            SyntaxError,
            ValueError,
            RecursionError,
            MemoryError,
        ) as error:  # of the compiler: it is nested too deeply
            raise UsageError(f"{self.paths[name]}: it cannot be compiled: {said(error)}; correct it") from None
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


class _Code(CodeGenerator):
    """Has the turns of loops counted, and what lists, texts and comparisons take."""

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802
        counted = nodes.EnvironmentAttribute("turns", lineno=node.lineno)
        node.iter = nodes.Call(counted, [node.iter], [], None, None, lineno=node.lineno)
        super().visit_For(node, frame)

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:  # noqa: N802
        if isinstance(node.node, nodes.EnvironmentAttribute):  # the one of a loop: called as it stands, it is quicker
            self.write(f"environment.{node.node.name}(")
            self.visit(node.args[0], frame)
            self.write(")")
        else:
            super().visit_Call(node, frame, forward_caller=forward_caller)

    def _weighed(self, visit: Callable[[Any, Frame], None], node: nodes.Node, frame: Frame) -> None:
        self.write("environment.weighed(")
        visit(node, frame)
        self.write(")")

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        if node.ctx == "load":
            self._weighed(super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802
        self._weighed(super().visit_List, node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        self._weighed(super().visit_Dict, node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self._weighed(super().visit_Concat, node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802
        if isinstance(node.arg, nodes.Slice):
            self._weighed(super().visit_Getitem, node, frame)
        else:
            super().visit_Getitem(node, frame)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802
        self.write("(")
        self._weighed(self.visit, node.expr, frame)
        for operand in node.ops:
            self.write(f" {operators[operand.op]} ")
            self._weighed(self.visit, operand.expr, frame)
        self.write(")")


class Piece(NamedTuple):
    """A piece of a rendered text, and which line of which template wrote it."""

    text: str
    template: str
    line: int


class _Meter(threading.local):
    """Of the rendering of each thread."""

    left = _STEPS
    name: str | None = None
    noted: list[list[Piece]] | None = None  # of each text its pieces, where they are asked for


class _Template(Template):
    def render(self, *args: Any, **kwargs: Any) -> str:
        self.environment.begin(self.name)  # type: ignore[attr-defined]
        return super().render(*args, **kwargs)


class _Environment(ImmutableSandboxedEnvironment):
    """Ends a rendering that takes too many steps, always at the same one: a prompt may come with somebody's run.

    A step is a character, an item or a turn of a loop; a call takes ten, an include a hundred. What would make a text
    or list far longer than what it is made from is reckoned before it is done.
    """

    code_generator_class = _Code
    template_class = _Template
    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=self._written, **options)
        self._meter = _Meter()
        filters = {**self.filters, "quoted": quoted}  # what somebody said, as data
        self.filters = {name: self._metered(name, function) for name, function in filters.items()}
        tests: Mapping[str, Any] = self.tests
        self.tests = {name: self._metered(name, test) for name, test in tests.items()}

    def begin(self, name: str | None) -> None:
        self._meter.left, self._meter.name = _STEPS, name

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        return {**self.globals, **(d or {})}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in _QUADRATIC and super().is_safe_attribute(obj, attr, value)

    def spend(self, steps: int) -> None:
        """So many steps are taken; raises TemplateRuntimeError if they were too many."""
        meter = self._meter
        meter.left -= steps
        if meter.left < 0:
            raise TemplateRuntimeError(f"it takes more than {_STEPS:,} steps: shorten its loops and texts")

    def weighed(self, value: Any) -> Any:
        self.spend(1 if type(value) is int else len(value) + 1 if type(value) is str else _size(value))
        return value

    def turns(self, items: Any) -> Any:
        """What a loop goes through, once there are steps for its turns."""
        try:
            self.spend(len(items))
        except TypeError:  # it is not known how many there are
            return self._counted(items)
        return items

    def _written(self, value: object) -> object:
        text = plain(value)
        return text if text is value else self.weighed(text)

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.spend(1)
            yield item

    def concat(self, pieces: Iterable[str]) -> str:
        """The pieces of a text as one."""
        texts, length, rest = list[str](), 0, iter(pieces if self._meter.noted is None else self._noted(pieces))
        while some := [*islice(rest, _AT_ONCE)]:
            length += sum(map(len, some))
            if length > _LONGEST:
                raise TemplateRuntimeError(f"{self._meter.name} makes a text of more than {_LONGEST:,} characters")
            texts += some
        self.spend(length)
        return "".join(texts)

    def _noted(self, pieces: Iterable[str]) -> Iterator[str]:
        """The same pieces; those of a whole text are noted."""
        notes = list[Piece]()
        if whole := isinstance(pieces, GeneratorType) and pieces.gi_code.co_name == "root":
            assert self._meter.noted is not None
            self._meter.noted.append(notes)
        for piece in pieces:
            if whole:
                notes.append(Piece(piece, *self._written_at(pieces)))
            yield piece

    def _written_at(self, pieces: Any) -> tuple[str, int]:
        """Where a template waits that has just written a piece, or the one that it includes."""
        while True:
            inner = pieces.gi_yieldfrom or pieces.gi_frame.f_locals.get("gen")  # what an include goes through
            if not isinstance(inner, GeneratorType) or inner.gi_frame is None:
                break
            pieces = inner
        frame = pieces.gi_frame
        name = str(frame.f_globals["name"])
        return name, super()._load_template(name, None).get_corresponding_lineno(frame.f_lineno)

    @contextmanager
    def noting(self) -> Iterator[list[list[Piece]]]:
        """Within, the pieces of each text that this thread renders."""
        self._meter.noted = noted = list[list[Piece]]()
        try:
            yield noted
        finally:
            self._meter.noted = None

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.spend(10)
        if isinstance(function, BuiltinMethodType):
            args = (*map(self._without_iterator, args),)
            self._refuse_huge(function.__name__, [function.__self__, *args, *kwargs.values()])
        if isinstance(function, LoopContext):
            args = (*map(self.turns, args),)
        result = super().call(context, function, *args, **kwargs)
        return result if isinstance(function, MethodType) else self.weighed(result)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, str) and operator == "%":
            self._check_format(left, right)
        elif isinstance(left, int) and isinstance(right, int):
            self._check_bits(left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length())
        elif operator == "*":
            self._refuse_huge("*", [left, right])
        return self.weighed(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        formatted = super().wrap_str_format(value)
        if formatted is None:
            return None

        def checked(*args: Any, **kwargs: Any) -> str:
            self._check_format(value.__self__, [*args, *kwargs.values()])
            return formatted(*args, **kwargs)

        return checked

    def _load_template(self, name: str, globals: MutableMapping[str, Any] | None) -> Template:
        self._meter.left -= 100  # the next step looks whether any are left
        return super()._load_template(name, globals)

    def _metered(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter or test, weighed with what it is given, and reckoned before if it may make far more of that."""

        @wraps(function)
        def metered(*args: Any, **kwargs: Any) -> Any:
            args = (*map(self._without_iterator, args),)
            given = [value for value in args if not isinstance(value, Context | EvalContext | Environment)]
            given += kwargs.values()
            if name == "format" and isinstance(given[0], str):
                self._check_format(given[0], given[1:])
            elif name in _WIDENING | _MULTIPLYING:
                self._refuse_huge(name, given)
            elif name == "round":  # to so many places, by a power of ten
                self._check_bits(sum(4 * abs(value) for value in given[1:] if isinstance(value, int)))
            elif name not in _INSTANT:
                self.weighed(given)
            return self.weighed(function(*args, **kwargs))

        return metered

    def _without_iterator(self, value: Any) -> Any:
        return [*self._counted(value)] if isinstance(value, Iterator) else value

    def _check_format(self, text: str, values: Any) -> None:
        """Refuse what puts much in many places, or at a great width."""
        if _WIDE(text):
            raise TemplateRuntimeError("a width in a format has more than four digits, or is not written in it")
        fields, size = text.count("%") + text.count("{"), _size(values)
        self.spend(len(text) + size)
        self._refuse_huge("format", [fields, max(_WIDEST, size)])

    def _check_bits(self, bits: int) -> None:
        if bits > _BITS:
            raise TemplateRuntimeError(f"a number has more than {_BITS:,} bits")

    def _refuse_huge(self, name: str, values: Sequence[Any]) -> None:
        """Refuse what could make far more of its two largest values than they are."""
        counts = [abs(value) for value in values if name in _WIDENING and isinstance(value, int)]
        sizes = [_size(value) for value in values if not isinstance(value, int)]
        self.spend(sum(sizes))
        if prod(sorted(sizes + counts)[-2:]) > _PRODUCT:
            raise TemplateRuntimeError(f"{name} would make too long a text or list of this")


def _size(value: object) -> int:
    """How many steps a value takes: its characters, and the items of all lists in it; no more are counted than may be
    taken."""
    size, rest = 0, [value]
    while rest and size <= _STEPS:
        one = rest.pop()
        size += 1
        if type(one) in _LEAVES:
            continue
        if isinstance(one, str | bytes | range):
            size += len(one)
        elif isinstance(one, Mapping):
            rest += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | Set):
            rest += one
        elif isinstance(one, Namespace):
            rest.append(one._Namespace__attrs)
    return size


def new_environment(files: TemplateFiles) -> _Environment:
    environment = _Environment(
        loader=FunctionLoader(files.loaded),
        undefined=StrictUndefined,
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
    if not (folder / DESCRIPTION).exists():
        raise UsageError(f"there is no {one_line(str(folder / DESCRIPTION))}{_WANTED}")
    return read_text(folder / DESCRIPTION)


def said(error: Exception) -> str:
    text = error.message if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
    return one_line(text or type(error).__name__).rstrip(".")
