"""Use a seat of a game as an environment of `verifiers`.

Install it with `pip install 'dubito[verifiers]'`; see docs/verifiers.md. Each example is a deal, and each rollout is a
game with that deal. Each question is one prompt. The reward is the game's first measure, from 0 to 1.
"""

import asyncio
from collections.abc import Mapping, Sequence

try:
    import verifiers as vf
    from datasets import Dataset
    from verifiers.types import Messages, State
    from verifiers.utils.message_utils import normalize_messages
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{error.name} is not installed: pip install 'dubito[verifiers]'", name=error.name
    ) from None

from dubito.game import FALLBACK_OUTCOME
from dubito.seats.external import ChatAnswer, ChatQuestion, ExternalGame, ExternalSeat, set_up_seat


def score(state: State) -> float:
    """Return the game's first measure, from 0 to 1, or 0 for an unfinished game."""
    return state["score"] or 0.0


def decisions(state: State) -> float:
    """Return the number of decisions that the seat made.

    A turn can require several decisions, and a decision several prompts.
    """
    return float(sum(state["outcomes"].values()))


def asked_again(state: State) -> float:
    """Return the number of decisions that needed a re-ask.

    A re-ask follows an unreadable or illegal reply.
    """
    return float(state["outcomes"].get("model_after_reask", 0))


def by_fallback(state: State) -> float:
    """Return the number of decisions that the fallback made because no reply was usable."""
    return float(sum(n for outcome, n in state["outcomes"].items() if outcome.startswith(FALLBACK_OUTCOME)))


def unfinished(state: State) -> float:
    """Return 1 if a limit or an error stopped the game early, or else 0."""
    return float(state["score"] is None)


class SeatEnv(vf.MultiTurnEnv):  # type: ignore[misc]  # mypy gives the same result without the extra
    """The games of one seat. Use `-C outcomes` to store how the seat's decisions were made."""

    def __init__(self, seat: ExternalSeat, games: int, **settings: object) -> None:
        """Create one example per deal.

        `settings` are passed to the library's environment, for example `max_turns` or `timeout_seconds`.
        """
        rows = [
            {"prompt": [{"role": "user", "content": seat.describe(deal)}], "info": {"deal": deal}}
            for deal in range(games)
        ]
        rubric = vf.Rubric(funcs=[score])
        for metric in (decisions, asked_again, by_fallback, unfinished):
            rubric.add_metric(metric)
        super().__init__(dataset=Dataset.from_list(rows), rubric=rubric, **settings)
        self._seat = seat
        self._games = dict[str, ExternalGame]()  # games in progress, by trajectory

    async def setup_state(self, state: State) -> State:
        """Start the game, whose first question becomes the prompt."""
        state["score"], state["outcomes"] = None, {}
        game = self._games[state["trajectory_id"]] = ExternalGame(self._seat, state["info"]["deal"])
        self._ask_next(state, await asyncio.to_thread(game.begin))
        return state

    async def get_prompt_messages(self, state: State) -> Messages:
        """Return only the current question, since its prompt already contains as much history as needed."""
        return await self.env_response([], state) if state["trajectory"] else state["asked"]

    async def env_response(self, messages: Messages, state: State) -> Messages:
        """Answer the current question with the last reply and return the next one."""
        message = state["trajectory"][-1]["response"].message
        text = message.content if isinstance(message.content, str) else None
        game = self._games[state["trajectory_id"]]
        self._ask_next(state, await asyncio.to_thread(game.answer, ChatAnswer(text, bool(message.is_truncated))))
        return state["asked"]

    def _ask_next(self, state: State, question: ChatQuestion | None) -> None:
        """Set the current question. None means that the game is over."""
        if question is None:
            state["asked"] = state["final_env_response"] = []
            return
        state["asked"] = normalize_messages(list(question.messages), field_name="question")
        if not state["trajectory"]:
            state["prompt"] = state["asked"]
        if question.response_format is not None:
            state["sampling_args"] = {**(state["sampling_args"] or {}), "response_format": question.response_format}

    async def render_completion(self, state: State) -> None:
        """Join the questions and replies. The constant system text appears only once."""
        messages: Messages = []
        for step in state["trajectory"]:
            if messages:
                messages += [message for message in step["prompt"] if message.role != "system"]
            messages += step["completion"]
        state["completion"] = messages

    @vf.cleanup  # type: ignore[untyped-decorator]
    async def end_game(self, state: State) -> None:
        """Store the result of the game. End the game if it is still waiting for an answer."""
        game = self._games.pop(state["trajectory_id"], None)
        if game is not None:
            game.leave()
            state["score"], state["outcomes"] = game.score, dict(game.outcomes)


def load_environment(
    game: str,
    opponents: Sequence[str],
    seat: int = 0,
    prompt: str = "plain",
    rules: Mapping[str, object] | None = None,
    games: int = 100,
    seed: int = 0,
    reasks: int = 1,
    response_format: str = "json_schema",
    **settings: object,
) -> SeatEnv:
    """Build the environment of a seat.

    `opponents` are names of hand-written bots in seat order, without this seat. The seed and the deal's number
    determine the cards and the opponents' random draws. `reasks` and `response_format` are settings of a model player.
    Raises UsageError if the game, the seat, a bot, the prompt or a rule does not exist.
    """
    player = {"prompt": prompt, "reasks": reasks, "response_format": response_format}
    return SeatEnv(set_up_seat(game, seat, opponents, rules or {}, seed, **player), games, **settings)
