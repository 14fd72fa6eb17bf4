"""A prompt does not reveal names. Hidden cards are not part of the logs from which prompts are rendered."""

import pytest

from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, step
from dubito.games.dubito.engine import Rules, deal_table
from tests.conftest import in_gate
from tests.prompts.kit import PROMPTS, RULES, asked_bot, by_temper, record_questions


@pytest.mark.parametrize("rules", in_gate(RULES[:2], 1), ids=str)
def test_names_of_players_and_bots_reach_no_prompt(rules: Rules) -> None:
    def texts(names: list[str]) -> list[str]:
        bot = asked_bot(by_temper)
        table = deal_table([Entrant(name, bot) for name in names], rules, DealStreams(3, 3), deal=3)
        record_questions(table, rules)
        rendered = []
        while not table.state.over:
            player = table.players[table.state.seat]
            assert isinstance(player, bot)
            step(table)
            rendered += [str(prompt.render(position)) for position in player.asked[-1:] for prompt in PROMPTS.values()]
        return rendered

    lines = texts(["Zorro-17", "Ötzi", "RandomBoi", "seat 9"])
    assert len(lines) > 20
    assert lines == texts(["a", "b", "c", "d"])
    assert not any(name in text for text in lines for name in ("Zorro", "Ötzi", "RandomBoi", "seat 9"))
