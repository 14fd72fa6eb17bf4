"""Translations of a game's texts, for prompts in other languages.

A game states its rules, facts and questions in English. `shared/LANGUAGE.yaml` next to the prompts is a catalog of all
these sentences: `texts` maps each to its translation, with `{name}` for a part that varies, and `words` maps the words
that such a part can contain, such as names of cards. A prompt with `language: LANGUAGE` translates everything that its
templates write. Numbers stay as they are.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from jinja2 import TemplateRuntimeError
from pydantic import ValidationError

from dubito.errors import UsageError, one_line
from dubito.files import CheckedModel, describe_fault, from_yaml

_PART: Final = re.compile(r"\{(\w+)\}")
_WORD: Final = re.compile(r"\w*[^\W\d_]\w*")  # with at least one letter
_COUNT: Final = re.compile(r"\d+x")  # as in `2x 7`
_SENTENCE_END: Final = re.compile(r"(?<=[.?!])(\s+)")
_CACHED: Final = 8192  # texts


class _Catalog(CheckedModel):
    name: str  # of the language, in English
    words: dict[str, str]
    texts: dict[str, str]


class Translation:
    """A catalog that was read from YAML."""

    def __init__(self, text: str, source: str) -> None:
        """Read a catalog. Raises UsageError if it is malformed, or if a translation lacks a part of its sentence."""
        self._source = one_line(source)
        try:
            catalog = _Catalog.model_validate(from_yaml(text, self._source))
        except ValidationError as error:
            raise UsageError(f"{self._source}: {describe_fault(error)}") from None
        for english, other in catalog.texts.items():
            if sorted(_PART.findall(english)) != sorted(_PART.findall(other)):
                raise UsageError(f"{self._source}: the translation of {english!r} has other parts in braces")
        self._words = catalog.words
        self._texts = catalog.texts
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        for english, other in catalog.texts.items():
            # In every second place is the name of a part in braces.
            literals_and_names = _PART.split(english)
            if len(literals_and_names) > 1:
                pieces = (
                    rf"(?P<{piece}>[\w ,./-]+?)" if place % 2 else re.escape(piece)
                    for place, piece in enumerate(literals_and_names)
                )
                self._patterns.append((re.compile("".join(pieces)), other))
        self.translate = lru_cache(_CACHED)(self._translate)

    def _translate(self, text: str) -> str:
        """Translate a text, sentence by sentence. Raises TemplateRuntimeError if the catalog lacks a sentence."""
        if not (stripped := text.strip()):
            return text
        if (whole := self._find(stripped)) is not None:
            return text.replace(stripped, whole)
        parts = _SENTENCE_END.split(text)
        for place, part in enumerate(parts):
            found = self._find(part)
            if found is None:
                raise TemplateRuntimeError(f"{self._source} has no translation of {one_line(part, 300)!r}")
            parts[place] = found
        return "".join(parts)

    def _find(self, text: str) -> str | None:
        if text in self._texts:
            return self._texts[text]
        if all(word in self._words or _COUNT.fullmatch(word) for word in _WORD.findall(text)):
            return _WORD.sub(lambda found: self._words.get(found[0], found[0]), text)
        for pattern, other in self._patterns:
            if (found := pattern.fullmatch(text)) and (filled := self._fill(other, found.groupdict())) is not None:
                return filled
        return None

    def _fill(self, sentence: str, parts: Mapping[str, str]) -> str | None:
        """Return the sentence with its translated parts, or None if one of them has no translation."""
        found = {name: self._find(part) for name, part in parts.items()}
        return None if None in found.values() else _PART.sub(lambda part: str(found[part[1]]), sentence)
