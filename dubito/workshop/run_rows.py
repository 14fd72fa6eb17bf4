"""The rows of a run's games and model decisions, as the API and datasets have them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dubito.errors import UsageError, one_line
from dubito.experiment.stored import Run
from dubito.llm.conditions import SILENT, split_condition
from dubito.llm.prompts import language_of
from dubito.llm.protocols import parse_stored_request, read_recorded_reply
from dubito.llm.questions import read_chance_to_win
from dubito.llm.request import replace_surrogates
from dubito.stats.rates import Rate
from dubito.stats.tally import read_outcome
from dubito.store.model_log import ModelLog, attempt_keys
from dubito.store.spend import PICO
from dubito.workshop.recordings import position_recorder

RunRow = dict[str, Any]


def game_rows(run: Run, numbers: range) -> Iterator[RunRow]:
    """Yield one row per game, without conditions and lies."""
    experiment, results = run.experiment, run.registry.game.results
    names = [player.name for player in experiment.players]
    query = "SELECT game, outcome FROM games WHERE game >= ? AND game < ? ORDER BY game"
    for game, packed in run.db.read(query, (numbers.start, numbers.stop)):
        outcome = read_outcome(packed, results, len(names), run.db.path)
        measured = [
            {
                measure.key: Rate(count / measure.scale).on_span(measure.span).value
                for measure, count in zip(results.measures, counts, strict=True)
            }
            for counts in outcome.measure_seats(results)
        ]
        yield {
            "game": game,
            "deal": experiment.deal_of(game),
            "players": [names[player] for player in outcome.seats],
            "contender_seat": outcome.contender_seat,
            "buckets": [results.buckets[bucket] for bucket in outcome.buckets(results)],
            "measures": measured,
            "counts": [dict(zip(results.counts, own, strict=True)) for own in outcome.counts],
            "capped": outcome.capped,
        }


class DecisionRows:
    """The model decisions in a run, without lies and turns of games."""

    def __init__(self, run: Run) -> None:
        self._run, self._log, self._positions = run, run.model_log, position_recorder(run)
        self._models = {
            spec.name: {
                "model": model.settings.model,
                "prompt": spec.prompt,
                "condition": split_condition(model.settings.prompt)[1] or SILENT,
                "language": language_of(self._log.prompt(spec.prompt)) or "en",
            }
            for spec, model in run.resolved.models
        }

    def __bool__(self) -> bool:
        return bool(self._models)

    @property
    def conditions(self) -> Mapping[str, str]:
        """The condition of each model player."""
        return {name: described["condition"] for name, described in self._models.items()}

    def rows_of_game(self, game: int) -> list[RunRow]:
        """Replay a game and return its rows. Raises UsageError if it now plays differently."""
        positions = {(one.source.seat, one.source.decision): one for one in self._positions(game) if one.source}
        played, rows = self._run.registry.game, list[RunRow]()
        for stored in _stored_decisions(self._log, game):
            place, model = (stored["seat"], stored["decision"]), self._models.get(stored["player"])
            if place not in positions or model is None:
                damaged = f"{one_line(str(self._run.folder))} is damaged"
                raise UsageError(f"{damaged}: a decision of game {game} does not belong to that game")
            recorded = positions[place]
            row = {
                **stored,
                **model,
                "deal": self._run.experiment.deal_of(game),
                "question": played.node(stored["node"]).method,
                "facts": json.dumps(played.facts.facts(recorded.position)),
                "truth": None if recorded.right is None else json.dumps(recorded.right),
            }
            rows.append(row)
        return rows


def _stored_decisions(log: ModelLog, game: int) -> Iterator[RunRow]:
    """Yield the model decisions in a game with their cost and the last attempt's request and reply.

    If a request had several questions, its cost is assigned to the first.
    """
    attempts_of, decisions = log.attempts(game), log.decisions(game)
    keys = attempt_keys(decisions, attempts_of)
    for place, one in decisions.items():
        attempts, all_attempts = attempts_of[place], attempts_of[one.seat, keys[place]]
        if not all_attempts:
            raise UsageError(f"{log.db.path.parent} is damaged: a decision of game {game} has no attempt")
        last, priced = all_attempts[-1], all(attempt.priced for attempt in all_attempts)
        reply = _reply_text(log, last.request, last.raw)
        yield {
            "game": game,
            "seat": one.seat,
            "decision": one.number,
            "turn": one.turn,
            "player": last.player,
            "node": one.node,
            "request": last.request,
            "reply": reply,
            "answer": json.dumps(one.answer),
            "outcome": one.outcome,
            "p_bluff": one.stated,
            "p_win": read_chance_to_win(reply or ""),
            "attempts": len(attempts),
            "tokens_input": sum(attempt.input or 0 for attempt in attempts),
            "tokens_cached": sum(attempt.cached or 0 for attempt in attempts),
            "tokens_output": sum(attempt.output or 0 for attempt in attempts),
            "usd": sum(attempt.picodollars for attempt in attempts) / PICO if priced else None,
        }


def _reply_text(log: ModelLog, request: str, raw: str | None) -> str | None:
    if not raw:
        return None
    text = read_recorded_reply(parse_stored_request(log.text(request)).protocol, raw and log.text(raw)).text
    return None if text is None else replace_surrogates(text)
