"""A bot of Dubito as a program: it never bluffs, plays as many cards as it can, and doubts only to stop a win.

docs/programs.md describes the messages.
"""

import json
import sys


def answer(node: str, facts: dict[str, bool]) -> bool:
    if node == "C":  # doubt the last play?
        return facts["prev_about_to_win"]
    return node in ("B", "E")  # play as many cards as possible; A and D: bluff?


for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        # This program keeps nothing from one game to the next.
        reply = {"ready": True, "resets": True}
    elif message["type"] == "decide":
        reply = {"answer": answer(message["node"], message["facts"])}
    else:  # `event` and `end` need no reply
        continue
    print(json.dumps(reply), flush=True)
