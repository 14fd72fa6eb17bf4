"""Prompts: folders of Jinja2 templates that turn a position into a system and a user text.

A folder has `prompt.yaml` (title, answer fields), `system.jinja`, `user.jinja`, perhaps `history.jinja`, and what
these include: files of its own, of the folders beside it, and of the project's prompts (`shared/facts.jinja`). One that
`extends` another has that one's files where it has none of its own, and `paragraph.jinja` behind its system text. A
template gets exactly the keys of the game's `facts()`, and `answer_format`; one that asks all the questions of a turn
at once (`ask: turn`) gets `turn` too, the facts of each question. All of it is read and tried once, when it
is loaded; a template can reach nothing else. Dubito's prompts lie in `prompts`, another game's in `prompts/GAME`, those
that an installed game brings in `prompts` of its package.

`history.jinja` is filled once for each chapter of the history, which ends where the seat had to move, and knows
nothing that changes in a game. So a chapter, once told, is told in the same bytes by every later request.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from jinja2.meta import find_undeclared_variables
from pydantic import Field, ValidationError, field_validator

from dubito.errors import UsageError, near, one_line, suggestion
from dubito.files import Checked, fault, from_yaml
from dubito.game import STATED, Bool, Game, Position
from dubito.game.find import DUBITO, find_game
from dubito.game.flaws import flaws_of_position
from dubito.game.packages import all_packages, find_package, own_folder, plugin_folders, roots
from dubito.llm import answers
from dubito.llm.questions import ANSWER_FORMAT, QuestionForm, form_of_questions
from dubito.llm.request import Api
from dubito.llm.templates import (
    DESCRIPTION,
    HISTORY,
    PARAGRAPH,
    TEMPLATES,
    Piece,
    TemplateFiles,
    check_names,
    new_environment,
    read_described,
    said,
)

OWN_PROMPTS: Final = own_folder("prompts")
_ANSWER_FORMAT: Final = "answer_format"  # beside the facts: what the reply has to look like
_TURN: Final = "turn"  # beside the facts: those of each question of the turn
_DEEPEST: Final = 4  # folders of a path for which one like it is looked for
_LOADED: Final[dict[Path, "Prompt"]] = {}  # what this process has loaded, by folder


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """What a model is sent for one question.

    `history` is the user text's beginning, a text for each chapter: what the same player is sent later in the game
    begins with the same ones. `user` comes behind it.
    """

    system: str
    user: str
    history: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = f"--- history ---\n{''.join(self.history)}\n" if self.history else ""
        return f"--- system ---\n{self.system}\n{told}--- user ---\n{self.user}"


Sample = tuple[RenderedPrompt, answers.Form | QuestionForm]  # what is asked, and the form of its answer


def longest(questions: Iterable[Sample]) -> list[Sample]:
    """Of the questions of each form the longest; a form that asks only some of what another asks says nothing more."""
    found = dict[str, Sample]()
    for rendered, form in questions:
        known = found.get(key := form.kind)
        if known is None or len(str(rendered)) >= len(str(known[0])):
            found[key] = rendered, form
    forms: list[Any] = [form for _, form in found.values()]
    return [(rendered, form) for rendered, form in found.values() if not any(other.covers(form) for other in forms)]


@dataclass(slots=True)
class SeatTexts:
    """What one seat was sent in one game, and will be sent again in the same bytes: not rendered twice."""

    system: str | None = None
    chapters: list[str] = field(default_factory=list)  # of the history, a blank one as ""
    _steady: Mapping[str, Any] = field(default_factory=dict)  # the facts that these texts were made from
    _history: Sequence[str] = ()  # the lines that they tell
    _ends: Sequence[int] = ()  # where each chapter ends in them

    def begin(self, steady: Mapping[str, Any]) -> None:
        if steady != self._steady:
            self.system, self.chapters, self._steady = None, [], steady

    def begin_history(self, history: Sequence[str], ends: Sequence[int]) -> None:
        """Forget the chapters that a history cut at these ends does not begin with."""
        same = len(self.chapters)
        while self._ends[:same] != ends[:same]:
            same -= 1
        if same and self._history[: ends[same - 1]] != history[: ends[same - 1]]:
            same = 0
        del self.chapters[same:]
        self._history, self._ends = history, ends


class Description(Checked):
    """What `prompt.yaml` says."""

    title: str = Field(min_length=1)
    extends: str | None = Field(default=None, pattern=r"^[\w-]+$")  # the prompt whose files those are that it lacks
    ask: Literal["node", "turn"] = "node"  # in one request: one question, or all of a turn
    say: Literal["answer", "odds"] = "answer"  # at a question of yes or no: which, or the probability of yes
    answer: list[answers.Field] = Field(min_length=1)  # fields of the reply, in this order

    @field_validator("answer")
    @classmethod
    def _the_answer_comes_last(cls, fields: list[answers.Field]) -> list[answers.Field]:
        if fields[-1] != "answer" or len(set(fields)) < len(fields):
            raise ValueError("each field stands once, and `answer` last: what comes after it cannot bear on it")
        return fields


class Prompt:
    """A loaded prompt: nothing on disk is read again, and rendering may happen in many threads at once."""

    def __init__(self, folder: Path, sources: Mapping[str, str] | None = None, game: Game | None = None) -> None:
        """Load the folder, or instead of it these `sources`, as `Prompt.sources` gave them; the game is Dubito if none.

        Raises UsageError that names the file and what is wrong in it.
        """
        self.name = folder.name
        self.folder = folder
        self.game = game or find_game(DUBITO, Path())
        self._facts = self.game.facts
        if sources and not {DESCRIPTION, *TEMPLATES} <= sources.keys():
            raise UsageError(f"{one_line(str(folder))}: the run has not kept all files of this prompt: it is damaged")
        described = sources[DESCRIPTION] if sources else read_described(folder)
        self.description = _description(folder / DESCRIPTION, described)
        self._check_description()
        files = TemplateFiles(folder, sources, _shared(self.game), self.description.extends)
        environment = new_environment(files)
        system, user = (files.reachable(environment, template) for template in TEMPLATES)
        trees = system | user
        history = files.reachable(environment, HISTORY) if files.has(HISTORY) else {}
        self.sources = {DESCRIPTION: described} | {name: files.sources[name] for name in (*trees, *history)}
        self.digest = _digest(self.sources)
        odds = self.description.say == "odds"
        self._nodes = {node.name: answers.with_odds(node) if odds else node for node in self.game.nodes}
        self._forms = {name: answers.build_form(self.fields, node) for name, node in self._nodes.items()}
        examples = [self._example(node.name) for node in self.game.nodes]
        beside = (_ANSWER_FORMAT, _TURN) if self.asks_turn else (_ANSWER_FORMAT,)
        self.variables = (*self._facts.facts(examples[0]), *beside)
        self._steady = self._facts.steady_facts() | {_ANSWER_FORMAT}
        check_names(files, trees, {*self.variables, *environment.globals})
        check_names(files, history, {*self._steady, "history", "first", *environment.globals})
        self._files, self._environment = files, environment
        self._history = environment.get_template(HISTORY) if history else None
        told = {name for tree in system.values() for name in find_undeclared_variables(tree)}
        self._system_is_steady = told <= self._steady
        self._told = told | {name for tree in user.values() for name in find_undeclared_variables(tree)}
        self._answer_format = answers.answer_format(self.fields, [*self._nodes.values()], turn=self.asks_turn)
        self._system, self._user = map(environment.get_template, TEMPLATES)
        self._for_decisions, self._example_positions = False, examples
        self._examples: list[Sample] = [(self.render(example), self.form_at(example)) for example in examples]

    def _example(self, node: str) -> Any:
        position = self._facts.example_position(node)
        for flaw in flaws_of_position(position):
            raise UsageError(f"facts.py of {self.game.name}: {flaw}")
        return position

    def _check_description(self) -> None:
        """Refuse a field that no node of the game states, odds where none is yes or no, and to ask a turn where one
        question is all of it."""
        if self.description.say == "odds" and all(node.answer != Bool() for node in self.game.nodes):
            raise UsageError(
                f"{self.folder / DESCRIPTION}: say: odds: {self.game.name} asks nothing that is answered by yes or no: "
                "remove it"
            )
        if self.asks_turn and not hasattr(self._facts, "turn"):
            raise UsageError(
                f"{self.folder / DESCRIPTION}: ask: turn: a move of {self.game.name} is one question, as far as its "
                "facts say, which have no `turn`: remove it"
            )
        if STATED in self.fields and all(node.states != STATED for node in self.game.nodes):
            raise UsageError(
                f"{self.folder / DESCRIPTION}: answer: {self.game.name} has nothing to state as {STATED}: remove it"
            )

    def check_rules(self, rules: Any) -> None:
        """Refuse a prompt that is not true by these rules, since it tells the usual ones in words of its own."""
        for fact in self.game.must_tell(rules):
            if fact not in self._told:
                raise UsageError(
                    f"prompt {one_line(self.name)} tells the usual rules of {self.game.name} in words of its own, and "
                    f"others are in force: choose one that renders the fact {fact}, such as plain"
                )

    @property
    def is_current(self) -> bool:
        """Whether its folder would load to the same prompt today."""
        try:
            files = TemplateFiles(self.folder, None, _shared(self.game), self.description.extends)
            return files.has(HISTORY) == (HISTORY in self.sources) and all(
                files.source(name) == text for name, text in self.sources.items()
            )
        except UsageError:
            return False

    @property
    def title(self) -> str:
        return self.description.title

    @property
    def fields(self) -> tuple[answers.Field, ...]:
        return tuple(self.description.answer)

    @property
    def asks_turn(self) -> bool:
        return self.description.ask == "turn"

    def form(self, node: str) -> answers.Form:
        return self._forms[node]

    def asked_as(self, api: Api) -> "Prompt":
        """The same for a player of this protocol: a decision model is put all questions of a turn beside the text."""
        if api != "decisions":
            return self
        other = copy(self)
        other._for_decisions, other._answer_format = True, ANSWER_FORMAT
        other._examples = [(other.render(example), other.form_at(example)) for example in self._example_positions]
        return other

    def form_at(self, position: Position, turn: Sequence[Mapping[str, Any]] = ()) -> answers.Form | QuestionForm:
        """Of the reply to what is asked at this position; `turn` are the facts of its questions, if they are known."""
        positions = self.questions(position)
        if self._for_decisions:
            facts = turn or [*map(self._facts.facts, positions)]
            return form_of_questions(self.game, [*zip(positions, facts, strict=True)], self.fields)
        if not self.asks_turn:
            return self._forms[position.node]
        nodes = dict.fromkeys(each.node for each in positions)
        return answers.build_turn_form(self.fields, tuple(map(self._nodes.__getitem__, nodes)))

    def questions(self, position: Position) -> Sequence[Position]:
        facts: Any = self._facts
        whole = self.asks_turn or (self._for_decisions and hasattr(facts, "turn"))
        return facts.turn(position) if whole else [position]

    @property
    def samples(self) -> list[Sample]:
        return longest(self._examples)

    def render(self, position: Position) -> RenderedPrompt:
        first, *others = map(self._facts.facts, self.questions(position))
        return self.fill(first, turn=[first, *others])

    def pieces(self, position: Position) -> tuple[list[Piece], list[Piece], list[Piece]]:
        """Of the system text, the history and the user text at a position, what they are made of."""
        with self._environment.noting() as noted:
            self.render(position)
        *chapters, system, user = noted
        told = [chapter for chapter in chapters if any(piece.text.strip() for piece in chapter)]
        return system, [piece for chapter in told for piece in chapter], user

    def path_of(self, template: str) -> Path:
        return self._files.paths[template]

    def fill(
        self, values: Mapping[str, Any], before: SeatTexts | None = None, turn: Sequence[Mapping[str, Any]] = ()
    ) -> RenderedPrompt:
        """The texts for these facts, which have the keys of `facts()`; `turn`, those of each question of the turn, is
        for a prompt that asks them all.

        `before` is what the same seat was sent in the same game; these texts are added to it.
        """
        is_concurrent = getattr(self._facts, "AT_ONCE", {}) if self._for_decisions else {}
        values = {**values, **is_concurrent, _ANSWER_FORMAT: self._answer_format}
        if self.asks_turn:
            values[_TURN] = [*turn]
        steady = {name: value for name, value in values.items() if name in self._steady}
        texts = before or SeatTexts()
        texts.begin(steady)
        try:
            history = self._rendered_history(values, steady, texts)
            if texts.system is None or not self._system_is_steady:
                texts.system = self._system.render(values)
            return RenderedPrompt(texts.system, self._user.render(values), history)
        except Exception as error:  # a template is the user's code: it may raise anything
            where = self._files.place(error)
            raise UsageError(f"{where}: {said(error)}; correct the template") from None

    def _rendered_history(
        self, values: Mapping[str, Any], steady: Mapping[str, Any], texts: SeatTexts
    ) -> tuple[str, ...]:
        """The history's chapters, cut where the seat had to move, which is where its earlier requests ended."""
        if self._history is None:
            return ()
        history = tuple(values["history"])
        ends = (*values["own_moves"], len(history))
        texts.begin_history(history, ends)
        for start, end in list(pairwise((0, *ends)))[len(texts.chapters) :]:
            text = self._history.render(steady, history=[*history[start:end]], first=not texts.chapters)
            texts.chapters.append(text if text.strip() else "")
        return tuple(filter(None, texts.chapters))  # providers take no blank text


