"""The built-in model server's policies for Dubito: `house-honest` and `house-sharp`.

They read the facts between the two markers of `prompts/shared/facts.jinja`, and raise LookupError, ValueError or
ArithmeticError if facts are missing or malformed.
"""

from collections.abc import Mapping
from math import exp
from random import Random
from typing import Any, Final

from dubito.errors import number_word, pluralize
from dubito.game import ODDS, REASON, STATED, WINS, HousePolicy
from dubito.game.words import parse_facts

_RATES: Final = ("{}_doubt_rate", "{}_bluff_rate")
_LISTS: Final = {"prev": ("{}", "{}_cards", *_RATES), "next": ("{}", "{}_cards", *_RATES), "table": _RATES}


def _house_honest(text: str, chance: Random) -> dict[str, Any]:
    return {"answer": honest(read_facts(text)), REASON: "I tell the truth wherever I can."}


def _house_sharp(text: str, chance: Random) -> dict[str, Any]:
    values = read_facts(text)
    answer = sharp(values)
    stated = {STATED: stated_chance(values), WINS: chance_to_win(values)}
    return {"answer": answer, REASON: reason(values, answer), ODDS: odds(values)} | stated


MODELS: Final[Mapping[str, HousePolicy]] = {"house-honest": _house_honest, "house-sharp": _house_sharp}


def read_facts(prompt_text: str) -> dict[str, str]:
    """Return the last block of facts in the text, by name. Empty if the text has none."""
    values = parse_facts(prompt_text)
    for who, names in _LISTS.items():  # these lines contain several facts
        if who in values:
            values |= zip((name.format(who) for name in names), values.pop(who).split(), strict=False)
    return values


def honest(values: Mapping[str, str]) -> bool:
    """Never bluff voluntarily, and only doubt if forced to bluff or if prev is about to win."""
    match values["node"]:
        case "A" | "D":
            return False
        case "B" | "E":
            return True
        case "C":
            return values["held_of_number"] == "0" or values["prev_about_to_win"] == "yes"
        case node:
            raise ValueError(f"unknown node {node}")


def sharp(values: Mapping[str, str]) -> bool:
    """Compare the expected values of a doubt, an honest play and a bluff, measured in cards.

    Raises KeyError or ValueError if a fact is missing or malformed.
    """
    return _advantage_of_yes(values) > 0


def odds(values: Mapping[str, str]) -> dict[bool, float]:
    """Return the probability of each answer, a logistic function of the difference in cards.

    Raises the same errors as `sharp`, which returns the more probable answer.
    """
    yes = 1 / (1 + exp(-_advantage_of_yes(values)))
    return {True: yes, False: 1 - yes}


def _advantage_of_yes(values: Mapping[str, str]) -> float:
    """Return how many cards better yes is than no. Infinite if one of them is certainly better."""
    node, own = values["node"], int(values["own_cards"])
    if own <= _MAX_PLAY and values["win_rule"] == "immediate":
        # The player can play all its cards at once, and a last play cannot be doubted.
        return -_CERTAIN if node == "C" else _CERTAIN
    match node:
        case "A":
            return -_CERTAIN
        case "B" | "E":
            return _CERTAIN
        case "C":
            return _value_of_doubt(values) - max(_value_of_honest_play(values), _value_of_bluff(values))
        case "D":
            return _value_of_bluff(values) - _value_of_honest_play(values)
        case _:
            raise ValueError(f"unknown node {node}")


def stated_chance(values: Mapping[str, str]) -> float | None:
    """Return `house-sharp`'s probability that the last play is a bluff, or None without facts or outside C."""
    try:
        if values["node"] != "C":
            return None
        return 1.0 if values["sure_bluff"] == "yes" else round(_chance_of_bluff(values), 3)
    except (LookupError, ValueError, ArithmeticError):
        return None  # the answer itself is still good


def chance_to_win(values: Mapping[str, str]) -> float | None:
    """Return `house-sharp`'s probability to win, by its and its neighbours' numbers of cards, or None without facts."""
    try:
        own, *others = (1 / (1 + int(values[name])) for name in ("own_cards", "prev_cards", "next_cards"))
        return round(own / (own + sum(others)), 3)
    except (LookupError, ValueError, ArithmeticError):
        return None  # the answer itself is still good


