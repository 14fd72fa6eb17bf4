"""Validation and quoting of messages that players send as moves (`Text`).

A message is one line of visible characters and plain spaces. Invisible characters are refused, with an error that names
the character: line breaks and other control characters, other spaces, characters that change the writing direction,
join or select, fillers, lone surrogates, and stacks of combining marks. Nothing is removed, replaced or truncated. All
players see exactly what was sent, and it is stored unchanged.
"""

import json
import unicodedata
from typing import Final

from dubito.errors import is_visible, json_escape

_MAX_MARKS: Final = 3  # combining marks per letter; some languages need three
_LOOK_ALIKES: Final = frozenset("“”„‟″‶〃〝〞〟\uff02˝ʺˮ״«»❝❞🙶🙷🙸")  # could be mistaken for the end of a quotation
_BRACKETS: Final = frozenset("<[")  # start the role markers of model servers: <|im_end|>, </s>, [INST]


def message_error(message: object, most: int) -> str | None:
    """Explain why this is not a valid message of at most `most` characters, or return None."""
    if type(message) is not str:
        return "a message must be a string"
    if not message.strip():
        return "it is empty"
    if len(message) > most:
        return f"it is {len(message):,} characters long, and at most {most} are allowed: shorten it"
    marks = 0
    for character in message:
        marks = marks + 1 if unicodedata.category(character).startswith("M") else 0
        if not is_visible(character) or marks > _MAX_MARKS:
            return f"it contains {name_character(character)}: use one line of visible characters"
    return None


def quoted(text: str) -> str:
    """Quote a text as a JSON string on one line, so that it cannot end its own quotes.

    Invisible characters, characters that look like quotation marks, and the brackets of server markers are escaped
    (`\\u003c`). Parsing the result as JSON gives the text back.
    """
    if not isinstance(text, str):
        raise TypeError(f"a value of type {type(text).__name__} cannot be quoted: it is not a string")
    characters = json.dumps(text, ensure_ascii=False)
    escaped = _LOOK_ALIKES | _BRACKETS
    return "".join(one if is_visible(one) and one not in escaped else json_escape(one) for one in characters)


def name_character(character: str) -> str:
    """Return the character's code point and its Unicode name."""
    name = "a line break" if character in "\n\r" else unicodedata.name(character, "a control character").lower()
    return f"U+{ord(character):04X} ({name})"
