"""A game driven through pyspiel has the same story as in the harness."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dubito.game import GameEvent
from dubito.game.find import find_bots, find_game
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.games.defuse.engine import ACTS, DEFUSE
from dubito.games.dubito.bot import Listener
from dubito.games.dubito.events import CardList, DoubtResolvedEvent
from dubito.plugins.openspiel.courses.bs import DONE, NO, YES
from dubito.plugins.openspiel.courses.defuse import CARDS, PLACES
from dubito.plugins.openspiel.courses.dubito import DONE as CARDS_DONE
from dubito.plugins.openspiel.courses.dubito import DOUBT
from tests.plugins.openspiel.training.kit import new


def table(name: str, bots: Sequence[str], deal: int, **rules: Any) -> Table[Any]:
    game, registry, streams = find_game(name, Path.cwd()), find_bots(Path.cwd(), name), DealStreams(1, deal)
    state = game.deal(game.rules(**rules), len(bots), streams.deck())
    return Table(state, [Entrant(name, registry.find(name).cls) for name in bots], streams)


class EventTracker:
    """Reads the events that pyspiel's state has logged since the last call."""

    def __init__(self, state: Any) -> None:
        self.state, self.at = state, 0

    def new(self) -> list[GameEvent]:
        log = self.state.course.log.events
        events = [event for event in log[self.at :] if not event.silent]
        self.at = len(log)
        return events


def by_play(event: GameEvent) -> GameEvent:
    """Sort the cards within a play, because their order carries no information."""
    if not isinstance(event, DoubtResolvedEvent):
        return event
    latest, board = CardList(sorted(event.latest_cards)), CardList(sorted(event.board_cards))
    return replace(event, latest_cards=latest, board_cards=board)


class ListeningBot(Listener):
    """The answers of one turn."""

    def __init__(self) -> None:
        self.answers = deque[int]()

    def note_answer(self, node: str, answer: bool) -> None:
        self.answers.append(int(answer))


@pytest.mark.parametrize(
    ("bots", "rules"),
    [
        (["StefaBot", "ClaudeBot", "RandomBoi"], {}),
        (["SusBoi", "UsualBot", "MrDoubt", "RiskCounter", "AdaptyBoi"], {"win_rule": "contested"}),
        (["RandomBoi"] * 8, {"jokers": 1, "max_turns": 90}),
    ],
)
def test_openspiel_tells_dubitos_events(bots: list[str], rules: dict[str, Any]) -> None:
    for deal in range(2):
        at = table("dubito", bots, deal, **rules)
        given = ",".join([f"players={len(bots)}", *(f"{key}={value}" for key, value in rules.items())])
        state, bot = new(f"dubito({given})"), ListeningBot()
        for player in at.players:
            player.listeners += (bot,)  # type: ignore[union-attr]
        deal_out(state, at)
        observed = EventTracker(state)
        assert observed.new() == [event for event in at.state.start if not event.silent]
        while not at.state.over:
            output, events = step(at, announce=True)
            cards, game = deque(sorted(output.cards or ())), state.course.engine
            drawn, turn = {"n": len(cards), "number": output.number}, game.turns_played
            while game.turns_played == turn:
                if not state.is_chance_node():
                    state.apply_action(bot.answers.popleft())
                else:
                    state.apply_action(cards.popleft() if state.course.node == "card" else drawn[state.course.node])
            assert [*map(by_play, observed.new())] == [*map(by_play, events)]
        assert state.is_terminal()
        assert game.ending() == at.state.ending()


def deal_out(state: Any, at: Table[Any]) -> None:
    for hand in at.state.hands[:-1]:
        for card in sorted(hand.cards):
            state.apply_action(card)


@pytest.mark.parametrize("win_rule", ["immediate", "contested"])
def test_openspiel_tells_dubitos_events_card_by_card(win_rule: str) -> None:
    at = table("dubito", ["Sherlock", "StefaBot", "ClaudeBot", "AdaptyBoi"], 0, win_rule=win_rule)
    state = new(f"dubito(players=4,moves=cards,win_rule={win_rule})")
    deal_out(state, at)
    observed = EventTracker(state)
    assert observed.new() == [event for event in at.state.start if not event.silent]
    while not at.state.over:
        opens = at.state.number == 0
        output, events = step(at, announce=True)
        cards = sorted(output.cards or ())
        declared = [DOUBT + output.number] if opens else []
        for action in [DOUBT] if output.doubt else [*declared, *cards, *[CARDS_DONE][: 3 - len(cards)]]:
            state.apply_action(action)
        assert [*map(by_play, observed.new())] == [*map(by_play, events)]
    assert state.is_terminal()
    assert state.course.engine.ending() == at.state.ending()


@pytest.mark.parametrize("bots", [["ConMan", "Jerk", "Player3", "RiskTaker"], ["Player1", "CalculatingLiar"] * 2])
def test_openspiel_tells_the_events_of_bs(bots: list[str]) -> None:
    for deal in range(2):
        at, state = table("bs", bots, deal), new("dubito_bs")
        for hand in at.state.hands:
            for card in hand.cards:
                state.apply_action(card.number)
        observed = EventTracker(state)
        assert observed.new() == [event for event in at.state.start if not event.silent]
        while not at.state.over:
            drawn = [counts.accusations_drawn for counts in at.state.counts]
            held = [sorted(card.number for card in hand.cards) for hand in at.state.hands]
            output, events = step(at, announce=True)
            actions = [YES if output else NO] if isinstance(output, bool) else [*sorted(c[0] for c in output), DONE]
            for action in actions:
                state.apply_action(action)
            accuser = next((s for s in range(4) if at.state.counts[s].accusations_drawn > drawn[s]), None)
            while state.is_chance_node():
                outcomes = [outcome for outcome, _ in state.chance_outcomes()]
                kind = state.action_to_string(state.current_player(), outcomes[0]).split()[0]
                left = held[accuser or 0]
                for card in at.state.hands[accuser or 0].cards if kind == "loses" else ():
                    left.remove(card.number)
                state.apply_action(accuser if kind == "accuser" else left[0])
            assert observed.new() == list(events)
        assert state.is_terminal()
        assert state.course.engine.ending() == at.state.ending()


@pytest.mark.parametrize("bots", [["Medium", "Scared"], ["Simple", "Medium"], ["Sapper", "Sapper"]])
def test_openspiel_tells_the_events_of_defuse(bots: list[str]) -> None:
    for deal in range(12):
        at, state = table("defuse", bots, deal), new("dubito_defuse")
        for hand in at.state.hands:
            ordered(state, [card for card, n in hand.items() for _ in range(n - (card == DEFUSE))])
        ordered(state, at.state.pile[::-1])
        observed = EventTracker(state)
        assert observed.new() == [event for event in at.state.start if not event.silent]
        while not at.state.over:
            output, events = step(at, announce=True)
            state.apply_action(PLACES + output if isinstance(output, int) else ACTS.index(output))
            ordered(state, at.state.pile[::-1])
            assert observed.new() == list(events)
        assert state.is_terminal()
        assert state.course.engine.ending() == at.state.ending()


def ordered(state: Any, cards: Sequence[str]) -> None:
    remaining: Iterator[str] = iter(cards)
    while state.is_chance_node() and (card := next(remaining, None)):
        state.apply_action(CARDS.index(card))
