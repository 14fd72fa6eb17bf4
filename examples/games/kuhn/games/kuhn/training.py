"""Kuhn poker for OpenSpiel and PettingZoo."""

from dubito.plugins.openspiel.course import Course, Feature, Stage, draw, hand_feature, node_feature
from games.kuhn.game import CARDS, GAME, KuhnState

ACTS = ("pass", "bet")


class KuhnCourse(Course):
    """Actions 0 and 1 are pass and bet; all chance is the deal."""

    game, zero_sum = GAME, True
    kinds = drawn = CARDS
    done = ACTS
    observed = (
        node_feature(["act"]),
        hand_feature(CARDS),
        Feature("bets", 1, lambda course, seat: [course.engine.acts[seat::2].count("bet")], around=True),
    )
    longest, most_rows = 5, 7  # two cards and three acts; the deal, the card, three acts and two own answers
    width = 3

    def deal(self) -> Stage:
        first = yield draw("deal", range(3))
        second = yield draw("deal", {0, 1, 2} - {first})
        self.finish_deal(KuhnState((first, second)))
