"""A bot's file is found in a reply, and each fault is reported in one sentence. Nothing is executed."""

import pytest

from dubito.plugins.forge.reply import MAX_BYTES, read_bot

BOT = "class Bot:\n    def decide(self, node, facts, legal):\n        return True\n"
KNOWN = "import x\n\nclass Known(Base):\n" + "".join(
    f"    def f{n}(self):\n        return self.cards.count({n}) > {n}\n" for n in range(6)
)


def block(source: str) -> str:
    return f"```python\n{source}```"


@pytest.mark.parametrize(
    "reply",
    [
        block(BOT),
        BOT,
        f"It is strong.\n\n{block(BOT)}\n\nRun it with:\n```\nx\n```",
        f"```\n{BOT}```",
        f"```python\n{BOT}",  # the end of the block was cut off
    ],
)
def test_the_file_is_found(reply: str) -> None:
    written = read_bot(reply, {}, [])
    assert written.source == BOT
    assert not written.refusal


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I cannot do that.", "no Python file"),
        (block(BOT.replace("decide(", "decide((")), "not valid Python: line 2"),
        (block("(" * 10_000), "not valid Python"),
        (block("x = 1\n"), "no class that is called Bot"),
        (block(BOT.replace("Bot", "One") + BOT.replace("Bot", "Two")), "the classes One and Two, but none"),
        (block(BOT + "# filler\n" * 600_000), f"at most {MAX_BYTES:,}"),
        (block(KNOWN.replace("class Known(Base)", "class Mine") + BOT), "a copy of Known"),
        (block(BOT), "the same as in round 2"),
    ],
)
def test_fault_of_a_reply_is_one_sentence(reply: str, why: str) -> None:
    written = read_bot(reply, {"Known": KNOWN}, ["", BOT])
    assert written.source == ""
    assert why in written.refusal
    assert [*written.remarks] == [written.refusal]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("import os.path", "os"),
        ("from socket import socket", "socket"),
        ("x = open('a')", "open"),
        ("print(1)", "print"),
    ],
)
def test_remark_names_what_is_useless_in_the_sandbox(line: str, word: str) -> None:
    written = read_bot(block(f"{line}\n{BOT}"), {}, [])
    assert written.source
    (remark,) = written.remarks
    assert word in remark


def test_a_bot_that_only_resembles_a_known_one_is_no_copy() -> None:
    few = KNOWN.replace("> 4", "> 40").replace("> 5", "> 50")
    assert not read_bot(block(few + BOT), {"Known": KNOWN}, []).refusal
