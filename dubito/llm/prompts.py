"""Prompts: folders of Jinja2 templates that turn a position into a system and a user text.

A folder has `prompt.yaml` (title, answer fields), `system.jinja`, `user.jinja`, optionally `history.jinja`, and the
files that these include. Those can be the prompt's own, its sibling folders' or the project's (`shared/facts.jinja`). A
prompt that `extends` another prompt uses the other prompt's files for any that it lacks, and adds `paragraph.jinja` to
the system text. A template receives exactly the keys of the game's `facts()`, and `answer_format`. With `ask: turn`, a
prompt asks all questions of a turn at once, and also gets `turn`, the facts of each question.

All files are read and tested once, when the prompt is loaded. A template cannot access anything else. Dubito's prompts
are in `prompts`, another game's are in `prompts/GAME`, and an installed game's are in the `prompts` folder of its
package.

`history.jinja` is rendered once for each chapter of the history. A chapter ends where the seat had to move, and its
template sees nothing that changes during a game. Every later request therefore repeats a chapter byte for byte.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final, Literal

from jinja2 import TemplateRuntimeError
from jinja2.meta import find_undeclared_variables
from pydantic import Field, ValidationError, field_validator

from dubito.errors import UsageError, find_similar, join_names, one_line, suggestion
from dubito.files import CheckedModel, describe_fault, from_yaml
from dubito.game import STATED, WINS, Bool, Game
from dubito.game.find import DUBITO, find_game
from dubito.game.flaws import find_position_flaws
from dubito.game.log import Position
from dubito.llm import answers
from dubito.llm.conditions import NO_CONDITION, Condition, load_condition, split_condition
from dubito.llm.protocols import find_protocol
from dubito.llm.questions import ANSWER_FORMAT, QuestionForm, build_question_form
from dubito.llm.request import AttemptFailed
from dubito.llm.templates import (
    CONDITION,
    DESCRIPTION,
    HISTORY,
    PARAGRAPH,
    TEMPLATES,
    Piece,
    TemplateFiles,
    check_names,
    describe_template_error,
    new_environment,
    read_description,
)
from dubito.llm.translation import Translation
from dubito.model_settings import Api
from dubito.packages import all_packages, find_package, own_folder, plugin_folders, roots

OWN_PROMPTS: Final = own_folder("prompts")
# Variables of a template besides the facts: the form of the reply, and the facts of each question of the turn.
_ANSWER_FORMAT: Final = "answer_format"
_TURN: Final = "turn"
_MAX_PATH_DEPTH: Final = 4  # maximum number of folders in a misspelt path for which to find a similar one
_LOADED: Final[dict[tuple[Path, Condition], "Prompt"]] = {}  # loaded prompts of this process


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """The texts sent to a model for one question.

    `history` is the beginning of the user text, in chapters that the player's later requests in this game repeat.
    `user` is the rest.
    """

    system: str
    user: str
    history: tuple[str, ...] = ()
    translate: Callable[[str], str] = field(default=str, compare=False, repr=False)  # a re-ask's text

    def with_advice(self, advice: str) -> "RenderedPrompt":
        return replace(self, user=f"{self.user.rstrip()}\n\n{advice}")

    def __str__(self) -> str:
        history = f"--- history ---\n{''.join(self.history)}\n" if self.history else ""
        return f"--- system ---\n{self.system}\n{history}--- user ---\n{self.user}"


Sample = tuple[RenderedPrompt, answers.Form | QuestionForm]  # a prompt, and the form of its answer


def longest_samples(questions: Iterable[Sample]) -> list[Sample]:
    """Return the longest question of each form, except forms that are part of another form."""
    by_form = dict[str, Sample]()
    for rendered, form in questions:
        best = by_form.get(key := form.kind)
        if best is None or len(str(rendered)) >= len(str(best[0])):
            by_form[key] = rendered, form
    forms: list[Any] = [form for _, form in by_form.values()]
    return [(rendered, form) for rendered, form in by_form.values() if not any(other.covers(form) for other in forms)]


@dataclass(slots=True)
class SeatTexts:
    """The rendered texts of one seat in one game, for later requests to repeat."""

    system: str | None = None
    chapters: list[str] = field(default_factory=list)  # chapters of the history, with "" for blank ones
    # The sources of these texts: steady facts, lines of the history, and where each chapter ends.
    steady: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[str] = ()
    ends: Sequence[int] = ()


class Description(CheckedModel):
    """The contents of `prompt.yaml`."""

    title: str = Field(min_length=1)
    # The prompt whose files replace the files that this one lacks.
    extends: str | None = Field(default=None, pattern=r"^[\w-]+$")
    # The language whose catalog translates the game's texts; English if None.
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    # Whether a request asks one question, or all of a turn.
    ask: Literal["node", "turn"] = "node"
    # Whether the answer to a yes-or-no question is yes or no, or the probability of yes.
    say: Literal["answer", "odds"] = "answer"
    # Whether each reply also states how probable it is that the last play is a lie, and that the player wins.
    beliefs: Literal["every_turn"] | None = None
    # The fields of the reply, in this order.
    answer: list[answers.Field] = Field(min_length=1)

    @field_validator("answer")
    @classmethod
    def _check_answer_is_last(cls, fields: list[answers.Field]) -> list[answers.Field]:
        if fields[-1] != "answer" or len(set(fields)) < len(fields):
            raise ValueError(
                "each field can appear only once, and `answer` must be last, since later fields could not influence it"
            )
        return fields


class Prompt:
    """A loaded prompt. It does not read from disk again, and can be rendered by many threads at once."""

    def __init__(
        self,
        folder: Path,
        sources: Mapping[str, str] | None = None,
        game: Game | None = None,
        condition: Condition = NO_CONDITION,
    ) -> None:
        """Load a folder under a condition, or the given `sources` of one (see `Prompt.sources`).

        The default game is Dubito. Raises UsageError with the file and the error in it.
        """
        self.name = f"{folder.name}+{condition.name}" if condition.name else folder.name
        self.condition = condition
        self.folder = folder
        self.game = game or find_game(DUBITO, Path())
        self._facts = self.game.facts
        if sources and not {DESCRIPTION, *TEMPLATES} <= sources.keys():
            raise UsageError(f"{one_line(str(folder))}: the run is damaged, since files of this prompt are missing")
        description_text = sources[DESCRIPTION] if sources else read_description(folder)
        self.description = _parse_description(folder / DESCRIPTION, description_text)
        self._check_description()
        self._shared = list(dict.fromkeys([own_prompts(self.game), OWN_PROMPTS]))
        files = TemplateFiles(folder, sources, self._shared, self.description.extends, condition.template)
        catalog = f"shared/{self.description.language}.yaml" if self.description.language else ""
        translate = Translation(files.source(catalog), str(files.paths[catalog])).translate if catalog else None
        if translate and condition.template:
            files.sources[CONDITION] = translate(condition.template)
        self._translate = translate or str
        environment = new_environment(files, translate)
        system, user = (files.reachable(environment, template) for template in TEMPLATES)
        trees = system | user
        history = files.reachable(environment, HISTORY) if files.has(HISTORY) else {}
        texts = [*trees, *history, *([catalog] if catalog else [])]
        self.sources = {DESCRIPTION: description_text} | {name: files.sources[name] for name in texts}
        self.digest = _digest(self.sources)
        odds = self.description.say == "odds"
        self._nodes = {node.name: answers.with_odds(node) if odds else node for node in self.game.nodes}
        self._forms = {name: answers.build_form(self.fields, node) for name, node in self._nodes.items()}
        examples = [self._example(node.name) for node in self.game.nodes]
        extra = (_ANSWER_FORMAT, _TURN) if self.asks_turn else (_ANSWER_FORMAT,)
        self.variables = (*self._facts.facts(examples[0]), *extra)
        self._steady = self._facts.steady_facts() | {_ANSWER_FORMAT}
        check_names(files, trees, {*self.variables, *environment.globals})
        check_names(files, history, {*self._steady, "history", "first", *environment.globals})
        self._files, self._environment = files, environment
        self._history = environment.get_template(HISTORY) if history else None
        used = {name for tree in system.values() for name in find_undeclared_variables(tree)}
        self._system_is_steady = used <= self._steady
        self._used_variables = used | {name for tree in user.values() for name in find_undeclared_variables(tree)}
        self._answer_format = answers.answer_format(self.fields, [*self._nodes.values()], turn=self.asks_turn)
        self._system, self._user = map(environment.get_template, TEMPLATES)
        self._for_decisions, self._example_positions = False, examples
        self._examples: list[Sample] = [(self.render(example), self.form_at(example)) for example in examples]
        self._check_reasks()

    def _check_reasks(self) -> None:
        """Raise UsageError if the texts of re-asks are not translated."""
        for (_, form), cause in product(self._examples, answers.REASKS):
            try:
                form.reask_text(AttemptFailed(cause, ""), self._translate)
            except TemplateRuntimeError as error:
                raise UsageError(str(error)) from None

    def _example(self, node: str) -> Any:
        position = self._facts.example_position(node)
        for flaw in find_position_flaws(position):
            raise UsageError(f"facts.py of {self.game.name}: {flaw}")
        return position

    def _check_description(self) -> None:
        """Raise UsageError if a setting of the description does not apply to the game."""
        if self.description.say == "odds" and all(node.answer != Bool() for node in self.game.nodes):
            raise UsageError(
                f"{self.folder / DESCRIPTION}: say: odds: {self.game.name} has no yes-or-no question, so remove it"
            )
        if self.asks_turn and not self._facts.has_turns:
            raise UsageError(
                f"{self.folder / DESCRIPTION}: ask: turn: the facts of {self.game.name} have no `turn`, so each move "
                "is a single question; remove it"
            )
        if STATED in self.fields and all(node.states != STATED for node in self.game.nodes):
            raise UsageError(
                f"{self.folder / DESCRIPTION}: answer: no node of {self.game.name} asks for {STATED}, so remove it"
            )

    def check_rules(self, rules: Any) -> None:
        """Raise UsageError if the prompt's text describes the default rules but `rules` differ."""
        for fact in self.game.must_tell(rules):
            if fact not in self._used_variables:
                raise UsageError(
                    f"prompt {one_line(self.name)} describes the default rules of {self.game.name}, but this game "
                    f"uses others: choose a prompt that uses the fact {fact}, such as plain"
                )

    @property
    def is_current(self) -> bool:
        """Return whether the files in the prompt's folder are unchanged. The condition is not read again."""
        try:
            extends, condition = self.description.extends, self.sources.get(CONDITION, "")
            files = TemplateFiles(self.folder, None, self._shared, extends, condition)
            return files.has(HISTORY) == (HISTORY in self.sources) and all(
                files.source(name) == text for name, text in self.sources.items()
            )
        except UsageError:
            return False

    @property
    def title(self) -> str:
        return self.description.title

    @property
    def fields(self) -> tuple[str, ...]:
        *others, answer = self.description.answer
        if self.description.beliefs is None:
            return (*others, answer)
        states = any(node.states == STATED for node in self.game.nodes)
        return (*others, *((STATED,) if states and STATED not in others else ()), WINS, answer)

    @property
    def asks_turn(self) -> bool:
        return self.description.ask == "turn"

    def form(self, node: str) -> answers.Form:
        return self._forms[node]

    def for_api(self, api: Api) -> "Prompt":
        """Return the prompt for this API. With the Decisions API, the questions are not part of the text."""
        if find_protocol(api).writes_text:
            return self
        if self.description.language:
            problem = f"prompt {one_line(self.name)}: api: {api} puts its questions beside the text, in English"
            raise UsageError(problem, hint="choose a prompt without `language`")
        other = copy(self)
        other._for_decisions, other._answer_format = True, ANSWER_FORMAT
        other._examples = [(other.render(example), other.form_at(example)) for example in self._example_positions]
        return other

    def form_at(self, position: Position, turn: Sequence[Mapping[str, Any]] = ()) -> answers.Form | QuestionForm:
        """Return the form of the reply at this position. `turn` has the facts of its questions, if known."""
        positions = self.questions(position)
        if self._for_decisions:
            facts = turn or [*map(self._facts.facts, positions)]
            return build_question_form(self.game, [*zip(positions, facts, strict=True)], self.fields)
        if not self.asks_turn:
            return self._forms[position.node]
        nodes = dict.fromkeys(each.node for each in positions)
        return answers.build_turn_form(self.fields, tuple(map(self._nodes.__getitem__, nodes)))

    def questions(self, position: Position) -> Sequence[Position]:
        return self._facts.turn(position) if self.asks_turn or self._for_decisions else [position]

    @property
    def samples(self) -> list[Sample]:
        return longest_samples(self._examples)

    def render(self, position: Position) -> RenderedPrompt:
        first, *others = map(self._facts.facts, self.questions(position))
        return self.fill(first, turn=[first, *others])

    def pieces(self, position: Position) -> tuple[list[Piece], list[Piece], list[Piece]]:
        """Return the pieces of the system text, the history and the user text at a position."""
        with self._environment.recording_pieces() as texts:
            self.render(position)
        *chapters, system, user = texts
        visible = [chapter for chapter in chapters if any(piece.text.strip() for piece in chapter)]
        return system, [piece for chapter in visible for piece in chapter], user

    def template_path(self, template: str) -> Path:
        return self._files.paths[template]

    def fill(
        self, values: Mapping[str, Any], before: SeatTexts | None = None, turn: Sequence[Mapping[str, Any]] = ()
    ) -> RenderedPrompt:
        """Render the texts for these facts, which have the keys of `facts()`.

        Args:
            values: The facts of the first question.
            before: The seat's earlier texts in the same game; the new ones are added.
            turn: The facts of each question of the turn, for a prompt that asks all of a turn's questions.
        """
        replaced = self._facts.AT_ONCE if self._for_decisions else {}
        values = {**values, **replaced, _ANSWER_FORMAT: self._answer_format}
        if self.asks_turn:
            values[_TURN] = [*turn]
        steady = {name: value for name, value in values.items() if name in self._steady}
        texts = before or SeatTexts()
        if steady != texts.steady:
            texts.system, texts.chapters, texts.steady = None, [], steady
        try:
            history = self._render_history(values, steady, texts)
            if texts.system is None or not self._system_is_steady:
                texts.system = self._system.render(values)
            return RenderedPrompt(texts.system, self._user.render(values), history, self._translate)
        # A template is the user's code and can raise anything.
        except Exception as error:
            where = self._files.find_location(error)
            raise UsageError(f"{where}: {describe_template_error(error)}", hint="correct the template") from None

    def _render_history(
        self, values: Mapping[str, Any], steady: Mapping[str, Any], texts: SeatTexts
    ) -> tuple[str, ...]:
        """Render the chapters of the history, which end where the seat's earlier requests ended."""
        if self._history is None:
            return ()
        history = tuple(values["history"])
        ends = (*values["own_moves"], len(history))
        # Keep only the chapters that are still the same, and end at the same lines.
        same = len(texts.chapters)
        while texts.ends[:same] != ends[:same]:
            same -= 1
        if same and texts.history[: ends[same - 1]] != history[: ends[same - 1]]:
            same = 0
        del texts.chapters[same:]
        texts.history, texts.ends = history, ends
        for start, end in list(pairwise((0, *ends)))[len(texts.chapters) :]:
            text = self._history.render(steady, history=[*history[start:end]], first=not texts.chapters)
            texts.chapters.append(text if text.strip() else "")
        # Providers refuse blank texts.
        return tuple(filter(None, texts.chapters))


