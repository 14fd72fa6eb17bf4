"""The Inspect task `dubito/seat`, in which a model plays one seat of a game against hand-written bots.

Install it with `pip install 'dubito[inspect]'`. Each sample is a deal, and each of the harness's questions is a call to
the model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from anyio.to_thread import run_sync
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ResponseSchema,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from dubito.game import FALLBACK_OUTCOME
from dubito.seats.external import ChatAnswer, ChatQuestion, ExternalGame, ExternalSeat, set_up_seat


@task  # type: ignore[untyped-decorator]  # mypy gives the same result without the extra
def seat(
    game: str = "dubito",
    opponents: str | Sequence[str] = ("StefaBot", "ClaudeBot"),
    seat: int = 0,
    prompt: str = "plain",
    rules: Mapping[str, Any] | None = None,
    games: int = 20,
    seed: int = 0,
    reasks: int = 1,
    response_format: str = "json_schema",
) -> Task:
    """Build the task for a seat.

    `opponents` are names of hand-written bots in seat order, without this seat. `reasks` and `response_format` are
    settings of a model player. Raises UsageError if the game, seat, a bot, the prompt or a rule does not exist.
    """
    names = [opponents] if isinstance(opponents, str) else opponents
    player = {"prompt": prompt, "reasks": reasks, "response_format": response_format}
    external = set_up_seat(game, seat, names, rules or {}, seed, **player)
    deals = [Sample(id=deal, input=external.describe(deal), metadata={"deal": deal}) for deal in range(games)]
    return Task(dataset=deals, solver=play_deal(external), scorer=score_game())


@solver  # type: ignore[untyped-decorator]
def play_deal(seat: ExternalSeat) -> Solver:
    """Play a sample's deal, and store the seat's score and the outcomes of its decisions."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        game = ExternalGame(seat, state.metadata["deal"])
        state.messages = []
        try:
            question = await run_sync(game.begin)
            while question is not None:
                state.output = await ask_model(question, state.messages)
                is_cut = state.output.stop_reason in ("max_tokens", "model_length")
                question = await run_sync(game.answer, ChatAnswer(state.output.completion or None, is_cut))
        finally:
            game.leave()
            state.store.set("score", game.score)
            state.store.set("outcomes", dict(game.outcomes))
        return state

    return solve


async def ask_model(question: ChatQuestion, messages: list[ChatMessage]) -> ModelOutput:
    """Ask the evaluated model, and append the question and the reply to the sample's messages.

    The system text never changes, so it is appended once.
    """
    asked: list[ChatMessage] = [
        ChatMessageSystem(content=one["content"])
        if one["role"] == "system"
        else ChatMessageUser(content=one["content"])
        for one in question.messages
    ]
    config = GenerateConfig()
    if question.response_format is not None:
        schema = question.response_format["json_schema"]
        config.response_schema = ResponseSchema(
            name=schema["name"], json_schema=schema["schema"], strict=schema.get("strict")
        )
    output = await get_model().generate(asked, config=config)
    messages += [one for one in asked if one.role != "system" or not messages]
    messages.append(output.message)
    return output


@scorer(metrics={"*": [mean(), stderr()]})  # type: ignore[untyped-decorator]
def score_game() -> Scorer:
    """Score a game by its first measure, from 0 to 1. An unfinished game scores 0 and sets `unfinished` to 1."""

    async def score(state: TaskState, target: Target) -> Score:
        measured, outcomes = state.store.get("score"), state.store.get("outcomes", {})
        by_fallback = sum(n for outcome, n in outcomes.items() if outcome.startswith(FALLBACK_OUTCOME))
        return Score(
            value={
                "score": measured or 0.0,
                "decisions": sum(outcomes.values()),
                "asked_again": outcomes.get("model_after_reask", 0),
                "by_fallback": by_fallback,
                "unfinished": int(measured is None),
            },
            metadata={"outcomes": outcomes},
        )

    return score
