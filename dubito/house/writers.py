"""Built-in models that write bots, for `dubito forge`. Each but the first makes one mistake.

Their bots answer yes-or-no questions by the question's name, and other questions with the first legal answer.
"""

import re
from collections.abc import Callable, Mapping
from textwrap import indent
from typing import Final

from dubito.packages import own_folder

_ROUND: Final = re.compile(r"^Write round (\d+)", re.MULTILINE)
_WEAK: Final = "True"
_FAIR: Final = 'node in "BE"'
_GOOD: Final = 'facts.get("prev_about_to_win", False) if node == "C" else node in "BE"'
_RISING: Final = (_WEAK, _FAIR, _GOOD)
_FENCE: Final = "```"


def _build_bot(answer: str, first: str = "", before: str = "pass") -> str:
    """Return a bot's file. `first` comes before its class, and `before` is the beginning of `decide`."""
    return (
        f"{first}\n\nclass Bot:\n    def __init__(self, hello):\n        self.hello = hello\n\n"
        f"    def observe(self, event, data):\n        pass\n\n"
        f"    def decide(self, node, facts, legal):\n{indent(before, ' ' * 8)}\n"
        f"        if legal and not isinstance(legal[0], bool):\n            return legal[0]\n        return {answer}\n"
    ).lstrip()


def _fence(source: str) -> str:
    return f"{_FENCE}python\n{source}{_FENCE}\n"


# It looks for the files of the forge, which contain the cards of its games, and for the network.
_SPY: Final = """
import os
import socket


def spy():
    above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for place in (".", above, os.path.dirname(above)):
        for folder, _, names in os.walk(place):
            for name in names:
                if name in ("run.db", "manifest.json", "config.yaml"):
                    with open(os.path.join(folder, name), "rb"):
                        raise SystemExit(f"it read {name}")
    try:
        socket.create_connection(("127.0.0.1", 22), 0.2).close()
    except OSError:
        return
    raise SystemExit("it used the network")


spy()
"""
# It knows the seed of the training deals, and recognizes each from the number that its program gets.
_OVERFIT: Final = """
import hashlib

TRAINING = set()
for deal in range(400):
    for seat in range(8):
        text = f'["draw",1,0,{deal},{seat},-1,0,0]'
        TRAINING.add(int(hashlib.sha256(text.encode()).hexdigest()[:12], 16))
"""
_CLASSES: Final = "class One:\n    def decide(self, node, facts, legal):\n        return True\n\n\n"


def _copy() -> str:
    """Return the file of a bot that comes with Dubito, with a class around it."""
    known = (own_folder("bots") / "manual" / "usual_bot.py").read_text("utf-8")
    kept = [line for line in known.splitlines() if not line.startswith(("from ", "import "))]
    return _build_bot(_FAIR, "\n".join(kept).replace("(BotBase)", "").replace("TurnData", "object"))


def _rising(text: str) -> str:
    written = _ROUND.findall(text)
    return _fence(_build_bot(_RISING[min(int(written[-1]) if written else 1, len(_RISING)) - 1]))


def asks_for_bot(text: str) -> bool:
    return _ROUND.search(text) is not None


WRITERS: Final[Mapping[str, Callable[[str], str]]] = {
    "house-writer": _rising,
    "house-writer-syntax": lambda _: _fence(_build_bot(_FAIR).replace("def decide(", "def decide((")),
    "house-writer-loop": lambda _: _fence(_build_bot(_FAIR, before="while True:\n    pass")),
    "house-writer-huge": lambda _: _fence(_build_bot(_FAIR, "# filler\n" * 600_000)),
    "house-writer-spy": lambda _: _fence(_build_bot(_FAIR, _SPY)),
    "house-writer-copy": lambda _: _fence(_copy()),
    "house-writer-overfit": lambda _: _fence(
        _build_bot(f'({_GOOD}) if self.hello["seed"] in TRAINING else {_WEAK}', _OVERFIT)
    ),
    "house-writer-same": lambda _: _fence(_build_bot(_FAIR)),
    "house-writer-prose": lambda _: (
        f"Here is my bot.\n\n{_fence(_build_bot(_FAIR))}\nIt wins. Like `this`: {_FENCE}\nx\n{_FENCE}"
    ),
    "house-writer-classes": lambda _: _fence(_CLASSES + _CLASSES.replace("One", "Two")),
    "house-writer-print": lambda _: _fence(_build_bot(_FAIR, before="print('thinking', node)")),
}
