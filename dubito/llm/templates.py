"""The template files of a prompt: find, parse and check them, and render them within limits."""

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
_MAX_STEPS: Final = 1_000_000  # steps per rendering; our longest prompt takes a hundredth of this
_MAX_TEXT: Final = 500_000  # characters; few models accept more
_MAX_PRODUCT: Final = 20_000_000  # maximum product of the two largest operands of an operation
_BLOCK: Final = 4096  # pieces of a text that are joined together
_MAX_BITS: Final = 4096  # maximum size of a whole number
# Operations in which a number is a width or a count.
_WIDENING: Final = {"*", "format", "center", "ljust", "rjust", "zfill", "expandtabs", "to_bytes"} | {
    *("indent", "batch", "slice", "tojson", "wordwrap"),
}
# Filters that insert one text in many places.
_MULTIPLYING: Final = {"join", "replace", "urlize", "xmlattr", "sum"}
# Filters and tests that do not iterate over their arguments.
_INSTANT: Final = {"count", "length", "first", "default", "d", "defined", "undefined", "none", "sameas"} | {
    *("boolean", "callable", "float", "integer", "iterable", "mapping", "number", "sequence", "string"),
}
_LEAVES: Final = {int, float, bool, type(None)}  # these take one step each
# Methods that take quadratic time with some codecs; prompts do not need them.
_QUADRATIC: Final = {"encode", "decode"}
_MAX_WIDTH: Final = 9999  # maximum width of a field in a format
_WIDE: Final = re.compile(r"%(\(.*?\))?[-#0 +]*(\*|\d{5}|\d*\.(\*|\d{5}))|:[^{}]*(\d{5}|\{)").search
TEMPLATES: Final = ("system.jinja", "user.jinja")
HISTORY: Final = "history.jinja"
PARAGRAPH: Final = "paragraph.jinja"  # is added to the system text of the prompt that this one extends
CONDITION: Final = "condition.jinja"  # in a run: what a condition adds to the system text
_REQUIRED_FILES: Final = (
    f": a prompt's folder has {DESCRIPTION}, {' and '.join(TEMPLATES)}, and the files that they include"
)