def reason(values: Mapping[str, str], answer: bool) -> str | None:
    """Return the reason for `house-sharp`'s answer, or None if the facts are missing."""
    try:
        node = values["node"]
        if int(values["own_cards"]) <= _MAX_PLAY and values["win_rule"] == "immediate":
            return "I can play all my cards at once, and nobody can doubt the last ones."
        if node == "C":
            return _reason_to_doubt(values, answer)
        if node == "A":
            return "I open and choose the number, so I do not need to bluff."
        if node == "D":
            held, rate = _cards_of_number(values), _rate(values["next_doubt_rate"], values["table_doubt_rate"])
            view = f"I hold {held}, and the next player doubts about {100 * rate:.0f} % of the time"
            return f"{view}: a bluff gets rid of more cards." if answer else f"{view}: I play them honestly."
        return "The more cards I play, the sooner I am out."
    except (LookupError, ValueError, ArithmeticError):
        return None  # the answer itself is still good


def _reason_to_doubt(values: Mapping[str, str], answer: bool) -> str:
    if values["sure_bluff"] == "yes":
        return f"I know where too many {values['number']}s are, so these cannot be {values['last_play']} more."
    if values["prev_about_to_win"] == "yes":
        return "The last play wins the game unless somebody doubts it."
    share = _chance_of_bluff(values)
    chance = f"I hold {_cards_of_number(values)}, and think a bluff is {100 * share:.0f} % likely"
    if answer:
        return f"{chance}: I doubt it."
    if share > 1 / 2:
        return f"{chance}, but playing my own cards is worth more."
    return f"{chance}: not enough to risk picking up {pluralize(int(values['board_cards']))}."


def _cards_of_number(values: Mapping[str, str]) -> str:
    held = int(values["held_of_number"])
    return f"{number_word(held)} {values['number']}{'s' * (held != 1)}"


_MAX_PLAY: Final = 3  # cards
_CERTAIN: Final = float("inf")
_UNKNOWN: Final = 0.5
_PRIOR_WEIGHT: Final = 2.0  # weight of the table's rate, as a number of doubts
_SIZE_ODDS: Final = {1: 0.4, 2: 0.9, 3: 2.0}  # odds of a bluff by the number of cards
_OPENER_ODDS: Final = 0.35  # the opener chose the number
# Whether there are more than enough cards of the number, exactly enough, or too few without jokers.
_SCARCE_ODDS: Final = (1.0, 1.5, 4.0)
_FREE_TURN: Final = 2.5  # cards played in the free turn after a caught bluff
_PICK_UP: Final = 0.6  # cost of a picked-up card; less than 1 because some cards soon leave as a set
_THREAT: Final = 3.0  # value of stopping a player who could win on their next turn


def _value_of_doubt(values: Mapping[str, str]) -> float:
    if values["sure_bluff"] == "yes" or values["prev_about_to_win"] == "yes":
        return float("inf")
    p = _chance_of_bluff(values)
    gain = _FREE_TURN + (_THREAT if int(values["prev_cards"]) <= _MAX_PLAY else 0.0)
    return p * gain - (1 - p) * _PICK_UP * int(values["board_cards"])


def _value_of_honest_play(values: Mapping[str, str]) -> float:
    held = min(_MAX_PLAY, int(values["held_of_number"]))
    return float(held) if held else float("-inf")


def _value_of_bluff(values: Mapping[str, str]) -> float:
    cards = min(_MAX_PLAY, int(values["own_cards"]))
    caught = _rate(values["next_doubt_rate"], values["table_doubt_rate"])
    return (1 - caught) * cards - caught * _PICK_UP * int(values["board_cards"])


def _chance_of_bluff(values: Mapping[str, str]) -> float:
    """Estimate the probability from the player's record, the play's size and the remaining cards of the number."""
    size = int(values["last_play"])
    record = values[f"seat {values['last_player']}"].split()[2]
    honest, _, doubted = record.partition("/")
    usual = _rate(values["table_bluff_rate"])
    bluffs = int(doubted) - int(honest)
    p = (bluffs + _PRIOR_WEIGHT * usual) / (int(doubted) + _PRIOR_WEIGHT)
    spare = 4 - int(values["number_elsewhere"]) - size
    odds = p / (1 - p) if p < 1 else 1e3
    odds *= _SIZE_ODDS[size] * _SCARCE_ODDS[0 if spare > 0 else 1 if spare == 0 else 2]
    if values["prev_chose_number"] == "yes":
        odds *= _OPENER_ODDS
    return odds / (1 + odds)


def _rate(*texts: str) -> float:
    known = next((float(text) for text in texts if text != "unknown"), _UNKNOWN)
    return min(max(known, 0.05), 0.95)