def load_prompt(name: str, working_directory: Path, game: Game | None = None) -> Prompt:
    """Load a prompt of a game (Dubito by default) by name, or from the path to its folder.

    Either can end with a condition, as in `plain+must-not-lie`. A name is looked up in the project, in the `prompts`
    folders of the working directory and of `--games-path`, and in the game's package. Raises UsageError if the prompt
    is missing, exists in two versions, or does not work for every node, or if the condition is unknown.
    """
    game = game or find_game(DUBITO, working_directory)
    name, added = split_condition(name)
    roots = prompt_roots(working_directory, game)
    if "/" in name or "\\" in name or name.startswith("."):
        folder = working_directory / name
        if not folder.is_dir():
            raise UsageError(f"no such folder: {one_line(str(folder))}: use the path to a prompt's folder")
        return _load_folder(folder.resolve(), game, added, roots)
    folders = [root / name for root in roots if name and _is_prompt(root / name)]
    if not folders:
        raise UsageError(describe_unknown_prompt(name, working_directory, game))
    prompts = [_load_folder(folder, game, added, roots) for folder in folders]
    if len({prompt.digest for prompt in prompts}) > 1:
        both = " and ".join(one_line(str(folder)) for folder in folders)
        raise UsageError(f"prompt {name} is in {both}, with different contents: rename one, or use its path")
    return prompts[0]


