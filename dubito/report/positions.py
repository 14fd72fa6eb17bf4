"""Positions at which two contenders chose differently, as pages show them: one board and two choices.

Contenders take the same seats in the same deals, and each deal's random draws are the same. Two games of a deal are
therefore identical until the contenders first decide differently.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from dubito.errors import DubitoError, one_line, pluralize
from dubito.experiment.stored import Run
from dubito.game import PlayerKind, Results
from dubito.game.base import node_view
from dubito.game.words import list_faces
from dubito.report.tables import ShownBoard, ShownChoice, ShownPosition, ShownSeat
from dubito.show.odds import load_odds
from dubito.show.run import ReplayedGames
from dubito.show.story import ModelDecisions, Texts, count_cards, list_moves, story_of_game
from dubito.stats.rates import Rate

_MAX_DEALS: Final = 100  # number of deals whose games are played again
_MAX_REASON: Final = 300  # characters
_MAX_BACKS: Final = 9  # cards drawn of a pile
OTHER_MOVE: Final = "other move"
HONEST: Final = "honest play"
PASSED: Final = "let it pass"


@dataclass(frozen=True)
class Side:
    """One contender of a compared run.

    `pages` is the location of its run's pages, and `with_pages` lists the games that have one.
    """

    name: str
    run: Run
    place: int  # index among the contenders of its run
    pages: str
    with_pages: Collection[int]
    replays: ReplayedGames  # shared by the contenders of a run
    _played: dict[int, "ReplayedGame"] = field(default_factory=dict)
    _decisions: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def kind(self) -> PlayerKind:
        return self.run.kinds[self.run.contenders[self.place]]

    @property
    def label(self) -> str:
        """The name for headings, which do not show the player's kind separately."""
        own = self.run.contenders[self.place]
        return self.run.label(own) if self.name == own else one_line(self.name)

    def games(self, deal: int) -> range:
        seats = self.run.planned.contender_seats
        first = deal * self.run.planned.games_per_deal + self.place * seats
        return range(first, first + seats)

    def play(self, number: int) -> "ReplayedGame":
        """Replay a game. Raises DubitoError if it cannot be repeated."""
        if number not in self._played:
            run, results = self.run, self.run.game.results
            session, names, outcome = self.replays.replay(number)
            assert outcome is not None
            assert outcome.contender_seat is not None
            session.start_recording(run.planned.rules)
            story = story_of_game(session, session.reader.names(len(names)))
            first, seat = results.measures[0], outcome.contender_seat
            rate = Rate(outcome.measure_seats(results)[seat][0] / first.scale).on_span(first.span)
            ending = results.describe_ending(outcome.marks[seat], outcome.capped)
            self._played[number] = ReplayedGame(number, story, session.outputs, seat, ending, rate.value or 0.0)
        return self._played[number]

    def decisions(self, game: "ReplayedGame") -> list[dict[str, Any]]:
        """Return this side's model decisions in a game."""
        if game.number not in self._decisions:
            asked = ModelDecisions(self.run.db, self.run.game)
            self._decisions[game.number] = asked.decisions(game.number, game.story, Texts())
        return self._decisions[game.number]


@dataclass(frozen=True)
class ReplayedGame:
    """A replayed game, with its contender's seat and score."""

    number: int
    story: Mapping[str, Any]
    outputs: Sequence[Any]
    seat: int
    ending: str
    score: float


@dataclass(frozen=True)
class Split:
    """Two games of a deal, and the move at which they first differ."""

    deal: int
    games: tuple[ReplayedGame, ReplayedGame]
    move: int  # counted from 0
    turn: int
    place: int  # of the move in its turn

    @property
    def cost(self) -> float:
        return self.games[0].score - self.games[1].score

    @property
    def rank(self) -> tuple[float, int]:
        """The sort key: the cost, then the difference in the contenders' cards after the next turn."""
        cards = []
        for game in self.games:
            held = count_cards(game.story)  # empty if the game does not show hands
            cards.append(held[min(self.turn + 1, len(held) - 1)][game.seat] if held else 0)
        return -abs(self.cost), -abs(cards[0] - cards[1])

    def kinds(self, results: Results) -> tuple[str, str]:
        one, other = (self.kind(game, results) for game in self.games)
        return one, other

    def kind(self, game: ReplayedGame, results: Results) -> str:
        """Return the kind of move that a side made."""
        made = game.story["turns"][self.turn - 1]
        marks = made["kinds"][self.place] if "kinds" in made else made["marks"]
        if marks or not results.lies:
            return ", ".join(marks) or OTHER_MOVE
        return PASSED if self.place else HONEST  # the first move of a turn is a play


