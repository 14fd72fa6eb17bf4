"""Check that a view's `legal()` lists exactly the moves that the game accepts.

The list determines the buttons shown to people, and the `legal` fact in models' prompts.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from random import Random
from traceback import extract_tb
from typing import Final

from dubito.errors import BotError, DubitoError, IllegalOutput, UsageError, one_line
from dubito.game import Bool, Choice, Node, Player, State, View, Whole, node_view
from dubito.game.legal import is_listed
from dubito.game.log import Position
from dubito.game.streams import DealStreams
from dubito.game.table import step
from dubito.game.words import is_of_kind, parse_legal
from dubito.hooks import Flaw
from dubito.llm.prompts import Prompt, load_prompt
from dubito.llm.templates import DESCRIPTION
from dubito.plugins.gamecheck.subject import MAX_MOVES, Subject
from dubito.plugins.gamecheck.worlds import is_allowed, similar_outputs
from dubito.workshop.recordings import Origin, record_positions

_RANDOM_GAMES: Final = 24
_RANDOM_MOVES: Final = 800  # number of moves in all random games
_MAX_TRIED: Final = 24  # outputs of a list, at one position
_MAX_LISTED: Final = 10_000  # some OpenSpiel games have thousands
_ELLIPSES: Final = frozenset({"...", "\u2026"})  # marks of an abridged list in a prompt
_POSITIONS_PER_GAME: Final = 6  # minimum number for rendering prompts


def check_shapes(subject: Subject) -> Iterator[Flaw]:
    """Check the list of legal moves before each move until a bot fails. Yield the first flaw."""
    if subject.game.has_walk or not subject.registry.hand_written():
        return
    for deal, seats in subject.deals:
        table = subject.table(deal, seats)
        players = [_Recorder(player) for player in table.players]
        table.players = players  # type: ignore[assignment]
        try:
            while not table.state.over and table.state.turns_played < MAX_MOVES:
                if flaw := _check_shape(subject, table.state):
                    yield flaw
                    return
                for player in players:
                    player.outputs.clear()
                step(table)
        except BotError as error:
            if flaw := _find_wrong_refusal(subject, table.state, players[table.state.seat].outputs, error.__context__):
                yield flaw
                return
        except DubitoError:  # reported by another probe, which plays whole games
            continue


class _Recorder:
    """A player whose outputs are recorded."""

    def __init__(self, player: Player | None) -> None:
        self._player, self.outputs = player, list[object]()

    def __getattr__(self, name: str) -> object:
        return getattr(self._player, name)

    def play(self, view: object) -> object:
        assert self._player is not None
        output = self._player.play(view)
        self.outputs.append(output)
        return output


def _find_wrong_refusal(subject: Subject, state: State, outputs: list[object], error: object) -> Flaw | None:
    """Return a flaw if `apply` refused an output that the view accepts, which is not the bot's mistake."""
    view = node_view(state)
    if not outputs or not isinstance(error, IllegalOutput) or view.why_illegal(outputs[0]) is not None:
        return None
    return Flaw(subject.main, _describe_contradiction(subject, view, outputs[0], error))


def _describe_contradiction(subject: Subject, view: View, output: object, error: IllegalOutput) -> str:
    accepts = "legal() lists" if subject.game.legal(view) is not None else "why_illegal accepts"
    own = [frame for frame in extract_tb(error.__traceback__) if frame.filename.startswith(str(subject.folder))]
    line = f" (line {own[-1].lineno})" if own else ""
    return f"view().{accepts} {_quote(output)} at node {view.node}, but apply refuses it: {one_line(str(error))}{line}"


def _check_shape(subject: Subject, state: State) -> Flaw | None:
    game, view = subject.game, node_view(state)
    names = [node.name for node in game.nodes]
    if (name := getattr(view, "node", None)) not in names:
        return Flaw(subject.main, f"view().node is {name!r}, which is not in nodes ({', '.join(names)})")
    node, legal = game.node(view.node), game.legal(view)
    if legal is None:
        if node.answer != Choice(None) or game.words.choices(state):
            return None
        what = f"view().legal() and the Choice of node {node.name} list nothing, so a person has no buttons"
        return Flaw(subject.main, what, sure=False)
    if not hasattr(view, "why_illegal"):
        what = f"{type(view).__name__} has no why_illegal(output); inherit from dubito.game.View"
        return Flaw(subject.main, what)
    wrong = _flaw_of_list(subject, node, legal)
    return Flaw(subject.main, f"view().legal() {wrong}") if wrong else None


