"""How a player decides: a bot's description and code, or a model's prompt and its own words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dubito.errors import DubitoError, one_line
from dubito.experiment.stored import Run
from dubito.report.own_words import own_words
from dubito.report.tables import Block, Links, Paragraph, Section, Verbatim
from dubito.show.story import Texts

_MAX_CODE: Final = 60_000  # characters
_MAX_TRIES: Final = 40  # decisions that are searched for words of a model's own


@dataclass
class ModelWords:
    """The first request to each model, and the first sentence that is its own."""

    requests: dict[str, str] = field(default_factory=dict)
    quotes: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # the words, where, and the link
    _tries: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, game: int, decision: Mapping[str, Any], texts: Texts, shared: Texts) -> None:
        """Note a decision of a game with a page. `name` is the player's."""
        if not decision["attempts"]:
            return
        if name not in self.requests:
            asked = decision["attempts"][0]
            parts = [shared.read(runs) for runs in asked["system"]] + [texts.read(runs) for _, runs in asked["said"]]
            self.requests[name] = "\n\n".join(parts)
        tries = self._tries[name] = self._tries.get(name, 0) + 1
        if name not in self.quotes and tries <= _MAX_TRIES:
            story = {"pieces": texts.pieces, "shared": shared.pieces}
            if words := own_words(story, decision):
                where = f"game {game}, turn {decision['turn']}: {decision['question']}"
                self.quotes[name] = words, where, f"games/{game}.html#{decision['link']}"


def introduce(source: Run, name: str, words: ModelWords) -> Section:
    """Return the section that a player's page begins with."""
    spec = source.planned.players[source.names.index(name)]
    blocks = [*_introduce_model(spec.settings, name, words)] if name in source.models else []
    return Section("How it decides", blocks or [*_introduce_bot(source, spec.bot, spec.source)])


def _introduce_model(settings: Mapping[str, Any], name: str, words: ModelWords) -> Iterator[Block]:
    model, prompt = (one_line(str(settings[key])) if settings.get(key) else "" for key in ("model", "prompt"))
    if model and prompt:
        yield Paragraph(f"The model {model} answers each question of the prompt {prompt}.")
    if name in words.quotes:
        quote, where, path = words.quotes[name]
        yield Links([(f"“{quote}”", path, where)])
    if name in words.requests:
        yield Verbatim("Its prompt: the first request of the first game", words.requests[name], folded=True)


def _introduce_bot(source: Run, bot_name: str, digest: str) -> Iterator[Block]:
    """Describe a bot, with its code if the file is the one that played."""
    try:
        bot = source.registry.find(bot_name)
    except DubitoError as error:
        yield Paragraph(f"This machine does not have the bot: {one_line(str(error), 200)}.")
        return
    yield Paragraph(bot.summary)
    if bot.digest == digest and bot.file.suffix == ".py":
        code = bot.file.read_text(encoding="utf-8", errors="replace")[:_MAX_CODE]
        yield Verbatim(f"Its code, {bot.file.name}", code, folded=True)
