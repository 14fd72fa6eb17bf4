"""Data for the viewer: a game turn by turn, with the models' requests and replies.

Every state comes from the engine. The viewer does not implement any rules.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from dubito.errors import UsageError, join_names, pluralize
from dubito.game import FALLBACK_OUTCOME, Ending, Game, Results
from dubito.game.moves import Forfeit, require_whole_game
from dubito.game.reader import A_PERSON, THE_PERSON, YOU, name_seats, table_reader
from dubito.game.record import GameRecord
from dubito.game.seeds import Seed
from dubito.game.words import Line, Marks, Panel, Play, Teller, describe_forfeit, describe_start, list_faces
from dubito.llm.answers import extract_reasoning
from dubito.llm.protocols import conversation, find_protocol, parse_stored_request, read_recorded_reply
from dubito.llm.questions import parse_odds
from dubito.llm.request import ProtocolName, replace_surrogates
from dubito.show.person import seat_of_guest
from dubito.show.session import Moment, Session, session_of_record
from dubito.stats.players import is_mistake
from dubito.stats.tally import Outcome
from dubito.store.model_log import ModelLog, StoredAttempt, attempt_keys
from dubito.store.run_db import RunDb
from dubito.store.spend import PICO


def story_of_game(session: Session, names: Sequence[str]) -> dict[str, Any]:
    """Return the viewer's data for a game, starting at its deal.

    `truths` contains, for each move, the truth about statements that a model
    can make before the move. `ending` is empty if the moves stop before the game is over. Errors from illegal moves
    propagate.
    """
    return _Story(session, session.game.words.teller(session.state, session.reader)).build(names)


def panel_states(story: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Yield the panels at the deal and after each turn."""
    panels: list[dict[str, Any]] = story["panels"]
    yield panels
    for turn in story["turns"]:
        panels = [panel for panel in (dict(enumerate(panels)) | turn["panels"]).values() if panel is not None]
        yield panels


def count_cards(story: Mapping[str, Any]) -> list[list[int]]:
    """Return each seat's number of cards at the deal and after each turn.

    The list is empty if the game does not count cards.
    """
    counts = []
    for panels in panel_states(story):
        held = {panel["seat"]: panel.get("backs", 0) for panel in panels if "seat" in panel}
        counts.append([held.get(seat, 0) for seat in range(len(story["names"]))])
    return counts if any(counts[0]) else []


def played_cards(story: Mapping[str, Any], turn: Mapping[str, Any]) -> list[list[str]]:
    """Return the name, sign and icon of each card that was played or seen in a turn."""
    return [story["faces"][index] for index in next((cards for _, cards in turn["truth"] if cards), ())]


def winners(results: Results, buckets: Sequence[int], counts: Sequence[tuple[int, ...]]) -> list[int]:
    scores = [results.measure_values(bucket, own)[0] for bucket, own in zip(buckets, counts, strict=True)]
    return [seat for seat, own in enumerate(scores) if own == max(scores) > min(scores)]


def game_in_short(game: Game, rules: Any, deal: int, seed: Seed | None) -> str:
    cards = "" if seed is None else f"deal {deal} of seed {seed}"
    text = "; ".join(filter(None, (game.words.summarize_rules(rules), cards)))
    return text and f"{text[0].upper()}{text[1:]}."


def page_title(name: str, names: Sequence[str], won: Sequence[int]) -> str:
    """Return the title of a game's page, which names the winner."""
    if not won:
        return f"{name}: nobody wins"
    verb = "win" if len(won) > 1 or names[won[0]] == "You" else "wins"
    return f"{name}: {' and '.join(names[seat] for seat in won)} {verb}"


def describe_results(results: Results, ending: Ending | Outcome, names: Sequence[str], turns: int) -> str:
    """Describe each seat's result (best first) and the number of turns."""
    buckets = [results.bucket(mark, ending.capped) for mark in ending.marks]
    scores = [results.measure_values(bucket, (*own, 0))[0] for bucket, own in zip(buckets, ending.counts, strict=True)]
    seats = sorted(range(len(names)), key=lambda seat: (-scores[seat], ending.marks[seat]))
    by_result: dict[str, list[str]] = {}
    for seat in seats:
        by_result.setdefault(results.describe_ending(ending.marks[seat], ending.capped), []).append(names[seat])
    return f"{', '.join(f'{join_names(who)}: {how}' for how, who in by_result.items())}; {pluralize(turns, 'turn')}."


