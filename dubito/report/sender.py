"""Texts for a shared game: a headline, a line to copy, and an invitation to play the deal."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from dubito.errors import DubitoError, join_names
from dubito.game import Game
from dubito.game.reader import table_reader
from dubito.game.record import GameRecord, Records
from dubito.report.highlights import opening
from dubito.report.own_words import model_moment
from dubito.report.render import embed_json
from dubito.report.tables import GamePage
from dubito.show.lie_review import review_lies
from dubito.show.person import Setup
from dubito.show.story import page_title

_RUNNING_TABLE = "http://127.0.0.1:8765/"  # the default address of `dubito web`


@dataclass(frozen=True, slots=True)
class Sender:
    """Texts about the person who shares a game, or about the game if no person played in it."""

    title: str
    moment: str  # the best moment as a sentence, or an empty text
    opens: int  # the turn to open at
    line: str  # to copy
    quote: Mapping[str, Any] | None = None  # a model's words: text, seat, turn and link


def describe_sender(game: Game, record: GameRecord, story: Mapping[str, Any], person: str) -> Sender:
    """Describe a game to readers from the view of its human player, or the winner if no human played.

    `person` is the human player's name.
    """
    title, me, names = game.words.TITLE, story.get("me"), story["names"]
    opens, why = opening(story)
    if me is None and (model := model_moment(story)):
        return Sender(
            model.title, f"Turn {model.opens} of {len(story['turns'])}.", model.opens, model.title, model.quote
        )
    if me is None:
        headline = page_title(f"A game of {title}", names, story["winners"])
        return Sender(headline, f"It starts at the {why}." if why else "", opens, f"{headline}.")
    state, outputs = Records(game).deal_record(record)
    review = review_lies(game, state, outputs, me, table_reader(record.players, me, person))
    lie = game.results.lie_words[0]
    moment = f"Best moment, turn {review.best.turn}: {review.best.text}" if review.best else ""
    opens = review.best.turn if review.best else opens
    rivals = join_names([*dict.fromkeys(name for seat, name in enumerate(record.players) if seat != me)])
    won = me in story["winners"]
    if review.caught:
        caught = f"caught {review.caught} of {review.faced} {lie}{'s' * (review.faced != 1)}"
        return Sender(
            f"{person} {caught}", moment, opens, f"I {caught} by {rivals} at {title}{' and won' if won else ''}."
        )
    how = f"won at {title}" if won else f"played {title}"
    return Sender(f"{person} {how}", moment, opens, f"I {how} against {rivals}.")


@dataclass(frozen=True, slots=True)
class Invitation:
    """An offer to play the deal of a shared game."""

    command: str
    link: str
    replaced: Sequence[str]  # players that readers do not have and that a hand-written bot replaces
    needs_server: bool  # whether the link leads to a running `dubito web`, or to a site that plays without Python


def invite(
    game: Game, record: GameRecord, kinds: Sequence[str | None], seat: int, play_url: str, own: Set[str]
) -> Invitation | None:
    """Return the invitation to take a seat in the game, or None if its deal is unknown.

    `play_url` is the address of a site that plays without Python, if any. It has `own`, the bots that come with Dubito.
    """
    if record.seed is None or record.change is not None:
        return None
    usual = game.words.BOTS or [game.fallback]
    bots, replaced = [], []
    for place, (name, kind) in enumerate(zip(record.players, kinds, strict=True)):
        if place != seat:
            is_there = kind == "hand-written" and (not play_url or name in own)
            bots.append(name if is_there else usual[place % len(usual)])
            replaced += [] if is_there else [name]
    try:
        setup = Setup(bots, seat, record.seed, record.deal, record.rules, game.name)
        command = setup.replay_command(game, program="dubito")
    except DubitoError:
        return None
    query = {"game": game.name, "bots": " ".join(bots), "seed": setup.seed, "deal": setup.deal, "seat": seat}
    if changed := setup.changed_rules(game):
        query["rules"] = str(embed_json(changed))
    return Invitation(command, f"{play_url or _RUNNING_TABLE}?{urlencode(query)}", replaced, needs_server=not play_url)


@dataclass(frozen=True, slots=True)
class SharedGame:
    """A game's page with its record, from which the recipient can replay it."""

    page: GamePage
    lead: str  # describes the game in a sentence or two
    dealt: str  # its rules and deal
    record: str
    person: str  # the sender's name; empty if no person played
    line: str  # to copy
    invitation: Invitation | None
    left_out: Sequence[str] = ()  # parts left out because the page would be too large