def format_value(value: object) -> object:
    """Format a value for a template: unknown, yes, no, two decimals, words with spaces, `2x 7, 1x king`."""
    # Most values are strings or whole numbers. A bool does not count as an int here.
    if isinstance(value, str) or type(value) is int:
        return value
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple):
        return " ".join(str(format_value(item)) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{n}x {key}" for key, n in value.items()) or "none"
    # For example, a function would be rendered with its memory address.
    if not isinstance(value, int | Undefined):
        raise TypeError(f"a value of type {type(value).__name__} cannot be rendered; are brackets missing?")
    return value


class TemplateFiles:
    """The templates of a prompt, each read once from the first folder that contains it."""

    def __init__(
        self,
        folder: Path,
        sources: Mapping[str, str] | None,
        shared: Sequence[Path],
        extends: str | None = None,
        condition: str = "",
    ) -> None:
        """Use the files in a folder and the template of a condition, or these `sources`.

        Missing files are taken from the prompt that it `extends`. Raises UsageError if that prompt is missing.
        """
        self._roots = [] if sources else [folder, folder.parent, *shared]
        self.sources: dict[str, str] = dict(sources or ({CONDITION: condition} if condition else {}))
        self.paths = {name: folder / name for name in self.sources}
        self._own = [folder]
        if extends and not sources:
            where = f"{one_line(str(folder / DESCRIPTION))}: extends"
            found = next((root / extends for root in self._roots[1:] if (root / extends / DESCRIPTION).is_file()), None)
            if found is None:
                raise UsageError(f"{where}: no prompt {extends} next to it or in the project")
            if (found / PARAGRAPH).is_file():
                raise UsageError(f"{where}: {extends} itself extends another prompt: extend that prompt instead")
            self._own.append(found)
            self._roots.insert(1, found)

    def has(self, name: str) -> bool:
        return any((folder / name).is_file() for folder in self._own) if self._roots else name in self.sources

    def source(self, name: str) -> str:
        """Return the text of an included template. Raises UsageError if it is missing."""
        if name not in self.sources:
            inside = (root / name for root in self._roots if (root / name).resolve().is_relative_to(root.resolve()))
            path = next((path for path in inside if path.is_file()), None)
            if path is None:
                raise UsageError(f"there is no {one_line(str(self._own[0] / name))}{_REQUIRED_FILES}")
            self.sources[name] = read_text(path)
            self.paths[name] = path
            if name == TEMPLATES[0]:
                added = [PARAGRAPH] if len(self._own) > 1 and self.has(PARAGRAPH) else []
                added += [CONDITION] if CONDITION in self.sources else []
                self.sources[name] += "".join(f'\n{{% include "{each}" %}}\n' for each in added)
        return self.sources[name]

    def load(self, name: str) -> tuple[str, str, None]:
        return self.source(name), str(self.paths[name]), None

    def reachable(self, environment: Environment, name: str) -> dict[str, nodes.Template]:
        """Parse a template and everything it includes. Raises UsageError with the file and line."""
        trees: dict[str, nodes.Template] = {}
        self._add_reachable(environment, name, trees, ())
        return trees

    def _add_reachable(
        self, environment: Environment, name: str, trees: dict[str, nodes.Template], includers: Sequence[str]
    ) -> None:
        if name in trees:
            return
        try:
            trees[name] = environment.parse(self.source(name), name)
            environment.compile(trees[name], name)
        except TemplateSyntaxError as error:
            where = f"{self.paths[name]}, line {error.lineno}"
            raise UsageError(f"{where}: {describe_template_error(error)}; correct it") from None
        # Python's compiler raises this if the template is nested too deeply.
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            problem = f"it cannot be compiled: {describe_template_error(error)}"
            raise UsageError(f"{self.paths[name]}: {problem}; correct it") from None
        for other in meta.find_referenced_templates(trees[name]):
            if other is None:
                raise UsageError(f"{self.paths[name]}: the name of an included file must be a literal string")
            if other in (*includers, name):
                # Rendering would fail too, but Python could print a traceback when it ends the nested generators.
                problem = f"maximum recursion depth exceeded, because {other} includes itself"
                where = f"{self.paths[name]}, line {_include_line(trees[name], other)}"
                raise UsageError(f"{where}: RecursionError: {problem}; correct the template")
            self._add_reachable(environment, other, trees, (*includers, name))

    def find_location(self, error: BaseException) -> str:
        """Return the file and line of the template that raised an error."""
        names = {str(path) for path in self.paths.values()}
        place, trace = str(self.paths[TEMPLATES[0]].parent), error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename in names:
                place = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
            trace = trace.tb_next
        return place


def _include_line(tree: nodes.Template, name: str) -> int:
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        assert isinstance(node, nodes.Include | nodes.Import | nodes.FromImport | nodes.Extends)
        named = node.template.as_const()
        if name == named or name in [*named]:
            return node.lineno
    raise AssertionError("the template includes this file")


class _Code(CodeGenerator):
    """Compiles templates, adding calls that count loop iterations and the sizes of lists, texts and comparisons."""

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802
        counter = nodes.EnvironmentAttribute("count_iterations", lineno=node.lineno)
        node.iter = nodes.Call(counter, [node.iter], [], None, None, lineno=node.lineno)
        super().visit_For(node, frame)

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:  # noqa: N802
        # A loop's scope is faster as a plain call.
        if isinstance(node.node, nodes.EnvironmentAttribute):
            self.write(f"environment.{node.node.name}(")
            self.visit(node.args[0], frame)
            self.write(")")
        else:
            super().visit_Call(node, frame, forward_caller=forward_caller)

    def _count_size(self, visit: Callable[[Any, Frame], None], node: nodes.Node, frame: Frame) -> None:
        self.write("environment.count_size(")
        visit(node, frame)
        self.write(")")

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        if node.ctx == "load":
            self._count_size(super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802
        self._count_size(super().visit_List, node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        self._count_size(super().visit_Dict, node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self._count_size(super().visit_Concat, node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802
        if isinstance(node.arg, nodes.Slice):
            self._count_size(super().visit_Getitem, node, frame)
        else:
            super().visit_Getitem(node, frame)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802
        self.write("(")
        self._count_size(self.visit, node.expr, frame)
        for operand in node.ops:
            self.write(f" {operators[operand.op]} ")
            self._count_size(self.visit, operand.expr, frame)
        self.write(")")


class Piece(NamedTuple):
    """A piece of a rendered text, with the template and the line that wrote it."""

    text: str
    template: str
    line: int


class _Meter(threading.local):
    """Per-thread state of a rendering."""

    left = _MAX_STEPS
    name: str | None = None
    # The pieces of each text, if they are recorded.
    texts: list[list[Piece]] | None = None


class _Template(Template):
    def render(self, *args: Any, **kwargs: Any) -> str:
        self.environment.start_rendering(self.name)  # type: ignore[attr-defined]
        return super().render(*args, **kwargs)


class _Environment(ImmutableSandboxedEnvironment):
    """Stops a rendering that takes too many steps, at the same step every time.

    Prompts can come from other people's runs. A step is a character, an item or an iteration of a loop; a call takes
    ten steps, an include a hundred. An operation that can make a text or list far longer than its operands is checked
    before it runs.
    """

    code_generator_class = _Code
    template_class = _Template
    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, translate: Callable[[str], str] | None, **options: Any) -> None:
        super().__init__(finalize=self._write_value, **options)
        self._translate = translate
        self._meter = _Meter()
        filters = {**self.filters, "quoted": quoted}
        self.filters = {name: self._wrap_metered(name, function) for name, function in filters.items()}
        tests: Mapping[str, Any] = self.tests
        self.tests = {name: self._wrap_metered(name, test) for name, test in tests.items()}

    def start_rendering(self, name: str | None) -> None:
        self._meter.left, self._meter.name = _MAX_STEPS, name

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        return {**self.globals, **(d or {})}

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in _QUADRATIC and super().is_safe_attribute(obj, attr, value)

    def spend(self, steps: int) -> None:
        """Count steps. Raises TemplateRuntimeError if there are too many."""
        meter = self._meter
        meter.left -= steps
        if meter.left < 0:
            raise TemplateRuntimeError(f"rendering takes more than {_MAX_STEPS:,} steps: shorten its loops and texts")

    def count_size(self, value: Any) -> Any:
        self.spend(1 if type(value) is int else len(value) + 1 if type(value) is str else _size(value))
        return value

    def count_iterations(self, items: Any) -> Any:
        """Return the items of a loop, counting its iterations."""
        try:
            self.spend(len(items))
        except TypeError:
            # An iterator has no length.
            return self._count_each(items)
        return items

    def _write_value(self, value: object) -> object:
        text = format_value(value)
        if self._translate is not None and isinstance(text, str):
            text = self._translate(text)
        return text if text is value else self.count_size(text)

    def _count_each(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.spend(1)
            yield item

    def concat(self, pieces: Iterable[str]) -> str:
        """Join the pieces of a text."""
        texts, length, rest = list[str](), 0, iter(pieces if self._meter.texts is None else self._record(pieces))
        while some := [*islice(rest, _BLOCK)]:
            length += sum(map(len, some))
            if length > _MAX_TEXT:
                raise TemplateRuntimeError(f"{self._meter.name} produces more than {_MAX_TEXT:,} characters")
            texts += some
        self.spend(length)
        return "".join(texts)

    def _record(self, pieces: Iterable[str]) -> Iterator[str]:
        """Yield the pieces, and record them when the text is complete."""
        recorded = list[Piece]()
        if is_whole_text := isinstance(pieces, GeneratorType) and pieces.gi_code.co_name == "root":
            assert self._meter.texts is not None
            self._meter.texts.append(recorded)
        for piece in pieces:
            if is_whole_text:
                recorded.append(Piece(piece, *self._find_location(pieces)))
            yield piece

    def _find_location(self, pieces: Any) -> tuple[str, int]:
        """Return the template and line of the last piece, which may be in an included template."""
        while True:
            # An include iterates over the inner generator.
            inner = pieces.gi_yieldfrom or pieces.gi_frame.f_locals.get("gen")
            if not isinstance(inner, GeneratorType) or inner.gi_frame is None:
                break
            pieces = inner
        frame = pieces.gi_frame
        name = str(frame.f_globals["name"])
        return name, super()._load_template(name, None).get_corresponding_lineno(frame.f_lineno)

    @contextmanager
    def recording_pieces(self) -> Iterator[list[list[Piece]]]:
        """Record the pieces of each text that this thread renders."""
        self._meter.texts = texts = list[list[Piece]]()
        try:
            yield texts
        finally:
            self._meter.texts = None

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.spend(10)
        if isinstance(function, BuiltinMethodType):
            args = (*map(self._without_iterator, args),)
            self._refuse_huge(function.__name__, [function.__self__, *args, *kwargs.values()])
        if isinstance(function, LoopContext):
            args = (*map(self.count_iterations, args),)
        result = super().call(context, function, *args, **kwargs)
        return result if isinstance(function, MethodType) else self.count_size(result)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(left, str) and operator == "%":
            self._check_format(left, right)
        elif isinstance(left, int) and isinstance(right, int):
            self._check_bits(left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length())
        elif operator == "*":
            self._refuse_huge("*", [left, right])
        return self.count_size(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        formatted = super().wrap_str_format(value)
        if formatted is None:
            return None

        def checked(*args: Any, **kwargs: Any) -> str:
            self._check_format(value.__self__, [*args, *kwargs.values()])
            return formatted(*args, **kwargs)

        return checked

    def _load_template(self, name: str, globals: MutableMapping[str, Any] | None) -> Template:
        # The next step checks whether steps are left.
        self._meter.left -= 100
        return super()._load_template(name, globals)

    def _wrap_metered(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a filter or test to count its arguments and result, and to refuse huge results in advance."""

        @wraps(function)
        def metered_call(*args: Any, **kwargs: Any) -> Any:
            args = (*map(self._without_iterator, args),)
            values = [value for value in args if not isinstance(value, Context | EvalContext | Environment)]
            values += kwargs.values()
            if name == "format" and isinstance(values[0], str):
                self._check_format(values[0], values[1:])
            elif name in _WIDENING | _MULTIPLYING:
                self._refuse_huge(name, values)
            elif name == "round":
                # The number of decimals acts as a power of ten.
                self._check_bits(sum(4 * abs(value) for value in values[1:] if isinstance(value, int)))
            elif name not in _INSTANT:
                self.count_size(values)
            return self.count_size(function(*args, **kwargs))

        return metered_call

    def _without_iterator(self, value: Any) -> Any:
        return [*self._count_each(value)] if isinstance(value, Iterator) else value

    def _check_format(self, text: str, values: Any) -> None:
        """Refuse a format with long values in many fields or with a large width."""
        if _WIDE(text):
            raise TemplateRuntimeError("a width in a format has more than four digits, or is not a constant")
        fields, size = text.count("%") + text.count("{"), _size(values)
        self.spend(len(text) + size)
        self._refuse_huge("format", [fields, max(_MAX_WIDTH, size)])

    def _check_bits(self, bits: int) -> None:
        if bits > _MAX_BITS:
            raise TemplateRuntimeError(f"a number has more than {_MAX_BITS:,} bits")

    def _refuse_huge(self, name: str, values: Sequence[Any]) -> None:
        """Refuse an operation whose result can be as large as the product of its two largest operands."""
        counts = [abs(value) for value in values if name in _WIDENING and isinstance(value, int)]
        sizes = [_size(value) for value in values if not isinstance(value, int)]
        self.spend(sum(sizes))
        if prod(sorted(sizes + counts)[-2:]) > _MAX_PRODUCT:
            raise TemplateRuntimeError(f"the result of {name} would be too long")


def _size(value: object) -> int:
    """Return a value's number of steps: its characters and the items of all lists in it, up to the limit."""
    size, rest = 0, [value]
    while rest and size <= _MAX_STEPS:
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


def new_environment(files: TemplateFiles, translate: Callable[[str], str] | None = None) -> _Environment:
    """Return the environment for these templates. `translate` is applied to every text that they write."""
    environment = _Environment(
        translate,
        loader=FunctionLoader(files.load),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    # The same facts must give the same bytes.
    del environment.globals["lipsum"], environment.filters["random"]
    return environment


def check_names(files: TemplateFiles, trees: Mapping[str, nodes.Template], known: Set[str]) -> None:
    """Raise UsageError for a variable that is neither a fact nor set by a template."""
    own = {node.name for tree in trees.values() for node in tree.find_all(nodes.Name) if node.ctx == "store"}
    for name, tree in trees.items():
        allowed = known if name in (*TEMPLATES, HISTORY) else known | own
        for unknown in sorted(meta.find_undeclared_variables(tree) - allowed):
            hint = suggestion(unknown, known)
            if HISTORY in trees:
                hint += f"; anything that changes during a game belongs in {TEMPLATES[1]}"
            raise UsageError(f"{files.paths[name]}: unknown variable '{unknown}': {hint}")


def read_description(folder: Path) -> str:
    if not (folder / DESCRIPTION).exists():
        raise UsageError(f"there is no {one_line(str(folder / DESCRIPTION))}{_REQUIRED_FILES}")
    return read_text(folder / DESCRIPTION)


def describe_template_error(error: Exception) -> str:
    text = error.message if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"
    return one_line(text or type(error).__name__).rstrip(".")
