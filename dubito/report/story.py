"""A game told turn by turn, as the viewer shows it. The engine says every state; the viewer knows no rules."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dubito.game import Ending, Results, Spec
from dubito.game.record import Forfeit, play, records_of, whole_game
from dubito.game.words import Label, Line, Marks, Panel, forfeit_in_words, labels, marks_of, names_to, told_of
from dubito.sitting import GUEST

Turns = Iterator[tuple[Any, Sequence[Any]]]  # what was given back, and what was observed of it


def story_of_game(
    spec: Spec, game: Any, moves: Turns, names: Sequence[str], label: Label, spoken: Callable[[str], str] = str
) -> dict[str, Any]:
    """The game told, from its deal on, with cards where it has a `drawn` for them, else in words.

    `label` names the players in sentences, which are then `spoken` to whom they are for. `truths` are, move by move,
    of what a model may state before it. A game whose moves end before it is over has no `ending`. An error of a move
    that cannot be made is passed on.
    """
    drawn = getattr(told_of(spec), "drawn", None)
    truths: list[bool | None] = []
    moves = _judged(spec, game, moves, truths)
    if drawn is not None:
        whole: dict[str, Any] = drawn(game, moves, names, label, spoken)
    else:
        whole = _Words(spec, game, label, spoken).told(moves, names)
    return whole | {"truths": truths} | ({} if game.over else {"ending": ""})


def _judged(spec: Spec, game: Any, moves: Turns, truths: list[bool | None]) -> Turns:
    """The moves, each made after it was noted what the truth is before it."""
    while True:
        truth = None if game.over else spec.truth(game)
        try:
            move = next(moves)
        except StopIteration:
            return
        truths.append(truth)
        yield move


def winners(results: Results, buckets: Sequence[int], counts: Sequence[tuple[int, ...]]) -> list[int]:
    """The seats that came to the most of what ranks; none where all came to the same."""
    came = [results.measured(bucket, own)[0] for bucket, own in zip(buckets, counts, strict=True)]
    return [seat for seat, own in enumerate(came) if own == max(came) > min(came)]


def title_of(name: str, names: Sequence[str], won: Sequence[int]) -> str:
    """Of a game's page: who has won it."""
    if not won:
        return f"{name}: nobody wins"
    verb = "win" if len(won) > 1 or names[won[0]] == "You" else "wins"
    return f"{name}: {' and '.join(names[seat] for seat in won)} {verb}"


def story_of_record(spec: Spec, record: Any) -> dict[str, Any]:
    """A saved game told; the person at its table, `me`, is spoken to as they were while they played.

    Raises UsageError if the record breaks the rules, or ends before its game does.
    """
    me = record.players.index(GUEST) if record.players.count(GUEST) == 1 else None
    names, words = names_to(record.players, me), told_of(spec)
    game, outputs = records_of(spec).opened(record)
    with whole_game(game):
        moves = ((output, play(game, output)) for output in outputs)
        whole = story_of_game(spec, game, moves, names, labels(record.players, me), words.to_me)
    kinds = ["person" if seat == me else None for seat in range(len(names))]  # what else sat there no record says
    return whole | {"me": me, "winners": won_by(spec.results, game.ending()), "kinds": kinds}


def won_by(results: Results, ending: Ending) -> list[int]:
    """The winners of a game that ended so."""
    buckets = [results.bucket(mark, ending.capped) for mark in ending.marks]
    return winners(results, buckets, [(*counts, 0) for counts in ending.counts])


@dataclass
class _Words:
    """Tells a game in panels: of every turn its sentences, the truth beside them, and the panels that have changed."""

    spec: Spec
    game: Any
    label: Label
    spoken: Callable[[str], str]

    def told(self, moves: Turns, names: Sequence[str]) -> dict[str, Any]:
        """All that the viewer shows; the moves of one turn are one step of it."""
        game, words = self.game, told_of(self.spec)
        teller = words.Teller(game, self.label)
        self._panels = dealt = self._in_words(teller.panels())
        start = self.spoken(words.sentence(game.start, self.label))
        turns: list[dict[str, Any]] = []
        story: list[str] = []
        movers, lines, seat, played = list[int](), list[Line](), game.seat, game.turns_played
        marks: list[Marks] = []
        for output, events in moves:
            movers.append(seat)
            if output is None or isinstance(output, Forfeit):
                lines.append(Line(forfeit_in_words(output.seat if output else seat, self.label, self.spec)))
                marks.append(Marks())
            else:
                lines += teller.moved(seat, output, events)
                marks.append(marks_of(teller))
            if game.over or game.turns_played != played:
                turns.append(self._turn(movers, lines, teller.panels()) | _marked(movers, marks))
                story.append(self.spoken(" ".join(line.said for line in lines if line.said)))
                movers, lines, marks, played = [], [], [], game.turns_played
            seat = game.seat
        return {
            "names": list(names),
            "start": start,
            "panels": dealt,
            "turns": turns,
            "story": story,
            "ending": self.spoken(teller.ending()[0]) if game.over else "",
        }

    def _turn(self, movers: list[int], lines: list[Line], panels: list[Panel]) -> dict[str, Any]:
        now = self._in_words(panels)
        changed = {place: panel for place, panel in enumerate(now) if panel != self._panels[place]}
        self._panels = now
        truth = [self.spoken(line.truth) for line in lines if line.truth]
        return {"seat": movers[0], "movers": movers, "panels": changed, "truth": truth}

    def _in_words(self, panels: list[Panel]) -> list[list[Any]]:
        texts = [[panel.title, panel.public, panel.truth] for panel in panels]
        return [[*map(self.spoken, text), panel.seat] for text, panel in zip(texts, panels, strict=True)]


def _marked(movers: Sequence[int], marks: Sequence[Marks]) -> dict[str, Any]:
    """What the moves of a turn were, and who got what wrong."""
    kinds = dict.fromkeys(kind for mark in marks for kind in mark.kinds)
    wrong = {seat: mark.mistake for seat, mark in zip(movers, marks, strict=True) if mark.mistake}
    return {"marks": [*kinds], "mistakes": wrong}
