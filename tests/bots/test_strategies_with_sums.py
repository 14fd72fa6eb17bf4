"""RiskCounter, AdaptyBoi and ClaudeBot match the table in RULES.md, "The bots of the source documents"."""

from random import Random

import pytest

from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import PlayerData
from tests.bots.kit import (
    HIGHEST_DRAW,
    NUMBER,
    REGISTRY,
    Scripted,
    answer,
    chance,
    in_seat,
    neighbour,
    opening,
    regular,
)

HOLDING = (NUMBER, 1, 2, 3, 4)
LACKING = (0, 0, 1, 2, 3)  # jokers do not count as the number (R22)
FOUND_BY_BISECTION = 1e-9


def bot(name: str, hand: tuple[int, ...]) -> PlayerAI:
    return in_seat(REGISTRY.bots[name].cls, hand)


def near(value: float) -> object:
    return pytest.approx(value, abs=FOUND_BY_BISECTION)


# -- RiskCounter: opening risk 1 - next.n_cards²/30 or 1 if all own cards are equal; regular risk board²/40


@pytest.mark.parametrize(
    ("next_cards", "risk"),
    [(0, 0.99), (1, 29 / 30), (2, 26 / 30), (4, 14 / 30), (5, 5 / 30), (6, 0), (20, 0)],
)
def test_risk_counter_opens_by_the_next_hand(next_cards: int, risk: float) -> None:
    p = opening(HOLDING, prev=neighbour(0, 3), next=neighbour(2, next_cards))
    player = bot("RiskCounter", HOLDING)
    assert chance(player, "A", p) == near(risk)


@pytest.mark.parametrize("hand", [(5,), (5, 5), (5, 5, 5), (0, 0)])
@pytest.mark.parametrize("next_cards", [1, 6, 20])
def test_risk_counter_with_all_cards_equal_opens_at_the_highest_risk(hand: tuple[int, ...], next_cards: int) -> None:
    p = opening(hand, next=neighbour(2, next_cards))
    player = bot("RiskCounter", hand)
    assert chance(player, "A", p) == near(0.99)


BOARDS = [(1, 1 / 40), (2, 4 / 40), (4, 16 / 40), (5, 25 / 40), (6, 36 / 40), (7, 0.99), (30, 0.99)]


@pytest.mark.parametrize(("board", "risk"), BOARDS)
def test_risk_counter_bluffs_by_the_board(board: int, risk: float) -> None:
    player = bot("RiskCounter", HOLDING)
    p = regular(HOLDING, older=board - 1)
    assert chance(player, "D", p) == near(risk)


@pytest.mark.parametrize(("board", "risk"), BOARDS)
def test_risk_counter_doubts_only_without_the_number(board: int, risk: float) -> None:
    holding, lacking = bot("RiskCounter", HOLDING), bot("RiskCounter", LACKING)
    assert chance(holding, "C", regular(HOLDING, older=board - 1)) == 0
    assert chance(lacking, "C", regular(LACKING, older=board - 1)) == near(1 - risk)


@pytest.mark.parametrize("hand", [HOLDING, LACKING])
def test_risk_counter_always_doubts_a_player_without_cards(hand: tuple[int, ...]) -> None:
    p = regular(hand, older=30, prev=neighbour(0, 0))
    player = bot("RiskCounter", hand)
    assert chance(player, "C", p) == 1


# -- AdaptyBoi: h is prev's honest share, d is next's doubts per turn on which it could


def estimates(player: PlayerAI) -> tuple[float, float]:
    """Return (h, d), inferred from the bot's behaviour: D bluffs with probability 1 - d, C doubts with 1 - h."""
    at_once = chance(player, "C", regular(HOLDING))
    bluff = chance(player, "D", regular(HOLDING))
    assert chance(player, "A", opening(HOLDING)) == near(bluff)
    return 1 - at_once, 1 - bluff


def after_turns(*turns: tuple[PlayerData, PlayerData], opens: bool = False) -> PlayerAI:
    """Return an AdaptyBoi that has played these turns between these neighbours (prev, next)."""
    player = in_seat(REGISTRY.bots["AdaptyBoi"].cls, HOLDING, framework=Random(1))
    player.rng = Random(1)
    for before, after in turns:
        player.play((opening if opens else regular)(HOLDING, prev=before, next=after))
    return player


def data(honest: int, dishonest: int, doubts: int, not_first_turns: int) -> tuple[PlayerData, PlayerData]:
    """Return data that differ only in what AdaptyBoi uses: prev's doubted plays and next's doubts."""
    return (
        neighbour(0, honest=honest, dishonest=dishonest, doubts=3, not_first_turns=4),
        neighbour(2, honest=5, dishonest=3, doubts=doubts, not_first_turns=not_first_turns),
    )


