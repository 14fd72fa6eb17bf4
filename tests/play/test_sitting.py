"""A person's seat with `step`: only allowed moves change the game."""

from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest

from dubito.errors import IllegalOutput, UsageError
from dubito.game import LieMark
from dubito.game.find import Registry, find_bots
from dubito.game.reader import Reader, table_reader
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, play_game
from dubito.game.words import person_sentences
from dubito.games.bs.game import GAME as BS
from dubito.games.dubito.cards import TurnOutput
from dubito.games.dubito.engine import Rules, deal_table
from dubito.games.dubito.events import CardList, CardsPlayedEvent, DoubtResolvedEvent
from dubito.games.dubito.game import GAME
from dubito.games.dubito.sentences import ending
from dubito.show.lie_review import LieReview
from dubito.show.opponents import Opponents, as_sentence
from dubito.show.person import GUEST, Guest, Setup, seat_person, set_up
from tests.conftest import in_gate
from tests.web.kit import guests_of

BOTS = ["ClaudeBot", "StefaBot", "MrDoubt"]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return find_bots(Path("/nowhere"))


@pytest.fixture(scope="module")
def guests(registry: Registry) -> Opponents:
    return guests_of(registry)


def test_person_with_a_bots_moves_gets_the_bots_game(registry: Registry, guests: Opponents) -> None:
    """The other bots use the same streams and turn data as in any game."""
    for seed in range(5):
        setup = set_up(GAME, BOTS, GAME.rules(win_rule="contested"), 1, seed, deal=3)
        entrants = [Entrant(name, registry.find(name).cls) for name in ["ClaudeBot", "UsualBot", "StefaBot", "MrDoubt"]]
        among = play_game(deal_table(entrants, Rules(**setup.rules), DealStreams(seed, 3), deal=3))
        shadow = deal_table(entrants, Rules(**setup.rules), DealStreams(seed, 3), deal=3)
        sitting = seat_person(guests, setup, 0)
        while not sitting.state.over:
            given = None
            if sitting.is_asked:
                player = shadow.players[1]
                assert player is not None
                given = player.play(cast(Any, sitting.state).view())
            moment, _ = sitting.step(given)
            shadow.state.apply(moment.output)
            shadow.send_events(moment.events, shadow.state.turns_played)
        assert (cast(Any, sitting.state).places, cast(Any, sitting.state).turns) == (among.places, among.turns)


def test_forbidden_move_changes_nothing(guests: Opponents) -> None:
    sitting = seat_person(guests, set_up(GAME, BOTS, GAME.rules(), 0, 1), 0)
    before = deepcopy(cast(Any, sitting.state).hands[0].cards)
    card = before[0]
    for output in (None, TurnOutput(True), TurnOutput(False, 99, [card]), TurnOutput(False, 1, [card] * 4)):
        with pytest.raises(IllegalOutput):
            sitting.step(output)
    assert cast(Any, sitting.state).hands[0].cards == before
    assert (sitting.state.turns_played, sitting.outputs, sitting.errors) == (0, [], [])
    sitting.step(TurnOutput(False, 1, [card]))
    with pytest.raises(IllegalOutput, match="it is not your turn"):
        sitting.step(TurnOutput(True))
    assert sitting.state.turns_played == 1


def test_seed_determines_the_persons_seat() -> None:
    seats = [set_up(GAME, BOTS, GAME.rules(), None, seed).seat for seed in range(60)]
    assert set(seats) == {0, 1, 2, 3}
    assert seats == [set_up(GAME, BOTS, GAME.rules(), None, seed).seat for seed in range(60)]
    assert set_up(GAME, BOTS, GAME.rules(), None, None).seed != set_up(GAME, BOTS, GAME.rules(), None, None).seed
    assert set_up(GAME, BOTS, GAME.rules(), 2, 1).players == ["ClaudeBot", "StefaBot", GUEST, "MrDoubt"]


def test_unknown_player_is_refused(guests: Opponents) -> None:
    for name, hint in (("OpenAIBot", "choose from Adapty"), ("ClaudBot", "did you mean 'ClaudeBot'")):
        with pytest.raises(UsageError, match=f"unknown player '{name}'; {hint}"):
            seat_person(guests, set_up(GAME, ["MrDoubt", name], GAME.rules(), 0, 1), 0)


def test_a_reason_is_a_sentence() -> None:
    assert as_sentence("nobody is here") == "Nobody is here."
    assert as_sentence("http://127.0.0.1/v1 says no. Why?") == "http://127.0.0.1/v1 says no. Why?"


def test_only_the_person_has_that_name_in_the_record() -> None:
    with pytest.raises(UsageError, match="the name Guest is reserved"):
        set_up(GAME, [GUEST, "MrDoubt"], GAME.rules(), 0, 1)


