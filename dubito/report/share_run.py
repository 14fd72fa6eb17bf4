"""A run's game for sharing. It replays the run, which the page of a saved game does not need."""

from dataclasses import replace
from typing import Final

from dubito.errors import UsageError
from dubito.experiment.stored import Run
from dubito.report.games import GameChoice, ShownGames
from dubito.report.highlights import opening
from dubito.report.own_words import model_moment
from dubito.report.sender import SharedGame
from dubito.report.share import SHARE_RUN, build_shared_game, size_message
from dubito.show.odds import odds_or_reason
from dubito.show.run import CannotShowGame, ReplayedGames
from dubito.show.story import ModelDecisions, describe_results

_SEARCHED_GAMES: Final = 60  # for a game to suggest, since each must be replayed
_MAX_MOVES: Final = 20_000  # maximum number of moves in a shared game


def suggest_game(source: Run) -> tuple[int, str]:
    """Return one of a run's first games to share, and its best moment, which is empty if there is none.

    Games with a winner are preferred, then a model's lies and mistakes, then its own words, then the number of cards at
    stake.
    """
    first = source.planned.first_game
    best: tuple[bool, bool, bool, int] = (False, False, False, 0)
    game, event = first, ""
    for number, story in ReplayedGames(source).stories(range(first, first + min(source.tally.games, _SEARCHED_GAMES))):
        model, opens = model_moment(story), opening(story)[0]
        what = model.event if model else story["story"][opens - 1] if opens else ""
        pile = story["turns"][opens - 1].get("scene", {}).get("pile", 0) if opens else 0
        rank = (bool(story["winners"]), bool(model), bool(model and model.quote), model.stake if model else pile)
        if rank > best:
            best, game, event = rank, number, what
    return game, event


def shared_game(source: Run, number: int, play_url: str = "") -> SharedGame:
    """Return a run's game for sharing. Raises UsageError if the game does not exist or cannot be replayed."""
    decisions = ModelDecisions(source.db, source.game)
    shown = ShownGames(source, GameChoice([number], ""), ReplayedGames(source), decisions)
    try:
        record = shown.games.record(number, _MAX_MOVES)
    except CannotShowGame as error:
        raise UsageError(f"game {number} of {source} cannot be shared: {error}") from None
    if record is None:
        raise UsageError(f"{size_message()} (more than {_MAX_MOVES:,} moves)", hint=SHARE_RUN)
    (page,) = shown.pages()
    story = {**page.story, "shared": shown.asked.shared.pieces}
    if story["winners"]:
        story["odds"] = odds_or_reason(source, number)
    about = describe_results(source.game.results, source.outcome_of(number), story["names"], len(story["turns"]))
    shared = build_shared_game(source.game, record, story, about, page.warnings, play_url)
    if source.planned.has_programs:
        shared = replace(shared, dealt=f"{shared.dealt} The seed {source.secrecy_in_words}.".lstrip())
    # A record can only be verified with the seed.
    return shared if source.public_seed is not None else replace(shared, record="")