def find_splits(one: Side, other: Side) -> tuple[list[Split], int]:
    """Return the positions at which the sides first differed, costliest first, and the number of compared games."""
    splits, compared = list[Split](), 0
    first = one.run.planned.deal_of(one.run.planned.first_game)
    for deal in range(first, first + min(one.run.deals, other.run.deals, _MAX_DEALS)):
        for numbers in zip(one.games(deal), other.games(deal), strict=True):
            if numbers[0] not in one.with_pages or numbers[1] not in other.with_pages:
                continue
            try:
                games = one.play(numbers[0]), other.play(numbers[1])
            except DubitoError:
                continue
            compared += 1
            outputs = zip(games[0].outputs, games[1].outputs, strict=False)
            move = next((place for place, (mine, theirs) in enumerate(outputs) if mine != theirs), None)
            if move is not None:
                seat, *where = next(islice(list_moves(games[0].story["turns"]), move, None))
                splits += [Split(deal, games, move, *where)] if seat == games[0].seat else []
    return sorted(splits, key=lambda split: split.rank), compared


def show_position(one: Side, other: Side, split: Split, *, odds: bool) -> ShownPosition:
    """Return the board as the seat saw it, with the hand that both hold, and both choices."""
    here, there = _Position(one, split, 0), _Position(other, split, 1)
    board, truth = here.board(), here.truth()
    choices = [here.choose(odds=odds), there.choose(odds=odds)]
    if len({(choice.text, tuple(map(tuple, choice.cards))) for choice in choices}) == 1:
        for place, played in enumerate(split.games):
            output = played.outputs[split.move]  # in the game's JSON form
            answer = (
                {True: "yes", False: "no"}[output] if isinstance(output, bool) else one_line(json.dumps(output), 80)
            )
            choices[place] = replace(choices[place], text=f"{choices[place].text} (answer: {answer})")
    kinds = join_kinds(split.kinds(one.run.game.results))
    return ShownPosition(f"Deal {split.deal}, turn {split.turn}", here.question, truth, board, choices, kinds)