def _load_folder(folder: Path, game: Game, added: str, roots: Sequence[Path]) -> Prompt:
    """Load the prompt in a folder under the condition `added`.

    Return the cached one if its files are unchanged, since testing is slow.
    """
    condition = load_condition(added, roots, folder) if added else NO_CONDITION
    prompt = _LOADED.get(key := (folder, condition))
    if prompt is None or prompt.game is not game or not prompt.is_current:
        _LOADED[key] = prompt = Prompt(folder, game=game, condition=condition)
    return prompt


def _is_prompt(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.glob(f"*/{DESCRIPTION}"))


def describe_unknown_prompt(name: str, working_directory: Path, game: Game) -> str:
    """Return the error for a prompt that the game lacks, including games that have one with this name."""
    others = set()
    for root in prompt_roots(working_directory, None):
        others |= {file.parent.parent.name for file in root.glob(f"*/*/{DESCRIPTION}") if file.parent.name == name}
        others |= {DUBITO} if (root / name / DESCRIPTION).is_file() else set()
    of = "" if game.name == DUBITO else f" of {game.name}"
    elsewhere = f" ({join_names(sorted(others))} {'has' if len(others) == 1 else 'have'} one)" if others else ""
    known = prompt_names(working_directory, game)
    # The name may be the path to a prompt's folder.
    depth = name.count("/") + 1
    files = working_directory.glob(f"{'*/' * depth}{DESCRIPTION}") if 1 < depth <= _MAX_PATH_DEPTH else ()
    paths = (file.parent.relative_to(working_directory).as_posix() for file in files)
    if (similar := find_similar(name, paths)) is not None:
        known.append(similar)
    hint = suggestion(name, known) if known else f"the game has none yet: write one in prompts/{game.folder}"
    return f"no prompt{of} is named {one_line(name)!r}{elsewhere}: {hint}"


