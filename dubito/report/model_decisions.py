"""What models were asked and said in a game, for the viewer."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dubito.errors import UsageError
from dubito.game import Spec
from dubito.game.words import question_in_words
from dubito.llm.answers import reasoning_of
from dubito.llm.prices import PICO
from dubito.llm.protocols import kept_reply, kept_request
from dubito.llm.request import Api, sendable
from dubito.report.texts import Texts
from dubito.store.model_log import ModelLog, StoredAttempt
from dubito.store.run_db import RunDb

_REASONS: Final = 2000  # characters beside a seat; the whole reply stands below


@dataclass
class ModelDecisions:
    """Reads decisions; what is the same in all games (system texts, parameters) is kept once in `shared`."""

    db: RunDb
    game: Spec
    shared: Texts = field(default_factory=Texts)

    def __post_init__(self) -> None:
        self._log = ModelLog(self.db)

    def decisions(self, game: int, told: Mapping[str, Any], texts: Texts, under_way: int = 0) -> list[dict[str, Any]]:
        """The decisions of a game that was told so, in its order, each with its turn and its attempts.

        `under_way` is the turn of those for a move that is not told.
        """
        attempts, moves = self._log.attempts(game), _own_moves(told["turns"])
        decisions = []
        for one in self._log.decisions(game).values():
            if one.seat not in range(len(told["names"])):
                raise UsageError(f"{self.db.path} is damaged: game {game} has no seat {one.seat}")
            turn, move = moves.get((one.seat, one.turn), (under_way, None))
            truth = None if one.p_bluff is None or move is None else told["truths"][move]
            decisions.append(
                {
                    "seat": one.seat,
                    "number": f"{game}.{one.seat}.{one.number}",  # as `dubito cache explain` takes it
                    "turn": turn,
                    "node": one.node,
                    "question": question_in_words(self.game, one.node),
                    "method": self.game.node(one.node).method,
                    "answer": one.answer,
                    "outcome": one.outcome,
                    "p_bluff": one.p_bluff,
                    "truth": truth,  # of what was stated
                    "attempts": [self._attempt(each, texts) for each in attempts[one.seat, one.number]],
                }
            )
        _name(decisions)
        return sorted(decisions, key=lambda decision: int(decision["turn"]))

    def of_game(self, game: int, told: Mapping[str, Any], texts: Texts, under_way: int = 0) -> dict[str, Any]:
        """All that the viewer reads of them: the same, and the texts that they are made of."""
        decisions = self.decisions(game, told, texts, under_way)
        return {"decisions": decisions, "pieces": texts.pieces, "shared": self.shared.pieces}

    def _attempt(self, one: StoredAttempt, texts: Texts) -> dict[str, Any]:
        return {
            **self._exchange(self._log.text(one.request), one.raw, texts),
            "cause": one.cause,
            "origin": one.origin,
            "tokens": None if one.input is None else [one.input, one.cached, one.output],
            "tries": one.tries,
            "seconds": None if one.seconds is None else round(one.seconds, 3),
            "cost": one.picodollars / PICO if one.priced else None,  # None: no price is known
        }

    def _exchange(self, request: str, raw: str | None, texts: Texts) -> dict[str, Any]:
        """What was sent (system text and parameters, which are shared, and the conversation), and what came."""
        protocol, body = kept_request(request)
        said = conversation(body)
        rest = {key: value for key, value in body.items() if key not in ("system", "messages", "input")}
        return {
            "system": [self.shared.add(text) for role, text in said if role in ("system", "developer")],
            "said": [[role, texts.add(text)] for role, text in said if role not in ("system", "developer")],
            "rest": self.shared.add(json.dumps(rest, sort_keys=True)),
            **self._reply(protocol, raw, texts),
        }

    def _reply(self, protocol: Api, raw: str | None, texts: Texts) -> dict[str, Any]:
        if raw is None:
            return {"reply": None, "finish": None, "raw": None, "reasoning": None}
        reply = kept_reply(protocol, raw and self._log.text(raw))
        text = None if reply.text is None else texts.add(sendable(reply.text))
        reasoning = sendable(reasoning_of(reply.text or "")[:_REASONS]) or None
        body = texts.add(sendable(reply.received.raw))
        return {"reply": text, "finish": reply.finish, "raw": body, "reasoning": reasoning}


def _own_moves(turns: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], tuple[int, int]]:
    """Of each seat's own first, second, ... move, counted from 1: the turn it belongs to, and its place among all."""
    own: dict[tuple[int, int], tuple[int, int]] = {}
    taken: Counter[int] = Counter()
    movers = ((number, seat) for number, turn in enumerate(turns, 1) for seat in turn.get("movers", [turn["seat"]]))
    for place, (number, seat) in enumerate(movers):
        taken[seat] += 1
        own[seat, taken[seat]] = number, place
    return own


def _name(decisions: Iterable[dict[str, Any]]) -> None:
    """Give each its part of an address: its turn and node; and the seat, where one turn asks several."""
    alike: Counter[tuple[int, str]] = Counter((one["turn"], one["node"]) for one in decisions)
    for one in decisions:
        seat = f"-{one['seat']}" if alike[one["turn"], one["node"]] > 1 else ""
        one["link"] = f"turn-{one['turn']}-{one['node']}{seat}"


def conversation(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The messages of a request's body of any protocol, each with its role, the system's first."""
    said = body.get("messages") or body.get("input") or []
    messages = [message for message in said if isinstance(message, dict)] if isinstance(said, list) else []
    system = [("system", _text(body["system"]))] if "system" in body else []
    return system + [(str(message.get("role")), _text(message.get("content"))) for message in messages]


def _text(content: Any) -> str:
    """A message's text, plain or in blocks."""
    if isinstance(content, str):
        return content
    blocks: Iterable[Any] = content if isinstance(content, list) else []
    return "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