def load_prompt(name: str, working_directory: Path, game: Game | None = None) -> Prompt:
    """The prompt of a game (Dubito if none is given) in the project, in `prompts` of the working directory or of
    `--games-path`, or in what the game was installed with, by name; or in the folder at that path.

    Raises UsageError if there is none, or two that differ, or if it does not work for every node.
    """
    game = game or find_game(DUBITO, working_directory)
    if "/" in name or "\\" in name or name.startswith("."):
        folder = working_directory / name
        if not folder.is_dir():
            raise UsageError(f"there is no folder {one_line(str(folder))}: give the path of a prompt's folder")
        return _loaded(folder.resolve(), game)
    folders = [root / name for root in prompt_roots(working_directory, game) if name and _is_prompt(root / name)]
    if not folders:
        raise UsageError(unknown_prompt(name, working_directory, game))
    prompts = [_loaded(folder, game) for folder in folders]
    if len({prompt.digest for prompt in prompts}) > 1:
        both = " and ".join(one_line(str(folder)) for folder in folders)
        raise UsageError(f"prompt {name} stands in {both}, and they differ: rename one, or give its path")
    return prompts[0]


def _loaded(folder: Path, game: Game) -> Prompt:
    """The folder's prompt; anew only if its files have changed, since to try a prompt takes longer than to read it."""
    prompt = _LOADED.get(folder)
    if prompt is None or prompt.game is not game or not prompt.is_current:
        _LOADED[folder] = prompt = Prompt(folder, game=game)
    return prompt


