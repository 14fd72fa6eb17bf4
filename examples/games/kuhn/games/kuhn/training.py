"""Kuhn poker for OpenSpiel and PettingZoo."""

from dubito.plugins.openspiel.course import Course, Stage, draw
from dubito.plugins.openspiel.features import Feature, hand_feature, node_feature
from games.kuhn.game import ACTS, CARDS, GAME, KuhnState


class KuhnCourse(Course):
    """Actions 0 and 1 are pass and bet. The deal is the only chance."""

    game, zero_sum = GAME, True
    kinds = drawn = CARDS
    done = ACTS
    observed = (
        node_feature(["act"]),
        hand_feature(CARDS),
        Feature("bets", 1, lambda course, seat: [course.engine.acts[seat::2].count("bet")], around=True),
    )
    longest = 5  # two cards and three acts
    most_rows, width = 7, 3  # the deal, the card, three acts and two answers of the seat

    def deal(self) -> Stage:
        first = yield draw("deal", range(3))
        second = yield draw("deal", {0, 1, 2} - {first})
        self.finish_deal(KuhnState((first, second)))
