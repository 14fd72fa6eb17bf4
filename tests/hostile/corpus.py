"""Thousands of hostile replies, including almost valid answers and messages."""

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from hypothesis import strategies as st

from dubito.model_settings import Api
from tests.conftest import any_text
from tests.llm.kit import reply_body

_WILD: Final = 3500  # texts with three random faults
_LONG: Final = 200
GOOD: Final = (
    '{"answer": true}',
    '{"answer":false}',
    ' \r\n\t{ "answer" :\n false }\n',
    '{"reasoning": "He l\\u00fcgt \\ud83c\\udccf, \\"sure\\".", "p_bluff": 0.35, "answer": true}',
    '{"answer": false, "p_bluff": null, "reasoning": ""}',
)
_VALUES: Final = (
    *("true", "false", "True", "TRUE", "tRue", "t", "tru", "truee", "yes", "on", "undefined", "None", "nul", "null"),
    *('"true"', '"false"', '"True"', '"yes"', '"1"', '""', '"\\u0074rue"', "'true'", '"true', 'true"', "`true`"),
    *("1", "0", "-1", "1.0", "0.0", "-0", "-0.0", "1e0", "0e0", "1E400", "1e-400", "01", "+1", ".5", "1.", "0x1"),
    *("NaN", "Infinity", "-Infinity", "nan", "9" * 400, "9" * 5000, "1" + "0" * 4299, "1_0", "1,0"),
    *("[]", "[true]", "[[true]]", "{}", '{"answer": true}', '{"x": {"answer": true}}', "true, true", "true false"),
    *('"\\ud800"', '"\\ud83d\\ude00"', '"\ud800"', '"\\u0000"', '"\x00"', '"\\x"', '"a\nb"', "\ud83d", "\x00", ""),
    *("[" * 150 + "]" * 150, "[" * 900 + "]" * 900, "[" * 50_000, "[" * 50_000 + "]" * 50_000, '{"a":' * 5_000),
    *(
        "/* true */ true",
        "true // so",
        "true;",
        "!true",
        "not false",
        "${true}",
        "{{ true }}",
        "<true/>",
        "true\x1b[0m",
    ),
)
_PLACES: Final = (
    *('{"answer": @}', "@", "[@]", '[{"answer": @}]', '{"answer": [@]}', '{"answer": {"answer": @}}', '{"Answer": @}'),
    *('{"answer": @, "answer": true}', '{"answer": true, "answer": @}', '{"answer": true, "\\u0061nswer": @}'),
    *('{"answer": true, "why": @}', '{"why": @}', '{"answer ": @}', '{"\\u200banswer": @}', '{"answer": true} @'),
    *('@ {"answer": true}', '{"answer": @,}', "{'answer': @}", "{answer: @}", '{"answer" @}', '{"answer": @'),
    *('{"reasoning": @, "p_bluff": 0.5, "answer": true}', '{"reasoning": "", "p_bluff": @, "answer": false}'),
    *('{"reasoning": "", "p_bluff": 1, "answer": @}', '{"reasoning": "", "p_bluff": 1, "answer": true, "x": @}'),
    *('{"reasoning": "", "p_bluff": 0, "p_bluff": @, "answer": true}', '{"reasoning": "", "answer": @}'),
)
_AROUND: Final = (
    *("```json\n@\n```", "```\n@\n```", "`@`", "'@'", '"@"', "@@", "@\n@", "@, @", "@ @", "@true", "true@", "(@)"),
    *("Yes: @", "@ So I doubt it.", "<think>hm</think>@", "<|channel|>final<|message|>@", "@<|im_end|>", "answer=@"),
    *("\ufeff@", "@\ufeff", "\u00a0@", "@\u00a0", "\u2028@", "@\u2029", "\x0b@", "\x0c@", "@\x00", "\x00@", "\x1f@"),
    *(
        "\x1b[2J@",
        "\x1b]0;title\x07@",
        "\u202e@",
        "\u200b@",
        "@\u200b",
        "\x85@",
        "@\x1a",
        "\b@",
        "\r@\r",
        " " * 9999 + "@",
    ),
    *(
        "// @",
        "/* */@",
        "# no\n@",
        "@;",
        "@.",
        "data: @\n\n",
        "HTTP/1.1 200 OK\r\n\r\n@",
        "@\n---\n",
        "\ud800@",
        "@\udfff",
    ),
)
_BYTES: Final = ("", '"', "{", "}", "[", ",", ":", "\\", "\x00", "\ufeff", "\ud800", "0", "t", "e", " ", "\n", "\u00a0")