def check_lists(subject: Subject) -> Iterator[Flaw]:
    if not subject.game.has_walk:
        faults = chain(_find_list_faults(subject), _find_refused(subject))
        yield from islice((Flaw(subject.main, wrong) for wrong in faults), 1)


def _find_refused(subject: Subject) -> Iterator[str]:
    """Yield moves that `why_illegal` accepts and `apply` refuses, at nodes without a list."""
    for deal, seats in subject.deals[::3]:
        state, outputs, chance = subject.state(deal, seats), subject.outputs[deal, seats], Random(deal)
        apart = max(1, len(outputs) // _POSITIONS_PER_GAME)
        for place, output in enumerate(outputs):
            view = node_view(state)
            if place % apart == 0 and subject.game.legal(view) is None:
                for each in similar_outputs(subject, view.node, output, state, chance)[:3]:
                    if is_allowed(view, each) and (wrong := _apply_again(subject, deal, seats, place, each)):
                        yield wrong
            state.apply(output)


def _apply_again(subject: Subject, deal: int, seats: int, place: int, output: object) -> str:
    state = subject.state(deal, seats)
    for each in subject.outputs[deal, seats][:place]:
        state.apply(each)
    view = node_view(state)
    try:
        state.apply(output)
    except IllegalOutput as error:
        return _describe_contradiction(subject, view, output, error)
    return ""


def _find_list_faults(subject: Subject) -> Iterator[str]:
    for deal, seats in subject.deals:
        state = subject.state(deal, seats)
        for output in subject.outputs[deal, seats]:
            legal = subject.game.legal(state.view())
            if legal is not None and not is_listed(output, legal):
                yield f"view().legal() leaves out {_quote(output)} at node {node_view(state).node}, which apply accepts"
            state.apply(output)
    moves = 0
    for deal in range(_RANDOM_GAMES):
        with suppress(DubitoError):  # games of a bot, since random games may be unusual
            for wrong in _play_randomly(subject, deal, subject.game.seats[deal % 2]):
                moves += 1
                if wrong:
                    yield wrong
                elif moves % _RANDOM_MOVES == 0:
                    return


def _play_randomly(subject: Subject, deal: int, seats: int) -> Iterator[str]:
    """Play a game with random moves from the lists. Yield what is wrong before each move, if anything."""
    table, chance = subject.table(deal, seats), Random(deal)
    state = table.state
    while not state.over:
        view = node_view(state)
        legal = subject.game.legal(view)
        if legal is None:
            yield ""
            step(table, announce=True)
            continue
        wrong = _find_list_fault(subject, state, legal, chance)
        yield f"view().legal() {wrong}" if wrong else ""
        output = chance.choice(legal)
        try:
            events = state.apply(output, bool(table.watchers))
        except IllegalOutput as error:
            yield _describe_contradiction(subject, view, output, error)
            return
        table.send_events(events, state.turns_played)


def _flaw_of_list(subject: Subject, node: Node, legal: object) -> str:
    """Return what is wrong with a list in itself."""
    if not isinstance(legal, Sequence) or isinstance(legal, str):
        return f"returns {one_line(repr(legal), 60)} at node {node.name}; return a list, a tuple or None"
    if not isinstance(node.answer, Bool | Choice | Whole):
        kind = type(node.answer).__name__
        return f"lists outputs at node {node.name}, whose answer is {kind}; return None"
    if not legal:
        return f"is empty at node {node.name}, so no move is possible; list the legal moves, or return None"
    if len(legal) > _MAX_LISTED:
        return f"lists {len(legal):,} outputs at node {node.name}; return None unless the list is short"
    answers = [subject.game.answer_of(node.name, output) for output in legal]
    for answer, output in zip(answers, legal, strict=True):
        if not is_of_kind(answer, node):
            kind = type(node.answer).__name__
            return f"lists {_quote(output)} at node {node.name}, which is not a valid answer for its {kind}"
    answer, times = Counter(answers).most_common(1)[0]
    return f"lists {_quote(answer)} twice at node {node.name}" if times > 1 else ""


def _find_list_fault(subject: Subject, state: State, legal: Sequence[object], chance: Random) -> str:
    """Return what is wrong with a list in itself, or where `why_illegal` or `apply` contradicts it."""
    view, game = node_view(state), subject.game
    if wrong := _flaw_of_list(subject, game.node(view.node), legal):
        return wrong
    at = f"at node {view.node}"
    for output in legal if len(legal) <= _MAX_TRIED else chance.sample(legal, _MAX_TRIED):
        if reason := view.why_illegal(output):
            return f"lists {_quote(output)} {at}, but why_illegal refuses it: {one_line(reason)}"
    for output in _unlisted_outputs(subject, state, game.node(view.node), legal):
        if view.why_illegal(output) is None:
            return f"leaves out {_quote(output)} {at}, which why_illegal accepts"
        with suppress(IllegalOutput):
            state.apply(output)
            return f"leaves out {_quote(output)} {at}, which apply accepts"
    return ""


def _unlisted_outputs(subject: Subject, state: State, node: Node, legal: Sequence[object]) -> Iterator[object]:
    """Yield outputs of the node's type that are not in the list, such as numbers next to and between its items."""
    game, cards = subject.game, state.cards(state.seat, DealStreams(0, 0).seat(state.seat))
    match node.answer:
        case Bool():
            answers: Sequence[object] = (True, False)
        case Choice(options):
            answers = options or ()
        case _:
            listed = [each for output in legal if isinstance(each := game.answer_of(node.name, output), int)]
            least, most = min(listed), max(listed)
            answers = (-1, 0, least - 1, most + 1, 10 * abs(most) + 7, *range(least, min(most, least + _MAX_TRIED)))
    for answer in answers:
        with suppress(IllegalOutput):
            if not is_listed(output := game.output_of(node.name, answer, cards), legal):
                yield output


def _quote(output: object) -> str:
    return one_line(repr(output), 40)


def check_prompt_lists(subject: Subject) -> Iterator[Flaw]:
    """Yield the first `legal` fact, and each prompt's first `legal:` line, that differs from the view's list."""
    if subject.game.has_walk or not subject.game.has_facts:
        return
    prompts, reported = [*_load_prompts(subject)], set[str]()
    for position, answers in _listed_positions(subject):
        wrong_facts = [*_check_fact(subject, position, answers)]
        for flaw in wrong_facts or _check_lines(subject, prompts, position, answers):
            if flaw.file not in reported:
                reported.add(flaw.file)
                yield flaw


def _load_prompts(subject: Subject) -> Iterator[Prompt]:
    for name in subject.prompts:
        with suppress(DubitoError):
            yield load_prompt(name, subject.here, subject.game)


def _listed_positions(subject: Subject) -> Iterator[tuple[Position, list[str]]]:
    """Yield positions from some games with the answers that the view lists."""
    game = subject.game
    for deal, seats in subject.deals[::3]:
        origin, state = Origin(None, 0, deal, deal), subject.state(deal, seats)
        recorded = record_positions(subject.table(deal, seats), origin, game, game.rules())
        apart = max(1, len(recorded) // _POSITIONS_PER_GAME)
        for place, (one, output) in enumerate(zip(recorded, subject.outputs[deal, seats], strict=True)):
            if (legal := game.legal(state.view())) is not None and place % apart == 0:
                yield one.position, [str(game.answer_of(one.position.node, each)) for each in legal]
            state.apply(output)


def _check_fact(subject: Subject, position: Position, answers: list[str]) -> Iterator[Flaw]:
    fact = subject.game.facts.facts(position).get("legal")
    if isinstance(fact, Sequence) and not isinstance(fact, str) and sorted(map(str, fact)) != sorted(answers):
        what = f"facts() has {_quote(fact)} for legal at node {position.node}, where view().legal() lists"
        yield Flaw(subject.file("facts.py"), f"{what} {_brief_list(answers)}")


def _check_lines(subject: Subject, prompts: Sequence[Prompt], position: Position, answers: list[str]) -> Iterator[Flaw]:
    for prompt in prompts:
        with suppress(UsageError):  # another probe reports failing templates
            shown = parse_legal(str(prompt.render(position)))
            if shown and sorted(shown) != sorted(answers):
                what = f"its line `legal:` has {_brief_list(shown)} at node {position.node}, where view().legal() lists"
                file, line = _template_with_legal(prompt)
                sure = bool({*shown} & {*answers}) and not _ELLIPSES & {*shown}
                yield Flaw(subject.shown(file), f"{what} {_brief_list(answers)}{line}", sure)


def _template_with_legal(prompt: Prompt) -> tuple[Path, str]:
    """Return the template that writes the `legal:` line and its line number, or the prompt's folder if unknown."""
    for name in sorted(prompt.sources.keys() - {DESCRIPTION}):
        path = prompt.template_path(name)
        if path.is_file():
            for number, text in enumerate(path.read_text("utf-8").splitlines(), 1):
                if text.strip().startswith("legal:"):
                    return path, f" (line {number})"
    return prompt.folder, ""


def _brief_list(answers: list[str]) -> str:
    return one_line(" | ".join(answers), 60)
