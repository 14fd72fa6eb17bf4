"""A model player that fails in a turn continues, and knows which cards the fallback played (R13)."""

from pathlib import Path

from tests.cli.kit import Shell
from tests.llm.kit import contender, rows, run_cli

ONCE = """
from bots.llms.openai_bot import OpenAIBot


class OnceBot(OpenAIBot):
    turn = 0

    def play(self, p):
        self.turn += 1
        output = super().play(p)
        if self.turn in (2, 4):
            raise RuntimeError("a turn that fails")
        return output
"""


def test_fallback_turn_is_remembered_as_the_players_own(shell: Shell) -> None:
    shell.bot("once_bot.py", ONCE, "llms")
    player = contender("one", "house-honest", bot="OnceBot")
    result = run_cli(shell, player, games=1, on_bot_error="fallback", rules={"max_turns": 40})
    assert result.code == 0, result.err
    (line,) = [line for line in result.out.splitlines() if "The fallback played" in line]
    failed = int(line.split("The fallback played ")[1].split()[0])
    assert failed == 2, "only the turns that were made to fail"
    assert rows(Path("r"), "SELECT count(*) FROM decisions")[0][0] > 10