def texts() -> Iterator[str]:
    """Yield all texts, which a model could write."""
    for good in GOOD:
        yield good
        yield from (around.replace("@", good) for around in _AROUND)
        yield from mutations(good)
    for value in _VALUES:
        yield from (place.replace("@", value) for place in _PLACES)
    chance = Random(6)
    for _ in range(_WILD):
        text = chance.choice(_AROUND).replace("@", chance.choice(_PLACES)).replace("@", chance.choice(_VALUES))
        yield text if len(text) > _LONG else _mutation(text, chance)


def mutations(text: str, replacements: Sequence[str] = _BYTES) -> Iterator[str]:
    for place in range(len(text)):
        yield from _mutations_at(place, text, replacements)


def _mutations_at(place: int, text: str, replacements: Sequence[str]) -> list[str]:
    head, tail = text[:place], text[place + 1 :]
    return [head, text[place:], head + text[place] + text[place:], *[head + other + tail for other in replacements]]


def _mutation(text: str, chance: Random) -> str:
    each = len(_BYTES) + 3
    place, which = divmod(chance.randrange(len(text) * each), each)
    return _mutations_at(place, text, _BYTES)[which]


def bodies(protocol: Api) -> Iterator[str]:
    """Yield bodies that a server could send: a good body, truncated and changed everywhere, with each part replaced."""
    for finish in ("stop", "length", "refusal", "filter"):
        whole = reply_body(protocol, GOOD[0], finish)
        yield json.dumps(whole)
        yield from mutations(json.dumps(whole), ("", '"', "}"))
        for value in (None, True, 0, 1.0, "", "x", [], [None], {}, {"text": GOOD[0]}, [[whole]], whole, float("nan")):
            yield from (json.dumps(each) for each in _games_with_bot(whole, value))


def _games_with_bot(whole: Any, value: Any) -> Iterator[Any]:
    """Yield copies of `whole` with each part in turn replaced by the value."""
    yield value
    if isinstance(whole, dict):
        for key in whole:
            yield from ({**whole, key: inner} for inner in _games_with_bot(whole[key], value))
    elif isinstance(whole, list):
        for place in range(len(whole)):
            yield from ([*whole[:place], inner, *whole[place + 1 :]] for inner in _games_with_bot(whole[place], value))


_FIELDS: Final = st.sampled_from(["answer", "reasoning", "p_bluff"])
_LEAVES: Final = (
    st.none() | st.booleans() | st.integers() | st.floats() | any_text(8) | st.sampled_from(["true", "yes"])
)
_SAID: Final = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_FIELDS | any_text(3), inner),
    max_leaves=6,
)
_OBJECTS: Final = st.fixed_dictionaries({"answer": st.booleans() | _SAID}) | st.fixed_dictionaries(
    {"reasoning": any_text(20) | _SAID, "p_bluff": _LEAVES, "answer": st.booleans() | _SAID}
)
_GAPS: Final = st.sampled_from(["", "", "", " ", "\n", "\ufeff", "\x00", "```", "x", "\u2028", "\x1b[0m", "{", '"'])


@st.composite
def near_answers(draw: st.DrawFn) -> str:
    """Return a text that is an answer, or almost one."""
    value = draw(_OBJECTS | _SAID)
    text = json.dumps(
        value, ensure_ascii=draw(st.booleans()), separators=draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    )
    if draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(any_text(2) | _GAPS) + text[draw(st.integers(place, len(text))) :]
    return draw(_GAPS) + text + draw(_GAPS)


_WORDS: Final = st.sampled_from(
    [
        *("output", "content", "choices", "message", "type", "text", "output_text", "refusal", "thinking", "usage"),
        *("status", "completed", "incomplete", "incomplete_details", "reason", "max_output_tokens", "content_filter"),
        *("finish_reason", "stop", "length", "stop_reason", "end_turn", "max_tokens"),
        *("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens"),
    ]
)
_TEXTS: Final = st.sampled_from(GOOD) | _WORDS | any_text(5)
near_bodies: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=6),
    max_leaves=20,
)