def _is_prompt(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.glob(f"*/{DESCRIPTION}"))


def _prompt_paths(name: str, working_directory: Path) -> list[str]:
    """The path of the folder there that may have been meant by this path, if there is one."""
    depth = name.count("/") + 1
    files = working_directory.glob(f"{'*/' * depth}{DESCRIPTION}") if 1 < depth <= _DEEPEST else ()
    meant = near(name, (file.parent.relative_to(working_directory).as_posix() for file in files))
    return [] if meant is None else [meant]


def unknown_prompt(name: str, working_directory: Path, game: Game) -> str:
    """The error for a prompt that the game does not have; it names the games that have one."""
    others = set()
    for root in prompt_roots(working_directory, None):
        others |= {file.parent.parent.name for file in root.glob(f"*/*/{DESCRIPTION}") if file.parent.name == name}
        others |= {DUBITO} if (root / name / DESCRIPTION).is_file() else set()
    of = "" if game.name == DUBITO else f" of {game.name}"
    elsewhere = f" (there is one of {' and of '.join(sorted(others))})" if others else ""
    known = [*prompt_names(working_directory, game), *_prompt_paths(name, working_directory)]
    hint = suggestion(name, known) if known else f"there is none yet: write one in prompts/{game.folder}"
    return f"no prompt{of} is named {one_line(name)!r}{elsewhere}: {hint}"