def prompt_names(working_directory: Path, game: Game | None = None) -> list[str]:
    """Return the sorted names of all prompts of a game (Dubito by default)."""
    files = (file for root in prompt_roots(working_directory, game) for file in root.glob(f"*/{DESCRIPTION}"))
    return sorted({file.parent.name for file in files})


def prompt_roots(working_directory: Path, game: Game | None) -> list[Path]:
    """Return the folders to search for prompts of a game, or of all games."""
    folders = dict.fromkeys([*_own_roots(), *((root / "prompts").resolve() for root in roots(working_directory))])
    if game is None:
        return [*folders]
    package = find_package(game.folder, working_directory)
    installed = [package.folder / "prompts"] if package and package.distribution else []
    return [*(prompt_root(root, game) for root in folders), *installed]


def prompt_root(prompts: Path, game: Game) -> Path:
    return prompts if game.name == DUBITO else prompts / game.folder


def game_of_folder(folder: Path, working_directory: Path) -> Game:
    """Return the game to which a prompt folder belongs: `prompts/GAME`, the game's package, or else Dubito."""
    parent = folder.resolve().parent
    for package in all_packages(working_directory):
        if package.distribution and (package.folder / "prompts").resolve() == parent:
            return find_game(package.name, working_directory)
    if parent.parent.name == "prompts":
        with suppress(UsageError):
            return find_game(parent.name, working_directory)
    return find_game(DUBITO, working_directory)


