"""What a player says as a move (`Text`): what can be said, and how it is quoted.

The rule: an utterance is one line of characters that everybody can see, with plain spaces between them. Whatever cannot
be seen is refused, and the mover told which character it is: line breaks and other control characters, other spaces,
what turns the direction of writing, joins or selects, fillers, halves of characters, piles of marks. Nothing is
removed, exchanged or cut: what was said is what everybody hears, and what is kept.
"""

import json
import unicodedata
from typing import Final

_UNSEEN: Final = frozenset(  # which Unicode counts as printable; the last one is a blank
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0)
).union(range(0xE0100, 0xE01F0), (0x2800,))
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
        if not _is_seen(character) or marks > _MARKS:
            return f"it holds {_name_of_character(character)}: say it on one line, in characters that everybody can see"
    return None


def quoted(text: str) -> str:
    """The text as a JSON string on one line, for a prompt, a history or a sentence: what is said cannot end its quotes.

    What cannot be seen, looks like a quote, or could be a server's own mark is escaped (`\\u003c`); read as JSON, it
    is the text again.
    """
    if not isinstance(text, str):
        raise TypeError(f"a value of type {type(text).__name__} cannot be quoted: it is no text")
    return "".join(map(_escaped, json.dumps(text, ensure_ascii=False)))


def _is_seen(character: str) -> bool:
    return character.isprintable() and ord(character) not in _UNSEEN


def _escaped(character: str) -> str:
    if _is_seen(character) and character not in _LOOK_ALIKES and character not in _BRACKETS:
        return character
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[place]:02x}{halves[place + 1]:02x}" for place in range(0, len(halves), 2))


def _name_of_character(character: str) -> str:
    name = "a line break" if character in "\n\r" else unicodedata.name(character, "a control character").lower()
    return f"U+{ord(character):04X} ({name})"
