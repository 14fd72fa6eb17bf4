"""BS in words: the revealed text agrees with the engine, and public text does not contain hidden cards."""

import re
from random import Random

import pytest

from dubito.game.events import EVERYTHING
from dubito.game.reader import Reader
from dubito.game.words import Line, person_sentences
from dubito.games.bs.game import GAME
from dubito.games.bs.knowledge import BSRules
from dubito.games.bs.words import OBJECTIVE, card_names, rule_paragraphs
from tests.games.bs.kit import deal_game, numbers_in_hand, with_hands

WORDS = GAME.words
SIGNS = ["A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"]
TAKEN = re.compile(r"takes (\d+) card")


def test_narration_includes_hidden_cards() -> None:
    game = with_hands([1, 2, 5], [3, 3], [6], [7, 8])
    teller = WORDS.teller(game, Reader())
    lie = game.hands[0].cards[:2]
    lines = [teller.describe_move(0, lie, game.apply(lie, EVERYTHING))]
    for seat, output in ((1, True), (2, False), (3, False)):
        lines.append(teller.describe_move(seat, output, game.apply(output, EVERYTHING)))
    assert lines == [
        [Line("seat 0 plays 2 cards as aces.", "really 2 3: a lie", ["2 of spades", "3 of spades"])],
        [Line("", "seat 1 says BS")],
        [],
        [
            Line(
                "BS! seat 1 is right: seat 0 lied. seat 0 takes 2 cards; seat 1 begins a new pile with a card.",
                "seat 1 loses 4 to the pile",
            )
        ],
    ]


def test_drawn_accuser_is_named() -> None:
    drawn = set()
    for seed in range(12):
        game = with_hands([0, 5], [1, 1], [2, 2], [3, 3], seed=seed)
        teller = WORDS.teller(game, Reader())
        play = game.hands[0].cards[:1]
        teller.describe_move(0, play, game.apply(play, EVERYTHING))
        for seat in (1, 2, 3):
            lines = teller.describe_move(seat, True, game.apply(True, EVERYTHING))
        (loser,) = [seat for seat in (1, 2, 3) if len(numbers_in_hand(game, seat)) == 3]
        assert lines[-1].sentence == f"BS! seat {loser} is wrong: seat 0 was honest. seat {loser} takes 1 card."
        drawn.add(loser)
    assert drawn == {1, 2, 3}


def test_narrated_sizes_and_truth_match_the_game() -> None:
    for seed in range(10):
        game, chance = deal_game(seed, max_rounds=30), Random(seed)
        teller = WORDS.teller(game, Reader())
        while not game.over:
            seat, hand = game.seat, game.hands[game.seat].cards
            asks = game.view().node == "bs"
            output = chance.random() < 0.2 if asks else chance.sample(hand, chance.randint(1, min(3, len(hand))))
            before = len(game.pile.cards)
            for line in teller.describe_move(seat, output, game.apply(output, EVERYTHING)):
                if text := TAKEN.search(line.sentence):
                    assert int(text[1]) == before
            *hands, pile = teller.panels()
            for seat, panel in enumerate(hands):
                assert (panel.seat, panel.truth) == (
                    seat,
                    " ".join(SIGNS[number] for number in sorted(numbers_in_hand(game, seat))) or "nothing",
                )
                held = len(numbers_in_hand(game, seat))
                assert (panel.public.split()[0], panel.backs) == (str(held or "no"), held)
                assert [WORDS.FACES[name].sign for name in panel.cards] == [
                    card for card in panel.truth.split() if card != "nothing"
                ]
            assert pile.public.startswith(f"{len(game.pile.cards)} card" if game.pile.cards else "Empty.")
            laid = [card for play in pile.plays for card in play.cards]
            assert sorted(laid) == sorted(card_names(game.pile.cards))
        assert (game.winner is not None) == teller.ending()[0].endswith(" wins.")


def test_person_is_addressed_as_you() -> None:
    game = with_hands([0], [1, 4], [2], [3])
    reader = Reader("Bot{}".format, 0)
    assert WORDS.sentence(game.start[0], reader) == (
        "The cards are dealt: you hold 1, Bot1 holds 2, Bot2 holds 1, Bot3 holds 1."
    )
    assert WORDS.describe_view(game, 0, reader) == [
        "Cards held: you 1, Bot1 2, Bot2 1, Bot3 1. On the pile: 0.",
        "Your hand: A",
        "Your turn: play cards as aces.",
    ]
    events = [*game.apply(game.hands[0].cards[:1], EVERYTHING)]
    assert WORDS.describe_view(game, 1, Reader("Bot{}".format, 1))[-1] == "Bot0 played 1 card as aces. Do you say BS?"
    assert WORDS.playable_cards(game, 1) == [1, 4]
    for _ in range(3):
        events += game.apply(False, EVERYTHING)
    assert [line for event in events if event.only is None and (line := WORDS.sentence(event, reader))] == [
        "You play 1 card as aces.",
        "Nobody says BS.",
        "Round 1 is over.",
        "You have no cards left and win.",
    ]
    assert WORDS.teller(game, reader).ending()[0] == "The game is over: you win."


def test_game_without_a_winner_states_the_reason() -> None:
    game = with_hands([1], [1], [2], [2], max_rounds=1)
    game.forfeit(2)
    assert WORDS.teller(game, Reader()).ending()[0] == "The game is over because of a mistake by seat 2; nobody wins."
    game = with_hands([1, 1, 1], [2, 2], [3, 3], [4, 4], max_rounds=1)
    while not game.over:
        game.apply(game.hands[game.seat].cards[:1] if game.view().node == "cards" else False)
    assert WORDS.teller(game, Reader()).ending()[0] == "The game stops after 1 round; nobody wins."


def test_rules_text_states_the_games_cap() -> None:
    assert rule_paragraphs(BSRules(max_rounds=7))[-1] == (
        "If nobody has won after 7 rounds, the game is over and nobody wins."
    )
    spoken = WORDS.rules(BSRules(), 4)
    assert spoken[0] == OBJECTIVE
    assert spoken[-1] == rule_paragraphs(BSRules())[-1]
    assert "the ranks A, 2 to 10, J, Q and K, 4 of each" in spoken[1]
    assert "number" not in " ".join(spoken[1:4])
    assert WORDS.summarize_rules(BSRules()) == "At most 1,000 rounds"


@pytest.mark.parametrize(
    ("accuser", "hands", "message"),
    [
        (None, [[0, 5], [1], [2], [3]], "Nobody says BS."),
        (
            1,
            [[1, 5], [1, 4], [2], [3]],
            "BS! You are right: Bot0 lied. Bot0 takes 1 card; you begin a new pile with a card.",
        ),
        (1, [[0, 5], [1, 4], [2], [3]], "BS! You are wrong: Bot0 was honest. You take 1 card."),
        (
            2,
            [[1, 5], [1, 4], [2, 2], [3]],
            "BS! Bot2 is right: Bot0 lied. Bot0 takes 1 card; Bot2 begins a new pile with a card.",
        ),
    ],
)
def test_person_reads_what_an_accusation_led_to(accuser: int | None, hands: list[list[int]], message: str) -> None:
    game = with_hands(*hands)
    events = [*game.apply(game.hands[0].cards[:1], EVERYTHING)]
    for seat in (1, 2, 3):
        events += game.apply(seat == accuser, EVERYTHING)
    sentences = person_sentences(WORDS, events, Reader("Bot{}".format, 1))
    assert sentences[1] == message
