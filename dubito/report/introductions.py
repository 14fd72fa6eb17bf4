"""How a player decides: a bot's description and code, or a model's prompt and its own words."""

from collections.abc import Mapping
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
    """Return the section that a player's page begins with.

    A bot's code is shown only if the file is the one that played.
    """
    spec = source.planned.players[source.names.index(name)]
    blocks: list[Block] = []
    if name in source.models:
        given = (spec.settings.get(key) for key in ("model", "prompt"))
        model, prompt = (one_line(str(value)) if value else "" for value in given)
        if model and prompt:
            blocks.append(Paragraph(f"The model {model} answers each question of the prompt {prompt}."))
        if name in words.quotes:
            quote, where, path = words.quotes[name]
            blocks.append(Links([(f"“{quote}”", path, where)]))
        if name in words.requests:
            title = "Its prompt: the first request of the first game"
            blocks.append(Verbatim(title, words.requests[name], folded=True))
    if not blocks:
        try:
            bot = source.registry.find(spec.bot)
        except DubitoError as error:
            missing = Paragraph(f"This machine does not have the bot: {one_line(str(error), 200)}.")
            return Section("How it decides", [missing])
        blocks.append(Paragraph(bot.summary))
        if bot.digest == spec.source and bot.file.suffix == ".py":
            code = bot.file.read_text(encoding="utf-8", errors="replace")[:_MAX_CODE]
            blocks.append(Verbatim(f"Its code, {bot.file.name}", code, folded=True))
    return Section("How it decides", blocks)
