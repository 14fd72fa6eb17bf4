"""Check that a game refuses illegal outputs without changing its state."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from dubito.errors import IllegalOutput, one_line
from dubito.game import Answer, Cards, Choice, State, Text, Whole, node_view
from dubito.game.streams import DealStreams
from dubito.hooks import Flaw
from dubito.plugins.gamecheck.plain_data import difference, extract_path, find_file, find_line, to_plain
from dubito.plugins.gamecheck.subject import DEALS_PER_SIZE, Subject

_WRONG_OUTPUTS: Final[tuple[object, ...]] = (
    None,
    7,
    -1,
    1.0,
    "?",
    b"x",
    [],
    (),
    {},
    [None],
    [[]],
    [1.0],
    ["7"],
    object(),
    range(3),
)
_MAX_ILLEGAL: Final = 6  # outputs of the right type per move


class _Hostile:
    """An output whose code must not run."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("the output was compared")

    def __hash__(self) -> int:
        raise RuntimeError("the output was hashed")


def check_refusals(subject: Subject) -> Iterator[Flaw]:
    """Try illegal outputs before each move of a game and compare it with the same game without them."""
    for deal, seats in subject.deals[::DEALS_PER_SIZE]:
        tested, untouched = subject.state(deal, seats), subject.state(deal, seats)
        for place, output in enumerate(subject.outputs[deal, seats]):
            for each in _illegal_outputs(subject, tested):
                if flaw := _find_accepted(subject, tested, each):
                    yield flaw
                    return
            changed = difference(_visible_state(tested, seats), _visible_state(untouched, seats))
            if not changed:
                untouched.apply(output)
                with suppress(IllegalOutput):
                    tested.apply(output)
                changed = difference(_visible_state(tested, seats), _visible_state(untouched, seats))
            if changed:
                yield _find_change(subject, deal, seats, place, changed)
                return


def _find_accepted(subject: Subject, state: State, output: object) -> Flaw | None:
    shown = _describe_output(output)
    try:
        state.apply(output)
    except IllegalOutput:
        return None
    except Exception as error:  # foreign code
        what = one_line(f"{type(error).__name__}: {error}", 100)
        return Flaw(
            subject.main, f"apply raises {what} for the output {shown}; raise IllegalOutput for an illegal output"
        )
    return Flaw(subject.main, f"apply accepts {shown} as a move; raise IllegalOutput")


def _describe_output(output: object) -> str:
    return one_line(repr(output), 40) if type(output) not in (object, _Hostile) else "an object"


def _visible_state(state: State, seats: int) -> object:
    cards = [state.cards(seat, DealStreams(0, 0).seat(seat)) for seat in range(seats)]
    visible = {"over": state.over, "seat": state.seat, "turns_played": state.turns_played, "cards()": to_plain(cards)}
    return visible | ({"ending()": to_plain(state.ending())} if state.over else {"view()": to_plain(state.view())})


def _find_change(subject: Subject, deal: int, seats: int, place: int, changed: str) -> Flaw:
    """Replay the game with illegal outputs and report the first that changes the state although it is refused."""
    state = subject.state(deal, seats)
    file = find_file(subject, state, subject.main)
    for output in subject.outputs[deal, seats][: place + 1]:
        for each in _illegal_outputs(subject, state):
            before = to_plain(state, private=True)
            with suppress(IllegalOutput):
                state.apply(each)
            if change := difference(before, to_plain(state, private=True)):
                line = find_line(subject, file, extract_path(change))
                what = f"apply refuses {_describe_output(each)} after it has changed the state: {change}"
                return Flaw(file, f"{what}; check the output first{line}")
        state.apply(output)
    return Flaw(file, f"apply refuses an illegal output after it has changed the state: {changed}")


def _illegal_outputs(subject: Subject, state: State) -> list[object]:
    """Return outputs that are currently illegal, of both the wrong and the right type."""
    kinds = [node.answer for node in subject.game.nodes]
    wrong = [*_WRONG_OUTPUTS, _Hostile()]
    if any(isinstance(kind, Whole) for kind in kinds):
        wrong = [each for each in wrong if not (type(each) is int and each >= 0)]
    if any(isinstance(kind, Text) for kind in kinds):
        wrong.remove("?")
    if subject.game.has_walk:
        return wrong
    view = node_view(state)
    kind = subject.game.node(view.node).answer
    answers = _answers_of_kind(kind)
    with suppress(IllegalOutput):
        cards = state.cards(state.seat, DealStreams(0, 0).seat(state.seat))
        outputs = [subject.game.output_of(view.node, answer, cards) for answer in answers]
        return [*wrong, *[each for each in outputs if view.why_illegal(each) is not None]]
    return wrong


def _answers_of_kind(kind: Answer) -> Sequence[object]:
    """Return some answers of this type, most of which are illegal at most moves."""
    match kind:
        case Text(most):
            return ["", " ", "a\nb", "a\u202eb", "a\x1b[2J", "a" * (most + 1)]
        case Choice(options):
            return (options or ())[:_MAX_ILLEGAL]
        case Cards(cards):
            singles = [[card] for card in cards[:_MAX_ILLEGAL]]
            return [*singles, [*cards], [cards[0]] * 10, [cards[-1]] * 10]
        case Whole():
            return [10**6, 10**6 + 1]
    return []