def test_person_is_addressed_directly() -> None:
    reader = table_reader(["You", GUEST, "You", "A puts\0"], 1)
    assert reader.names(4) == ["You 0", "you", "You 2", "A puts\\x00"]
    assert [table_reader(["you", GUEST, "Me"], me).name(0) for me in (1, None)] == ["you 0", "you"]
    assert person_sentences(GAME.words, [CardsPlayedEvent(1, 7, 2)], reader) == ["You play 2 cards as 7s."]
    assert person_sentences(GAME.words, [CardsPlayedEvent(0, 7, 2)], reader) == ["You 0 plays 2 cards as 7s."]
    mine = DoubtResolvedEvent(1, 3, False, CardList([7, 0]), CardList([7, 8]), 7, 1)
    assert person_sentences(GAME.words, [mine], reader) == [
        "You doubt A puts\\x00, who shows 7 joker: honest. 1 joker leaves the game. You pick up 2 cards."
    ]
    caught = DoubtResolvedEvent(3, 1, True, CardList([8]), CardList([8]), 7, 0)
    assert person_sentences(GAME.words, [caught], reader) == [
        "A puts\\x00 doubts you, and you show 8: a bluff. You pick up 1 card."
    ]


def test_person_sees_the_end(guests: Opponents) -> None:
    sitting = seat_person(guests, set_up(GAME, ["MrNoDoubt", "MrNoDoubt"], GAME.rules(max_turns=1), 0, 1), 0)
    _, words = sitting.step(TurnOutput(False, 1, cast(Any, sitting.state).hands[0].cards[:1]))
    assert words[-1] == "The game stops after 1 turns, unfinished for you and MrNoDoubt 1 and MrNoDoubt 2."
    assert words[-1] == ending(cast(Any, sitting.state), sitting.reader)
    assert isinstance(sitting._table.players[0], Guest)


def test_private_events_of_other_seats_are_hidden() -> None:
    class Peeked(CardsPlayedEvent):
        only = 2

    event = Peeked(2, 7, 1)
    assert person_sentences(GAME.words, [event], table_reader(["A", GUEST, "B"], 1)) == []
    assert person_sentences(GAME.words, [event], table_reader(["A", "B", GUEST], 2)) == ["You play 1 card as 7s."]


@pytest.mark.parametrize(
    ("seed", "seat", "every"), in_gate([(5, 2, 3), (5, 2, 10**9), (1, 0, 1), (8, 3, 2)], {(5, 2, 3), (1, 0, 1)})
)
def test_the_end_panel_of_bs_counts_every_play_the_person_judged(seed: int, seat: int, every: int) -> None:
    """Plays of all three opponents count, even if another accuser was drawn."""
    sitting = seat_person(guests_of(find_bots(Path("/nowhere"), "bs")), _bs(seed, seat), 0)
    faced, right, calls, lies, asked = 0, 0, 0, 0, 0
    while not sitting.state.over:
        state: Any = sitting.state
        given: Any = None
        if sitting.is_asked and state.public.node == "bs":
            asked += 1
            given = asked % every == 0
            faced += bool(state.lie)
            calls += given
            right += given and bool(state.lie)
        elif sitting.is_asked:
            number, hand = state.public.number, state.hands[seat].cards
            given = [card for card in hand if card.number == number] or hand[:1]
            lies += given[0].number != number
        sitting.step(given)
    assert faced >= 5
    review = sitting.review_lies()
    assert (review.caught, review.faced, review.calls, review.lies) == (right, faced, calls, lies)
    figures = [figure for _, figure, _ in review.figures("lie", "accusation")]
    assert figures == [f"{right} of {faced}", f"{lies}", f"{calls - right}"]


def test_review_names_best_and_worst_decision() -> None:
    review = LieReview(Reader("Bot{}".format, 0))
    right, wrong = LieMark(3, of=1, is_lie=True, called=True), LieMark(4, of=3, called=True)
    assert review.figures("lie", "accusation") == []
    for turn, lie_mark in enumerate([right, right._replace(pile=9, of=2), wrong], 1):
        review.note_reaction(lie_mark, turn, 0, "lie")
    review.note_caller(LieMark(2, of=0, is_lie=True, called=True), 7, 1, "lie")
    assert review.best == (9, 2, "You caught Bot2's lie, with 9 cards on the pile.")
    assert review.worst == (4, 3, "You did not believe Bot3, who was honest, with 4 cards on the pile.")
    review.note_caller(LieMark(5, of=0, is_lie=True, called=True), 8, 1, "lie")
    assert review.worst == (5, 8, "Bot1 caught you in a lie, with 5 cards on the pile.")
    assert [note for *_, note in review.figures("lie", "accusation")] == ["that you could call", "2 caught", "of 3"]


def _bs(seed: int, seat: int) -> Setup:
    return set_up(BS, ["Player1", "ConMan", "CalculatingLiar"], BS.rules(max_rounds=30), seat, seed)
