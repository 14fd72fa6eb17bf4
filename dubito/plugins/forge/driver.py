"""Play a game with a bot that a model wrote: `python3 driver.py bot.py`. Only uses the standard library.

It runs in the sandbox, and speaks the protocol of docs/programs.md. The bot's file is executed again for each game.
"""

import json
import random
import sys
import traceback
from typing import Any, TextIO

MAX_REASON = 300  # characters; a line of the protocol is short
NAME = "bot.py"  # the bot's file in its own error messages


class Driver:
    """The bot of the current game."""

    def __init__(self, source: bytes, answers: TextIO) -> None:
        self._source, self._answers = source, answers
        self._bot: Any = None
        self._facts: dict[str, Any] = {}

    def handle(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "hello":
            random.seed(message["seed"])
            namespace: dict[str, Any] = {"__name__": "bot", "__file__": sys.argv[1]}
            exec(compile(self._source, NAME, "exec"), namespace)  # noqa: S102, the sandbox is for this
            self._facts = message["facts"]
            self._bot = namespace["Bot"]({key: value for key, value in message.items() if key != "type"})
            self._answer({"ready": True, "resets": True})
        elif kind == "event" and hasattr(self._bot, "observe"):
            self._bot.observe(message["event"], message["data"])
        elif kind == "decide":
            facts = {**self._facts, **message["facts"]}
            answer = {"answer": self._bot.decide(message["node"], facts, message["legal"])}
            reason = getattr(self._bot, "reason", "")
            self._answer({**answer, "reason": str(reason)[:MAX_REASON]} if reason else answer)

    def _answer(self, content: dict[str, Any]) -> None:
        self._answers.write(json.dumps(content) + "\n")
        self._answers.flush()


def describe_error(error: BaseException) -> str:
    """Return an error in one line, with the last line of the bot's file that it came from."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]
    line = own[-1].lineno if own else getattr(error, "lineno", None)
    return f"{NAME}, line {line}: {type(error).__name__}: {error}"


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what the bot prints is not an answer
    with open(sys.argv[1], "rb") as file:
        driver = Driver(file.read(), answers)
    for line in sys.stdin:
        try:
            driver.handle(json.loads(line))
        except BaseException as error:
            sys.stderr.write(describe_error(error) + "\n")
            sys.exit(1)


if __name__ == "__main__":
    main()