def prompt_names(working_directory: Path, game: Game | None = None) -> list[str]:
    """The names of all prompts of a game (Dubito if none is given) in the project and in `prompts` of the working
    directory, sorted."""
    files = (file for root in prompt_roots(working_directory, game) for file in root.glob(f"*/{DESCRIPTION}"))
    return sorted({file.parent.name for file in files})


def prompt_roots(working_directory: Path, game: Game | None) -> list[Path]:
    """Where prompts of a game, or of all, lie: in the project, here, and in what the game was installed with."""
    found = dict.fromkeys([*_own_roots(), *((root / "prompts").resolve() for root in roots(working_directory))])
    if game is None:
        return [*found]
    package = find_package(game.folder, working_directory)
    brought = [package.folder / "prompts"] if package and package.distribution else []
    return [*(prompt_root(root, game) for root in found), *brought]


def prompt_root(prompts: Path, game: Game) -> Path:
    return prompts if game.name == DUBITO else prompts / game.folder


def game_of_folder(folder: Path, working_directory: Path) -> Game:
    """The game whose prompt lies in this folder, if it lies in `prompts/GAME` or a game's package; else Dubito."""
    of = folder.resolve().parent
    for package in all_packages(working_directory):
        if package.distribution and (package.folder / "prompts").resolve() == of:
            return find_game(package.name, working_directory)
    if of.parent.name == "prompts":
        with suppress(UsageError):
            return find_game(of.name, working_directory)
    return find_game(DUBITO, working_directory)


def own_prompts(game: Game) -> Path:
    """Return the folder of the prompts of a game that ship with Dubito or with a plugin."""
    folders = [prompt_root(root, game) for root in _own_roots()]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def _own_roots() -> list[Path]:
    return [OWN_PROMPTS, *(folder / "prompts" for folder in plugin_folders())]


def _shared(game: Game) -> list[Path]:
    return list(dict.fromkeys([own_prompts(game), OWN_PROMPTS]))


def _description(path: Path, text: str) -> Description:
    try:
        return Description.model_validate(from_yaml(text, one_line(str(path))))
    except ValidationError as error:
        wanted = f"`title: ...` and `answer: [answer]`, or [reasoning, {STATED}, answer]"
        raise UsageError(f"{path}: {fault(error)}; it says {wanted}") from None


def said_of_prompt(sources: Mapping[str, str]) -> tuple[str, str]:
    description = _description(Path(DESCRIPTION), sources.get(DESCRIPTION, ""))
    return description.title, sources.get(PARAGRAPH, "").strip()


def _digest(sources: Mapping[str, str]) -> str:
    parts = [f"{name}\0{len(text)}\0{text}" for name, text in sorted(sources.items())]
    return sha256("".join(parts).encode()).hexdigest()
