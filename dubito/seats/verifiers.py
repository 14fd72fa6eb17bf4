"""Any seat of any game as an environment of `verifiers` (`pip install 'dubito[verifiers]'`, docs/verifiers.md).

An example is a deal, a rollout a game of it; each question of the harness is a prompt of its own, and the reward is
what ranks in the harness, from 0 to 1.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

try:
    import verifiers as vf
    from datasets import Dataset
    from verifiers.utils.message_utils import normalize_messages
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error.name} is not installed: pip install 'dubito[verifiers]'", name=error.name
    ) from None

from dubito.game import FALLBACK_OUTCOME
from dubito.seats.asked import AskedGame, AskedSeat, ChatQuestion, Said, asked_seat


def score(state: Any) -> float:
    """The game's first measure, from 0 to 1; a game that was not played to its end has none, and counts 0."""
    return state["score"] or 0.0


def decisions(state: Any) -> float:
    """How often the seat had to decide; a turn may take several decisions, and a decision several prompts."""
    return float(sum(state["outcomes"].values()))


def asked_again(state: Any) -> float:
    """Of the decisions, those that took a re-ask: a reply could not be read, or the rules refused it."""
    return float(state["outcomes"].get("model_after_reask", 0))


def by_fallback(state: Any) -> float:
    """Of the decisions, those that the fallback took, since no reply could be used."""
    return float(sum(n for outcome, n in state["outcomes"].items() if outcome.startswith(FALLBACK_OUTCOME)))


def unfinished(state: Any) -> float:
    """Whether the game was left before its end: by a limit of turns or of time, or an error."""
    return float(state["score"] is None)


class SeatEnv(vf.MultiTurnEnv):  # type: ignore[misc]  # the same verdict without the extra
    """The games of one seat; `-C outcomes` keeps how its decisions came about."""

    def __init__(self, seat: AskedSeat, games: int, **settings: Any) -> None:
        """`settings` are those of the library's environments: `max_turns`, `timeout_seconds`."""
        rows = [
            {"prompt": [{"role": "user", "content": seat.in_words(deal)}], "info": {"deal": deal}}
            for deal in range(games)
        ]
        rubric = vf.Rubric(funcs=[score])
        for metric in (decisions, asked_again, by_fallback, unfinished):
            rubric.add_metric(metric)
        super().__init__(dataset=Dataset.from_list(rows), rubric=rubric, **settings)
        self._seat = seat
        self._games = dict[str, AskedGame]()  # those that are being played, by trajectory

    async def setup_state(self, state: Any) -> Any:
        """Begin the game; its first question is the prompt."""
        state["score"], state["outcomes"] = None, {}
        game = self._games[state["trajectory_id"]] = AskedGame(self._seat, state["info"]["deal"])
        self._ask_next(state, await asyncio.to_thread(game.begin))
        return state

    async def get_prompt_messages(self, state: Any) -> Any:
        """The open question alone: what was asked before stands in it, as far as the harness's prompt tells it."""
        return await self.env_response([], state) if state["trajectory"] else state["asked"]

    async def env_response(self, messages: Any, state: Any) -> Any:
        """What the last reply leads to."""
        message = state["trajectory"][-1]["response"].message
        text = message.content if isinstance(message.content, str) else None
        game = self._games[state["trajectory_id"]]
        self._ask_next(state, await asyncio.to_thread(game.answer, Said(text, bool(message.is_truncated))))
        return state["asked"]

    def _ask_next(self, state: Any, question: ChatQuestion | None) -> None:
        """Make this the open question; None: the game is over."""
        if question is None:
            state["asked"] = state["final_env_response"] = []
            return
        state["asked"] = normalize_messages(list(question.messages), field_name="question")
        if not state["trajectory"]:
            state["prompt"] = state["asked"]
        if question.response_format is not None:
            state["sampling_args"] = {**(state["sampling_args"] or {}), "response_format": question.response_format}

    async def render_completion(self, state: Any) -> None:
        """The replies, and between them what was asked: the system's text, which stays the same, stands once."""
        told = list[Any]()
        for step in state["trajectory"]:
            if told:
                told += [message for message in step["prompt"] if message.role != "system"]
            told += step["completion"]
        state["completion"] = told

    @vf.cleanup  # type: ignore[untyped-decorator]
    async def end_game(self, state: Any) -> None:
        """Keep what came of the game, and let none stand still for ever."""
        game = self._games.pop(state["trajectory_id"], None)
        if game is not None:
            game.leave()
            state["score"], state["outcomes"] = game.score, dict(game.outcomes)


def load_environment(
    game: str,
    opponents: Sequence[str],
    seat: int = 0,
    prompt: str = "plain",
    rules: Mapping[str, Any] | None = None,
    games: int = 100,
    seed: int = 0,
    reasks: int = 1,
    response_format: str = "json_schema",
    **settings: Any,
) -> SeatEnv:
    """The environment of a seat; raises UsageError where there is no such game, seat, bot, prompt or rule.

    `opponents` are hand-written bots by name, seat by seat with this one left out. The seed and the number of a deal
    fix its cards and the draws of the opponents. `reasks` and `response_format` are those of a model player.
    """
    player = {"prompt": prompt, "reasks": reasks, "response_format": response_format}
    return SeatEnv(asked_seat(game, seat, opponents, rules or {}, seed, **player), games, **settings)