def story_of_record(game: Game, record: GameRecord, for_others: bool = False, person: str = "") -> dict[str, Any]:
    """Return the viewer's data for a saved game, addressed to its person `me`.

    If `for_others` is set, the text is written for readers who were not at the table, uses the person's name if given,
    and includes `standing`. Raises UsageError if the record breaks the rules or ends too early.
    """
    me = seat_of_guest(record.players)
    in_names, called = (person or A_PERSON, person or THE_PERSON) if for_others else ("You", YOU)
    names = name_seats(record.players, me, person or in_names.capitalize())
    session = session_of_record(game, record, table_reader(record.players, me, called))
    with require_whole_game(session.state):
        whole = story_of_game(session, names)
    # records do not contain the kinds of the other players
    kinds = ["person" if seat == me else None for seat in range(len(names))]
    ending = session.state.ending()
    if for_others:
        named = name_seats(record.players, me, in_names)
        standing = describe_results(game.results, ending, named, len(whole["turns"]))
        whole["standing"] = f"{standing[:1].upper()}{standing[1:]}"
    return whole | {"me": me, "winners": winners_of_ending(game.results, ending), "kinds": kinds}


def winners_of_ending(results: Results, ending: Ending) -> list[int]:
    buckets = [results.bucket(mark, ending.capped) for mark in ending.marks]
    return winners(results, buckets, [(*counts, 0) for counts in ending.counts])


@dataclass(eq=False)
class _Story:
    """Describes a game. Each turn consists of its sentences, the truth and the changed panels."""

    session: Session
    teller: Teller[Any]
    _faces: dict[str, int] = field(default_factory=dict)  # index of each card that is drawn, by name
    _plays: dict[str, int] = field(default_factory=dict)  # index of each play, by its JSON

    def build(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the game's data. The moves of a turn form one step in the viewer."""
        state, words = self.session.state, self.teller.words
        self._panels = self._before = dealt = [*map(self._panel, self.teller.panels())]
        start = describe_start(words, state, self.session.reader)
        turns: list[dict[str, Any]] = []
        story: list[str] = []
        truths: list[bool | None] = []
        turn, played = _Turn(), state.turns_played
        while True:
            truth_before = None if state.over else self.session.game.truth(state)
            if (moment := next(self.session, None)) is None:
                break
            truths.append(truth_before)
            self._add_move(turn, moment)
            if state.over or state.turns_played != played:
                now = [*map(self._panel, self.teller.panels())]
                changed = self._changes(now)
                self._panels = self._before = now
                truth = [[line.truth, self._indexes(line.cards)] for line in turn.lines if line.truth]
                turns.append({"seat": turn.movers[0], "panels": changed, "truth": truth} | turn.described())
                story.append(" ".join(line.sentence for line in turn.lines if line.sentence))
                turn, played = _Turn(), state.turns_played
            else:
                self._before = [*map(self._panel, self.teller.panels())]
        return {
            "names": list(names),
            "start": start,
            "faces": list_faces(words, [*self._faces]),
            "plays": [json.loads(play) for play in self._plays],
            "panels": dealt,
            "turns": turns,
            "story": story,
            "ending": self.teller.ending()[0] if state.over else "",
            "truths": truths,
            "lie": self.session.game.results.lie_words[0],
        }

    def _add_move(self, turn: "_Turn", moment: Moment) -> None:
        turn.movers.append(moment.seat)
        if isinstance(moment.output, Forfeit):
            turn.lines.append(Line(describe_forfeit(moment.output.seat, self.session.reader, self.session.game)))
            turn.marks.append(Marks(("forfeit",)))
            return
        turn.lines += self.teller.describe_move(moment.seat, moment.output, moment.events)
        turn.marks.append(self.teller.marks)
        if (scene := self.teller.scene) is not None:
            turn.scene = asdict(scene) | {
                "cards": self._indexes(scene.cards),
                "wrong": [card in scene.wrong for card in scene.cards],
                "panels": self._changes(self._before),  # the panels before the scene
            }
        public = [event for event in moment.events if event.only is None]
        if moment.seat == turn.movers[0] and (speech := self.teller.words.speech(moment.output, public)):
            turn.speech = speech

    def _changes(self, now: list[dict[str, Any]]) -> dict[int, Any]:
        """Return the panels that changed since the last turn, by place."""
        changed: dict[int, Any] = {
            place: panel for place, panel in enumerate(now) if [panel] != self._panels[place : place + 1]
        }
        return changed | dict.fromkeys(range(len(now), len(self._panels)))  # these panels no longer exist

    def _panel(self, panel: Panel) -> dict[str, Any]:
        """Return what the viewer draws of a panel, without empty fields."""
        drawn = {
            "title": panel.title if panel.seat is None else "",
            "seat": panel.seat,
            "public": panel.public,
            # The cards after the colon are drawn.
            "truth": panel.truth[: panel.truth.find(":") + 1] if panel.cards else panel.truth,
            "known": bool(panel.cards) and not panel.truth,  # whether everyone sees the cards
            "cards": self._indexes(panel.cards),
            "folded": panel.folded,
            "backs": panel.backs,
            "plays": [*map(self._play, panel.plays)],
            "badge": panel.badge,
        }
        return {key: value for key, value in drawn.items() if value or (value == 0 and key == "seat")}

    def _play(self, play: Play) -> int:
        encoded = json.dumps([play.seat, play.claim, self._indexes(play.cards), play.lie, play.shown])
        return self._plays.setdefault(encoded, len(self._plays))

    def _indexes(self, cards: Sequence[str]) -> list[int]:
        return [self._faces.setdefault(card, len(self._faces)) for card in cards]


@dataclass
class _Turn:
    """The moves of a turn."""

    movers: list[int] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    marks: list[Marks] = field(default_factory=list)
    speech: str = ""
    scene: dict[str, Any] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """Return who moved, how the moves are marked and which seats made mistakes, without empty fields."""
        several, by_seat = len(self.movers) > 1, [*zip(self.movers, self.marks, strict=True)]
        optional = {
            "movers": self.movers if several else [],
            "kinds": [[*mark.kinds] for mark in self.marks] if several else [],
            "caught": any(mark.catches for mark in self.marks),
            "note": ", ".join(filter(None, (mark.note for mark in self.marks))),
            "speech": self.speech,
            "scene": self.scene,
        }
        return {
            "marks": [*dict.fromkeys(kind for mark in self.marks for kind in mark.kinds)],
            "mistakes": {seat: mark.mistake for seat, mark in by_seat if mark.mistake},
            "let_pass": {seat: mark.let_pass for seat, mark in by_seat if mark.let_pass},
        } | {key: value for key, value in optional.items() if value}


_PIECE: Final = re.compile(r'[^\n]*?(?:\n|,(?=")|$)')  # a line, or one key of JSON
_MAX_TEXT: Final = 20_000  # maximum length of a shown text, in characters


@dataclass(eq=False)
class Texts:
    """Deduplicated texts. Each text is a list of ranges in `pieces`: [first, end, ...].

    Each line is stored once, because consecutive prompts share most of their lines.
    """

    pieces: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)
    _kept: dict[str, list[int]] = field(default_factory=dict)

    def add(self, text: str) -> list[int]:
        if text in self._kept:
            return self._kept[text]
        shown = text
        if len(text) > _MAX_TEXT:
            shown = f"{text[:_MAX_TEXT]}\n[truncated; run.db has {len(text) - _MAX_TEXT:,} more characters]"
        runs: list[int] = []
        for piece in filter(None, _PIECE.findall(shown)):
            place = self._places.setdefault(piece, len(self.pieces))
            if place == len(self.pieces):
                self.pieces.append(piece)
            if runs and runs[-1] == place:
                runs[-1] += 1
            else:
                runs += [place, place + 1]
        self._kept[text] = runs
        return runs

    def read(self, runs: list[int]) -> str:
        return "".join("".join(self.pieces[first:end]) for first, end in zip(runs[::2], runs[1::2], strict=True))