def test_adapty_boi_starts_at_one_half() -> None:
    assert estimates(after_turns()) == (near(0.5), near(0.5))
    assert estimates(after_turns((neighbour(0), neighbour(2)))) == (near(0.5), near(0.5))


@pytest.mark.parametrize("opens", [False, True])
def test_adapty_boi_estimates_at_the_start_of_every_own_turn(opens: bool) -> None:
    assert estimates(after_turns(data(3, 1, 1, 5), opens=opens)) == (near(0.75), near(0.2))
    assert estimates(after_turns(data(3, 1, 1, 5), data(4, 6, 3, 5), opens=opens)) == (near(0.4), near(0.6))


def test_adapty_boi_estimates_include_the_latest_turn() -> None:
    """On its first turn, AdaptyBoi already knows that prev was always honest, and does not doubt."""
    player = in_seat(REGISTRY.bots["AdaptyBoi"].cls, HOLDING, framework=Random(1))
    before, after = data(9, 1, 1, 10)
    player.rng = Scripted(0.2, 0.99, 0.95)  # above 1 - .9: no doubt; it is not forced; above 1 - .1: no bluff
    output = player.play(regular(HOLDING, prev=before, next=after))
    assert (output.doubt, output.cards) == (False, [NUMBER])


def test_adapty_boi_keeps_each_estimate_while_that_neighbour_has_no_data() -> None:
    known = data(3, 1, 1, 5)
    assert estimates(after_turns(known, data(0, 0, 0, 0))) == (near(0.75), near(0.2))
    assert estimates(after_turns(known, data(0, 0, 3, 5))) == (near(0.75), near(0.6))
    assert estimates(after_turns(known, data(1, 1, 0, 0))) == (near(0.5), near(0.2))


def test_adapty_boi_clips_both_estimates() -> None:
    assert estimates(after_turns(data(0, 7, 0, 7))) == (near(0.05), near(0.05))
    assert estimates(after_turns(data(7, 0, 7, 7))) == (near(0.95), near(0.95))
    assert estimates(after_turns(data(90, 10, 10, 100))) == (near(0.9), near(0.1))


@pytest.mark.parametrize(
    ("hand", "neighbours", "expected"),
    [
        (LACKING, data(2, 3, 3, 5), 0.6),  # h .4 <= d .6: doubts with probability d
        (LACKING, data(1, 1, 1, 2), 0.5),  # h = d
        (LACKING, data(3, 2, 2, 5), 0.0),  # h .6 > d .4
        (HOLDING, data(2, 3, 3, 5), 0.0),  # it can play truthfully
    ],
)
def test_adapty_boi_weighs_a_forced_bluff_with_an_independent_draw(
    hand: tuple[int, ...], neighbours: tuple[PlayerData, PlayerData], expected: float
) -> None:
    player = in_seat(REGISTRY.bots["AdaptyBoi"].cls, hand, framework=Random(1))
    player.rng = Random(1)
    player.play(regular(hand, prev=neighbours[0], next=neighbours[1]))
    found = chance(player, "C", regular(hand), HIGHEST_DRAW)
    assert found == near(expected)


# -- ClaudeBot: suspicion = ½ dishonest share of prev + ½ card term, against a threshold by its own cards


def hand_of(size: int, *, holds: bool) -> tuple[int, ...]:
    others = [number for number in range(1, 14) if number != NUMBER] * 2
    return tuple([NUMBER] * holds + others)[:size]


def tipping_share(size: int, played: int, *, opened: bool = False, holds: bool = True) -> int | None:
    """Return the lowest dishonest share of prev, in thousandths, at which ClaudeBot doubts."""
    hand = hand_of(size, holds=holds)
    player = bot("ClaudeBot", hand)
    doubting = [
        thousandths
        for thousandths in range(1001)
        if answer(
            player,
            "C",
            regular(
                hand,
                played=played,
                older=0 if opened else 4,
                prev=neighbour(0, honest=1000 - thousandths, dishonest=thousandths),
            ),
        )
    ]
    assert doubting == list(range(1001 - len(doubting), 1001)), "more suspicion must not make it doubt less"
    return doubting[0] if doubting else None


