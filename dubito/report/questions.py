"""What models were asked and said in a game, for the viewer."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dubito.game import Spec
from dubito.llm.answers import reasoning_of
from dubito.llm.prices import PICO
from dubito.llm.protocols import read_reply
from dubito.llm.wire import Protocol, Received
from dubito.report.texts import Texts
from dubito.store.model_log import ModelLog, answer_from
from dubito.store.run_db import RunDb
from dubito.telling import question_in_words

_REASONS: Final = 2000  # characters beside a seat; the whole reply stands below


@dataclass
class AskedQuestions:
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
        rows = self.db.read(
            "SELECT seat, decision, turn, node, answer, outcome, p_bluff FROM decisions WHERE game = ? ORDER BY 1, 2",
            (game,),
        )
        attempts, moves = self._attempts(game, texts), _own_moves(told["turns"])
        decisions = []
        for seat, decision, own, node, answer, outcome, p_bluff in rows:
            turn, move = moves.get((seat, own), (under_way, None))
            truth = None if p_bluff is None or move is None else told["truths"][move]
            decisions.append(
                {
                    "seat": seat,
                    "number": f"{game}.{seat}.{decision}",  # as `dubito cache explain` takes it
                    "turn": turn,
                    "node": node,
                    "question": question_in_words(self.game, node),
                    "method": self.game.node(node).method,
                    "answer": answer_from(answer),
                    "outcome": outcome,
                    "p_bluff": p_bluff,
                    "truth": truth,  # of what was stated
                    "attempts": attempts.get((seat, decision), []),
                }
            )
        _name(decisions)
        return sorted(decisions, key=lambda decision: int(decision["turn"]))

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
            return {"reply": None, "finish": None, "raw": None, "reasoning": None}
        body = raw and self._log.text(raw)  # an empty body has no digest
        reply = read_reply(protocol, Received(200, body))
        text = None if reply.text is None else texts.add(shown(reply.text))
        reasoning = shown(reasoning_of(reply.text or "")[:_REASONS])
        return {"reply": text, "finish": reply.finish, "raw": texts.add(shown(body)), "reasoning": reasoning or None}


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
