"""What a player says as a move (`Text`): what can be said, and how it is quoted.

The rule: an utterance is one line of characters that everybody can see, with plain spaces between them. Whatever cannot
be seen is refused, and the mover told which character it is: line breaks and other control characters, other spaces,
what turns the direction of writing, joins or selects, fillers, halves of characters, piles of marks. Nothing is
removed, exchanged or cut: what was said is what everybody hears, and what is kept.
"""

import json
import unicodedata
from typing import Final

from dubito.errors import is_visible, json_escape

_MARKS: Final = 3  # on one letter: some languages need as many
_LOOK_ALIKES: Final = frozenset("“”„‟″‶〃〝〞〟\uff02˝ʺˮ״«»❝❞🙶🙷🙸")  # what could be taken for the end of a quote
_BRACKETS: Final = frozenset("<[")  # begin the marks by which servers tell who is speaking: <|im_end|>, </s>, [INST]


def why_not_said(said: object, most: int) -> str | None:
    """Why this is no utterance of at most so many characters; None if it is one."""
    if type(said) is not str:
        return "say it as a text"
    if not said.strip():
        return "there is nothing said in it"
    if len(said) > most:
        return f"it is {len(said):,} characters long, and at most {most} can be said: say it shorter"
    marks = 0
    for character in said:
        marks = marks + 1 if unicodedata.category(character).startswith("M") else 0
        if not is_visible(character) or marks > _MARKS:
            return f"it holds {name_character(character)}: say it on one line, in characters that everybody can see"
    return None


def quoted(text: str) -> str:
    """The text as a JSON string on one line, for a prompt, a history or a sentence: what is said cannot end its quotes.

    What cannot be seen, looks like a quote, or could be a server's own mark is escaped (`\\u003c`); read as JSON, it
    is the text again.
    """
    if not isinstance(text, str):
        raise TypeError(f"a value of type {type(text).__name__} cannot be quoted: it is no text")
    return "".join(map(_escaped, json.dumps(text, ensure_ascii=False)))


def _escaped(character: str) -> str:
    if is_visible(character) and character not in _LOOK_ALIKES and character not in _BRACKETS:
        return character
    return json_escape(character)


def name_character(character: str) -> str:
    """Return the character's code point and its Unicode name."""
    name = "a line break" if character in "\n\r" else unicodedata.name(character, "a control character").lower()
    return f"U+{ord(character):04X} ({name})"
