"""The games of a run told as they finish. The run is only read."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from dubito.cli.narrator import Narrator
from dubito.cli.output import note
from dubito.cli.voice import voice_for
from dubito.cli.which_run import folder_of
from dubito.errors import DubitoError
from dubito.game.record import Forfeit
from dubito.game.words import labels
from dubito.show.person import Thought
from dubito.show.run import FollowedRun

LOOK: Final = 0.5  # seconds between two looks whether another game is finished


def follow(run: Path | None, wait: Callable[[], None], show_hands: bool) -> None:
    """Tell the last finished game of the run, then each time the newest one, until the run ends or Ctrl-C."""
    with folder_of(run) as folder, closing(FollowedRun(folder, Path.cwd())) as followed:
        try:
            tell_newest(followed, wait, show_hands, lambda: time.sleep(LOOK))
        except KeyboardInterrupt:
            note("ended")


def tell_newest(
    followed: FollowedRun, wait: Callable[[], None], show_hands: bool, until_next: Callable[[], None]
) -> None:
    """Tell the newest game each time there is one; `until_next` lets time pass where there is none."""
    if not followed.finished() and followed.is_playing:
        note("no game is finished yet")
    for game, missed in followed.newest(until_next):
        if missed:
            note(f"{missed:,} game{'s' * (missed != 1)} finished meanwhile and passed over")
        try:
            _tell(followed, game, wait, show_hands)
        except DubitoError as error:
            note(f"game {game} is not told: {error}")
    note(followed.standing())


def _tell(followed: FollowedRun, game: int, wait: Callable[[], None], show_hands: bool) -> None:
    told = followed.games.play(game)  # refuses one that is not as it was
    thoughts = _by_move(followed.questions(game, told)["decisions"])
    again = followed.games.again(game)
    voice = voice_for(told["names"])
    voice(f"Game {game}: {', '.join(told['names'])}.")
    narrator = Narrator(followed.source.game, again.game, labels(again.names, None), show_hands, voice, wait)

    def move() -> tuple[Any, Any]:
        seat = again.game.seat
        for thought in thoughts.pop((again.game.turns_played + 1, seat), ()):
            narrator.thought(thought)
        output, events = next(again.turns)
        return Forfeit(seat) if output is None else output, events

    narrator.tell(move)


def _by_move(decisions: Iterable[Mapping[str, Any]]) -> dict[tuple[int, int], list[Thought]]:
    """What models thought, by turn and seat."""
    thoughts: dict[tuple[int, int], list[Thought]] = {}
    for one in decisions:
        last = one["attempts"][-1] if one["attempts"] else {}
        asked, reasoning = len(one["attempts"]), last.get("reasoning") or ""
        thought = Thought(one["seat"], one["node"], one["answer"], one["outcome"], asked, one["p_bluff"], reasoning)
        thoughts.setdefault((one["turn"], one["seat"]), []).append(thought)
    return thoughts
