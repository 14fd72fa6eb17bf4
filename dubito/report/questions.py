"""What models were asked and said in a game, for the viewer."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dubito.game import Spec
from dubito.llm.prices import PICO
from dubito.llm.protocols import read_reply
from dubito.llm.wire import Protocol, Received
from dubito.report.texts import Texts
from dubito.store.model_log import ModelLog, answer_from
from dubito.store.run_db import RunDb


@dataclass
class Questions:
    """Reads decisions; what is the same in all games (system texts, parameters) is kept once in `shared`."""

    db: RunDb
    game: Spec
    shared: Texts = field(default_factory=Texts)

    def __post_init__(self) -> None:
        self._log = ModelLog(self.db)

    def decisions(self, game: int, turns: Sequence[Mapping[str, Any]], texts: Texts) -> list[dict[str, Any]]:
        """The decisions of a game that was told so, in its order, each with its turn and its attempts."""
        rows = self.db.read(
            "SELECT seat, decision, turn, node, answer, outcome, p_bluff FROM decisions WHERE game = ? ORDER BY 1, 2",
            (game,),
        )
        attempts, turn_of = self._attempts(game, texts), _own_turns(turns)
        decisions = [
            {
                "seat": seat,
                "number": f"{game}.{seat}.{decision}",  # as `dubito cache explain` takes it
                "turn": turn_of.get((seat, turn), 0),
                "node": node,
                "question": self.game.node(node).method,
                "answer": answer_from(answer),
                "outcome": outcome,
                "p_bluff": p_bluff,
                "attempts": attempts.get((seat, decision), []),
            }
            for seat, decision, turn, node, answer, outcome, p_bluff in rows
        ]
        return sorted(decisions, key=lambda decision: decision["turn"])

    def _attempts(self, game: int, texts: Texts) -> dict[tuple[int, int], list[dict[str, Any]]]:
        query = (
            "SELECT a.seat, a.decision, a.request, a.raw, a.cause, a.origin, a.input, a.cached, a.output, "
            "count(t.try), sum(t.seconds), sum(t.picodollars), count(t.picodollars) FROM attempts a "
            "LEFT JOIN tries t USING (game, seat, decision, attempt) "
            "WHERE a.game = ? GROUP BY a.seat, a.decision, a.attempt ORDER BY a.seat, a.decision, a.attempt"
        )
        found: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for (
            seat,
            decision,
            request,
            raw,
            cause,
            origin,
            into,
            cached,
            out,
            tries,
            seconds,
            cost,
            priced,
        ) in self.db.read(query, (game,)):
            found.setdefault((seat, decision), []).append(
                {
                    **self._exchange(self._log.text(request), raw, texts),
                    "cause": cause,
                    "origin": origin,
                    "tokens": None if into is None else [into, cached, out],
                    "tries": tries,
                    "seconds": None if seconds is None else round(seconds, 3),
                    "cost": (cost or 0) / PICO if priced == tries else None,  # None: no price is known
                }
            )
        return found

    def _exchange(self, request: str, raw: str | None, texts: Texts) -> dict[str, Any]:
        """What was sent (system text and parameters, which are shared, and the conversation), and what came."""
        sent = json.loads(request)
        body = sent["body"]
        said = conversation(body)
        rest = {key: value for key, value in body.items() if key not in ("system", "messages", "input")}
        return {
            "system": [self.shared.add(text) for role, text in said if role in ("system", "developer")],
            "said": [[role, texts.add(text)] for role, text in said if role not in ("system", "developer")],
            "rest": self.shared.add(json.dumps(rest, sort_keys=True)),
            **self._reply(sent["protocol"], raw, texts),
        }

    def _reply(self, protocol: Protocol, raw: str | None, texts: Texts) -> dict[str, Any]:
        if raw is None:
            return {"reply": None, "finish": None, "raw": None}
        body = raw and self._log.text(raw)  # an empty body has no digest
        reply = read_reply(protocol, Received(200, body))
        text = None if reply.text is None else texts.add(shown(reply.text))
        return {"reply": text, "finish": reply.finish, "raw": texts.add(shown(body))}


def _own_turns(turns: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], int]:
    """At which turn of the game each seat made its own first, second, ... move; all are counted from 1."""
    own: dict[tuple[int, int], int] = {}
    taken: Counter[int] = Counter()
    for number, turn in enumerate(turns, start=1):
        for seat in turn.get("movers", [turn["seat"]]):
            taken[seat] += 1
            own[seat, taken[seat]] = number
    return own


def conversation(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The messages of a request's body of any protocol, each with its role, the system's first."""
    messages = body.get("messages") or body.get("input") or []
    system = [("system", _text(body["system"]))] if "system" in body else []
    return system + [(str(message.get("role")), _text(message.get("content"))) for message in messages]


def _text(content: Any) -> str:
    """A message's text, plain or in blocks."""
    if isinstance(content, str):
        return content
    blocks: Iterable[Any] = content if isinstance(content, list) else []
    return "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))


def shown(text: str) -> str:
    """The text without half characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