class _Position:
    """A position, played up to the choice of one side."""

    def __init__(self, side: Side, split: Split, place: int) -> None:
        self._side, self._split, self._game = side, split, split.games[place]
        self._seat, self._words = self._game.seat, side.run.game.words
        self._session, self._names, _ = side.replays.replay(self._game.number)
        self._reader, self._state = self._session.reader, self._session.state
        self._teller = self._words.teller(self._state, self._reader)
        self._speaker, self._claim = self._seat, ""
        for moment in islice(self._session, split.move):
            self._teller.describe_move(moment.seat, moment.output, moment.events)
            public = [event for event in moment.events if event.only is None]
            if speech := self._words.speech(moment.output, public):
                self._speaker, self._claim = moment.seat, speech
        panels = self._teller.panels()
        self._boards = [panel for panel in panels if panel.seat is None]
        self._by_seat = {panel.seat: panel for panel in panels if panel.seat is not None}
        self._question = self._words.question(self._state, self._seat, self._reader)

    @property
    def question(self) -> str:
        if self._question is not None:
            return self._question.prompt or self._question.wanted
        return self._words.short_question(node_view(self._state).node)

    def truth(self) -> str:
        """Return what the last play on the pile really is, or an empty string."""
        play = next((panel.plays[-1] for panel in self._boards if panel.plays), None)
        if play is None or play.lie is None or play.shown:
            return ""
        kind = f"a {self._side.run.game.results.lie_words[0]}" if play.lie else "honest"
        return f"{self._reader.starts(play.seat)}'s play is {kind}: {', '.join(play.cards)}"

    def board(self) -> ShownBoard:
        own, words, reader = self._by_seat.get(self._seat), self._words, self._reader
        hand = list_faces(words, own.cards if own else ())
        view = [] if hand else words.describe_view(self._state, self._seat, reader)
        others = []
        for step in range(1, len(self._names)):
            seat = (self._seat + step) % len(self._names)
            panel = self._by_seat.get(seat)
            about = ", ".join(filter(None, (panel.public, panel.badge))) if panel else ""
            claimed = self._claim if seat == self._speaker else ""
            others.append(ShownSeat(reader.name(seat), self._side.run.kinds[self._names[seat]], about, claimed))

        facts = []
        for panel in self._boards:
            cards = () if panel.truth else panel.cards
            # The public text, with the panel's title unless its cards are drawn.
            text = "" if cards else panel.public
            if not panel.backs:
                text = ": ".join(filter(None, (panel.title, text))) if panel.public else ""
            facts.append((text, list_faces(words, cards)))
        backs = min(_MAX_BACKS, sum(panel.backs for panel in self._boards))

        # How many cards of the hand are honest is clear only if one claim is possible.
        note, question = "", self._question
        if question is not None and len(question.claims) == 1:
            (claim,) = question.claims
            honest = sum(card in claim.honest for card in question.options)
            note = (
                f"{pluralize(honest) if honest else 'no card'} {'is' if honest < 2 else 'are'} honest as {claim.many}"
            )
        return ShownBoard(others, backs, [fact for fact in facts if any(fact)], hand, note, view)

    def choose(self, *, odds: bool) -> ShownChoice:
        """Make the side's move, and return it with what followed. Call this last."""
        side, game, split = self._side, self._game, self._split
        moment = next(self._session)
        lines = self._teller.describe_move(moment.seat, moment.output, moment.events)
        kind = split.kind(game, side.run.game.results)
        sentence = " ".join(line.sentence for line in lines if line.sentence) or kind.capitalize()
        hidden = "; ".join(line.truth for line in lines if line.truth and not line.cards)
        own = [one for one in side.decisions(game) if (one["seat"], one["turn"]) == (game.seat, split.turn)]
        reasons = (each["reasoning"] for one in own for each in one["attempts"][-1:])
        after = [text for text in game.story["story"][split.turn : split.turn + 1] if text]
        if odds:
            try:
                found = load_odds(side.run, game.number)
                chance = 100 * found.won[split.move + 1][game.seat] / found.playouts
                after.insert(0, f"{chance:.0f} % chance of winning right after.")
            except DubitoError as error:
                after.insert(0, f"No odds: {one_line(str(error))}.")
        first = side.run.game.results.measures[0]
        score = f"{game.score:.2f}" if first.span else f"{100 * game.score:.0f} %"
        return ShownChoice(
            side.name,
            side.kind,
            sentence.removeprefix(f"{self._reader.starts(self._seat)} ") + (f" ({hidden})" if hidden else ""),
            list_faces(self._words, next((line.cards for line in lines if line.cards), ())),
            kind.removeprefix(OTHER_MOVE),
            game.story["lie"] in kind.split(", "),
            one_line(next(filter(None, reasons), ""), _MAX_REASON),
            " ".join([*after, f"In the end: {game.ending}."]),
            f"{first.name} {score}",
            f"{side.pages}games/{game.number}.html#{own[0]['link'] if own else f'turn-{split.turn}'}",
        )


def join_kinds(kinds: tuple[str, str]) -> str:
    return " / ".join(kinds)


def sides_of_run(run: Run, names: Sequence[str], pages: str, with_pages: Collection[int]) -> list[Side]:
    """Return the named contenders of a run as sides."""
    replays = ReplayedGames(run)
    return [Side(name, run, place, pages, frozenset(with_pages), replays) for place, name in enumerate(names)]
