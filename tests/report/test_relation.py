"""Every sentence about who is better holds for each pair of players that it names or includes."""

import pytest

from dubito.game import Measure
from dubito.report.verdicts import describe_verdict, describe_winner
from dubito.stats.rates import Rate
from dubito.stats.relation import ComparedPair, Relation
from tests.report.relation_reader import Drawn, Misread, Reader, draw

OUTCOMES = {"tie": "no significant difference", "fallbacks": "withheld", "few": "withheld", "missing": "withheld"}


def build(drawn: Drawn) -> Relation:
    pairs = {}
    for (one, other), pair in drawn.pairs.items():
        if pair.kind != "missing":
            pairs[one, other] = ComparedPair(
                Rate(pair.value, pair.low, pair.high),
                pair.kind in ("better", "worse", "fallbacks"),
                pair.worst,
                pair.best,
                (drawn.shares[one], drawn.shares[other]),
                9 if pair.kind == "few" else drawn.deals,
                is_same=pair.kind == "identical",
                more_games=pair.more_games,
                stop_test="within" if pair.close else None,
            )
    measure = Measure("score", "Score", "Score", (2, 1, 0), scale=2, span=drawn.span)
    return Relation(drawn.names, pairs, measure, drawn.deals, drawn.paired, drawn.within, limits="losses or hard wins")


@pytest.mark.parametrize("hundred", range(10))
def test_every_sentence_about_a_random_relation_is_true(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        drawn = draw(seed, plausible=seed % 2 == 0)
        relation = build(drawn)
        for place, one in enumerate(drawn.names):
            for again, other in enumerate(drawn.names):
                if one != other:
                    kind = drawn.pair(one, other).kind
                    assert relation.pair(place, again).outcome == OUTCOMES.get(kind, kind), (seed, one, other)
        try:
            Reader(drawn).read_verdict(describe_verdict(relation))
            Reader(drawn).read_headline(*describe_winner(relation))
        except Misread as error:
            raise AssertionError(f"seed {seed}: {error}") from None
