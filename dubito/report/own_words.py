"""The best lie or the worst mistake of a model in a game, with the model's own words about it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dubito.errors import one_line
from dubito.game import FALLBACK_OUTCOME
from dubito.report.highlights import caught_lies
from dubito.show.story import Texts, panel_states

_MAX_QUOTE: Final = 240  # maximum number of characters of a model's reason
_MAX_HEADLINE_QUOTE: Final = 110
_MIN_WORDS: Final = 4  # in a sentence
_RUN: Final = 4  # words in a row that are compared with the prompt
_MAX_REPEATED: Final = 0.5  # share of such runs that a sentence may have in common with the prompt
_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class ModelMoment:
    """A moment to open a game at."""

    event: str  # what happened, as a sentence without its point
    opens: int
    quote: Mapping[str, Any] | None
    stake: int  # cards on the pile

    @property
    def title(self) -> str:
        """The event, with the start of the quote if there is one."""
        return f"{self.event}: “{one_line(self.quote['text'], _MAX_HEADLINE_QUOTE)}”" if self.quote else self.event


def own_words(story: Mapping[str, Any], decision: Mapping[str, Any]) -> str:
    """Return the sentences of a model's reason that are sentences and do not repeat its prompt."""
    attempt = decision["attempts"][-1] if decision["attempts"] else {}
    if not (reason := (attempt.get("reasoning") or "").strip()):
        return ""
    prompt, shared = Texts(), Texts()
    prompt.pieces, shared.pieces = story["pieces"], story["shared"]
    asked = [prompt.read(runs) for _, runs in attempt["said"]] + [shared.read(runs) for runs in attempt["system"]]
    known = {run for text in asked for run in _runs(text)}
    own = []
    for sentence in _SENTENCE_ENDS.split(reason):
        is_sentence = sentence[-1:] in ".!?" and len(re.findall(r"[^\W\d_]{2,}", sentence)) >= _MIN_WORDS
        runs = _runs(sentence)
        if is_sentence and runs and sum(run in known for run in runs) <= _MAX_REPEATED * len(runs):
            own.append(sentence)
    return one_line(" ".join(own), _MAX_QUOTE)


def _runs(text: str) -> list[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return [tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)]


def model_moment(story: Mapping[str, Any], *, only_lies: bool = False) -> ModelMoment | None:
    """Return the moment with the most cards at stake, rather one that the model gives a reason for.

    Return None if no model lied or made a mistake. With `only_lies`, mistakes and caught lies do not count.
    """
    piles = []  # cards on the table, by turn
    for panels in panel_states(story):
        plays = [play for panel in panels for play in panel.get("plays", ())]
        piles.append(sum(len(story["plays"][play][2]) for play in plays))
    found = [
        (bool(words), piles[opens], -at, event, opens, one, words)
        for at, event, opens, one, words in _moments(story, only_lies)
    ]
    if not found:
        return None
    _, stake, _, event, opens, one, words = max(found, key=lambda each: each[:3])
    quote = {"text": words, "seat": one["seat"], "turn": one["turn"], "link": one["link"]} if words else None
    return ModelMoment(event, opens, quote, stake)


def _moments(story: Mapping[str, Any], only_lies: bool) -> Iterator[tuple[int, str, int, Mapping[str, Any], str]]:
    """Yield each lie and mistake of a model: its place, the event, the turn to open at, the decision, its words."""
    caught, lies = caught_lies(story), set[tuple[int, int]]()
    for place, one in enumerate(story["decisions"]):
        turn, seat = one["turn"], one["seat"]
        if one["outcome"].startswith(FALLBACK_OUTCOME) or not 0 < turn <= len(story["turns"]):
            continue
        # A model's name without its provider and its prompt.
        name = re.sub(r"^[\w-]+:|@\S+", "", story["names"][seat]) or story["names"][seat]
        now = story["turns"][turn - 1]
        words = own_words(story, one)
        if one.get("mistake"):
            if only_lies:
                continue
            yield place, f"{name} {one['wrong']}", turn, one, words
        elif story["lie"] in now["marks"] and now["seat"] == seat and (words or (turn, seat) not in lies):
            lies.add((turn, seat))
            if only_lies and turn in caught:
                continue
            end = "was caught" if turn in caught else "got away with it"
            about = f" about {claim}" if (claim := now.get("speech", "").rstrip("!")) else ""
            yield place, f"{name} lied{about} and {end}", caught.get(turn, turn), one, words