def own_prompts(game: Game) -> Path:
    """Return the folder with the prompts that Dubito or a plugin ships for a game."""
    folders = [prompt_root(root, game) for root in _own_roots()]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def _own_roots() -> list[Path]:
    return [OWN_PROMPTS, *(folder / "prompts" for folder in plugin_folders())]


def _parse_description(path: Path, text: str) -> Description:
    try:
        return Description.model_validate(from_yaml(text, one_line(str(path))))
    except ValidationError as error:
        hint = f"it needs `title: ...` and `answer: [answer]`, or [reasoning, {STATED}, answer]"
        raise UsageError(f"{path}: {describe_fault(error)}", hint=hint) from None


def language_of(sources: Mapping[str, str]) -> str | None:
    return _parse_description(Path(DESCRIPTION), sources.get(DESCRIPTION, "")).language


def title_and_paragraph(sources: Mapping[str, str]) -> tuple[str, str]:
    description = _parse_description(Path(DESCRIPTION), sources.get(DESCRIPTION, ""))
    added = (sources.get(name, "").strip() for name in (PARAGRAPH, CONDITION))
    return description.title, " ".join(filter(None, added))


def _digest(sources: Mapping[str, str]) -> str:
    parts = [f"{name}\0{len(text)}\0{text}" for name, text in sorted(sources.items())]
    return sha256("".join(parts).encode()).hexdigest()
