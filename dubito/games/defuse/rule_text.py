"""The rules of draw and defuse in sentences, complete: people at the table read them, and prompts say them."""

from typing import Final

from dubito.games.defuse.cards import ALL_CARDS, BOMB, DEALT, DEFUSE, IN_HAND, SHOWN, SPARE

OBJECTIVE: Final = "Do not draw the bomb without a defuse card: whoever does loses, and the other one wins."
_PILE: Final = sum(ALL_CARDS.values()) - 2 * (IN_HAND + 1)


def rule_sentences() -> list[str]:
    """The rules of a game, a paragraph each."""
    dealt = ", ".join(f"{n} {card}" for card, n in DEALT.items())
    return [
        f"Two players sit in seats 0 and 1, and seat 0 begins. {sum(DEALT.values())} cards ({dealt}) are shuffled and "
        f"each player is dealt {IN_HAND} of them, and one {DEFUSE} card besides. Then {SPARE} more {DEFUSE} cards and "
        f"the one {BOMB} are put to the rest, which is shuffled: the pile, {_PILE} cards, face down.",
        "Players take turns. In a turn a player may first play see and shuffle cards, as many as it holds, and then "
        "ends the turn in one of three ways: it draws the top card of the pile, it plays a skip card and draws "
        "nothing, or it plays a bottom card and draws the card at the bottom of the pile.",
        f"A see card shows the top {SHOWN} cards of the pile, or all if there are fewer, to whoever plays it, and to "
        "nobody else; everybody sees that it was played. A shuffle card shuffles the pile. A nothing card cannot be "
        "played. Cards that were played lie open.",
        "A drawn card goes into the hand, unseen by the other player, unless it is the bomb, which both see. Whoever "
        f"draws the bomb and holds a {DEFUSE} card plays it at once and puts the bomb back into the pile, at any "
        "place, unseen by the other: place 0 is the top, so that it is drawn next; with n cards in the pile, place n "
        "is the bottom. The order of the other cards does not change, and the turn is over.",
        f"Whoever draws the bomb without a {DEFUSE} card loses, and the other player wins.",
    ]