_MAX_REASONING: Final = 2000  # maximum length of the reasoning next to a seat; the whole reply is shown below


@dataclass
class ModelDecisions:
    """Reads the model decisions in games.

    Texts that all games share (system texts, parameters) are collected in `shared`.
    """

    db: RunDb
    game: Game
    shared: Texts = field(default_factory=Texts)

    def __post_init__(self) -> None:
        self._log = ModelLog(self.db)

    def decisions(self, game: int, story: Mapping[str, Any], texts: Texts, under_way: int = 0) -> list[dict[str, Any]]:
        """Return the decisions of a game in order, each with its turn and its attempts.

        `story` is the viewer's data of the game. `under_way` is the turn number for decisions about a move that is not
        part of `story` yet.
        """
        attempts, taken, moves = self._log.attempts(game), self._log.decisions(game), own_moves(story["turns"])
        under, decisions, judged = attempt_keys(taken, attempts), [], set[tuple[int, int]]()
        for one in taken.values():
            if one.seat not in range(len(story["names"])):
                raise UsageError(f"{self.db.path} is damaged: game {game} has no seat {one.seat}")
            turn, move = moves.get((one.seat, one.turn), (under_way, None))
            truth = None if one.stated is None or move is None else story["truths"][move]
            decisions.append(
                {
                    "seat": one.seat,
                    "number": f"{game}.{one.seat}.{one.number}",  # in the format of `dubito cache explain`
                    "turn": turn,
                    "node": one.node,
                    "question": self.game.words.short_question(one.node),
                    "method": self.game.node(one.node).method,
                    "answer": one.answer,
                    "outcome": one.outcome,
                    "p_bluff": one.stated,
                    "truth": truth,  # the truth about the model's statement
                    "attempts": [self._attempt(each, texts) for each in attempts[one.seat, one.number]],
                }
            )
            if one.stated is not None:
                node = self.game.node(one.node)
                decisions[-1] |= {"stating": node.stating, "truths": node.truths}
            # a seat's first answer is its opinion about the previous play
            if move is not None and (one.seat, move) not in judged:
                judged.add((one.seat, move))
                made = story["turns"][turn - 1]
                mistake, let_pass = (made[which].get(one.seat) for which in ("mistakes", "let_pass"))
                # A fallback's answers are not judged.
                if (mistake or let_pass) and not one.outcome.startswith(FALLBACK_OUTCOME):
                    judgement = is_mistake(bool(let_pass), bool(mistake), one.stated)
                    decisions[-1] |= {"wrong": mistake or let_pass, "mistake": judgement}
            if (first := under[one.seat, one.number]) != one.number:  # the attempts are stored with that decision
                decisions[-1]["asked_with"] = f"{game}.{one.seat}.{first}"
        # A link consists of the turn and the node, plus the seat if these are ambiguous.
        places = Counter((decision["turn"], decision["node"]) for decision in decisions)
        for decision in decisions:
            turn, node = decision["turn"], decision["node"]
            decision["link"] = f"turn-{turn}-{node}" + (f"-{decision['seat']}" if places[turn, node] > 1 else "")
        return sorted(decisions, key=lambda decision: int(decision["turn"]))

    def describe_game(self, game: int, story: Mapping[str, Any], texts: Texts, under_way: int = 0) -> dict[str, Any]:
        decisions = self.decisions(game, story, texts, under_way)
        return {"decisions": decisions, "pieces": texts.pieces, "shared": self.shared.pieces}

    def _attempt(self, one: StoredAttempt, texts: Texts) -> dict[str, Any]:
        """Return a request (shared system text and parameters, conversation), its reply and its cost."""
        kept = parse_stored_request(self._log.text(one.request))
        messages = conversation(kept)
        fields = () if kept.protocol == "program" else find_protocol(kept.protocol).message_fields
        rest = {key: value for key, value in kept.body.items() if key not in fields}
        return {
            "system": [self.shared.add(text) for role, text in messages if role in ("system", "developer")],
            "said": [[role, texts.add(text)] for role, text in messages if role not in ("system", "developer")],
            "rest": self.shared.add(json.dumps(rest, sort_keys=True)),
            **self._reply(kept.protocol, one.raw, texts),
            "cause": one.cause,
            "origin": one.origin,
            "tokens": None if one.input is None else [one.input, one.cached, one.output],
            "tries": one.tries,
            "seconds": None if one.seconds is None else round(one.seconds, 3),
            "cost": one.picodollars / PICO if one.priced else None,  # None if the price is unknown
        }

    def _reply(self, protocol: ProtocolName, raw: str | None, texts: Texts) -> dict[str, Any]:
        if raw is None:
            return {"reply": None, "finish": None, "raw": None, "reasoning": None}
        reply = read_recorded_reply(protocol, raw and self._log.text(raw))
        text = None if reply.text is None else texts.add(replace_surrogates(reply.text))
        reasoning = replace_surrogates(extract_reasoning(reply.text or "")[:_MAX_REASONING]) or None
        body = texts.add(replace_surrogates(reply.received.raw))
        odds = parse_odds(reply.text or "")
        messages = {"reply": text, "finish": reply.finish, "raw": body, "reasoning": reasoning}
        return messages | ({"odds": odds} if odds else {})


def list_moves(turns: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, int]]:
    """Yield each move's seat, its turn (from 1) and its index in that turn."""
    for number, turn in enumerate(turns, 1):
        yield from ((seat, number, place) for place, seat in enumerate(turn.get("movers", [turn["seat"]])))


def own_moves(turns: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], tuple[int, int]]:
    """Map each seat's moves, counted from 1, to their turn and overall index."""
    own: dict[tuple[int, int], tuple[int, int]] = {}
    taken: Counter[int] = Counter()
    for place, (seat, number, _) in enumerate(list_moves(turns)):
        taken[seat] += 1
        own[seat, taken[seat]] = number, place
    return own