@pytest.mark.parametrize(
    ("size", "one", "two", "three"),
    [  # twice the threshold (.75, .50, .30) minus the card term .05, .30, .65
        (1, None, None, 850),
        (4, None, None, 850),
        (5, 950, 700, 350),
        (17, 950, 700, 350),
        (18, 550, 300, 0),
        (25, 550, 300, 0),
    ],
)
def test_claude_bot_doubts_at_its_thresholds(size: int, one: int | None, two: int | None, three: int | None) -> None:
    assert [tipping_share(size, played) for played in (1, 2, 3)] == [one, two, three]


@pytest.mark.parametrize(
    ("size", "one", "two", "three"),
    [  # thresholds reduced by .15: .60, .35, .15
        (4, None, 900, 550),
        (5, 650, 400, 50),
        (17, 650, 400, 50),
        (18, 250, 0, 0),
    ],
)
def test_claude_bot_doubts_sooner_without_the_number(
    size: int, one: int | None, two: int | None, three: int | None
) -> None:
    assert [tipping_share(size, played, holds=False) for played in (1, 2, 3)] == [one, two, three]


@pytest.mark.parametrize(
    ("size", "one", "two", "three"),
    [  # card terms times .4: .02, .12, .26
        (4, None, None, None),
        (5, 980, 880, 740),
        (18, 580, 480, 340),
    ],
)
def test_claude_bot_trusts_an_opener_more(size: int, one: int | None, two: int | None, three: int | None) -> None:
    assert [tipping_share(size, played, opened=True) for played in (1, 2, 3)] == [one, two, three]


@pytest.mark.parametrize(
    ("size", "played", "opened", "holds", "expected"),
    [
        (5, 3, False, True, True),  # .25 + .325 against .50
        (5, 2, False, True, False),  # .25 + .150
        (5, 2, False, False, True),  # ... against .35
        (5, 1, False, False, False),  # .25 + .025
        (5, 3, True, False, True),  # .25 + .130
        (5, 2, True, False, False),  # .25 + .060
        (18, 1, False, True, False),  # .25 + .025 against .30
        (18, 2, False, True, True),
        (4, 3, False, True, False),  # .575 against .75
        (4, 3, False, False, False),  # ... against .60
    ],
)
def test_claude_bot_assumes_half_for_an_unknown_neighbour(
    size: int, played: int, opened: bool, holds: bool, expected: bool
) -> None:
    hand = hand_of(size, holds=holds)
    p = regular(hand, played=played, older=0 if opened else 4)
    assert answer(bot("ClaudeBot", hand), "C", p) is expected


@pytest.mark.parametrize("opened", [True, False])
def test_claude_bot_always_doubts_a_player_without_cards(opened: bool) -> None:
    hand = hand_of(2, holds=True)
    p = regular(hand, older=0 if opened else 4, prev=neighbour(0, 0, honest=9))
    assert answer(bot("ClaudeBot", hand), "C", p) is True


@pytest.mark.parametrize(
    ("matching", "doubts", "turns", "expected"),
    [
        (1, 0, 20, True),
        (1, 6, 20, True),
        (2, 6, 20, True),
        (3, 6, 20, False),  # it holds as many matching cards as a bluff would play
        (3, 0, 20, False),
        (1, 7, 20, False),  # .35 is not below .35
        (1, 20, 20, False),
        (1, 0, 0, False),  # unknown counts as .5
    ],
)
def test_claude_bot_bluffs_if_the_neighbour_rarely_doubts(
    matching: int, doubts: int, turns: int, expected: bool
) -> None:
    hand = (NUMBER,) * matching + (1, 2, 3)
    prev = neighbour(0, doubts=10 - doubts // 2, not_first_turns=10)  # irrelevant, since it uses the other neighbour
    p = regular(hand, prev=prev, next=neighbour(2, doubts=doubts, not_first_turns=turns))
    assert answer(bot("ClaudeBot", hand), "D", p) is expected


# -- decisions of these three that do not depend on the situation


@pytest.mark.parametrize("name", ["RiskCounter", "AdaptyBoi", "ClaudeBot"])
@pytest.mark.parametrize("hand", [HOLDING, LACKING])
def test_all_three_answer_yes_to_maximize(name: str, hand: tuple[int, ...]) -> None:
    assert answer(bot(name, hand), "B", opening(hand)) is True
    assert answer(bot(name, hand), "E", regular(hand)) is True


@pytest.mark.parametrize("hand", [HOLDING, LACKING, (5,)])
def test_claude_bot_opens_honestly(hand: tuple[int, ...]) -> None:
    p = opening(hand, next=neighbour(2, doubts=0, not_first_turns=9))
    assert answer(bot("ClaudeBot", hand), "A", p) is False
