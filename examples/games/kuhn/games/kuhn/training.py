"""Kuhn poker for OpenSpiel and PettingZoo."""

from typing import Any

from dubito.plugins.openspiel.course import Course, Feature, Recall, Stage, draw, hand_feature, node_feature
from games.kuhn.game import CARDS, GAME, ActEvent, KuhnState

ACTS = ("pass", "bet")


class KuhnRecall(Recall):
    """A row for each act that a seat has seen: 1 a pass, 2 a bet."""

    columns = {"act": 1}

    def see(self, event: Any) -> None:
        if isinstance(event, ActEvent):
            self.begin(act=1 + ACTS.index(event.act))


class KuhnCourse(Course):
    """Actions 0 and 1 are pass and bet; all chance is the deal."""

    game, zero_sum = GAME, True
    kinds = drawn = CARDS
    done = ACTS
    recalls, rows = KuhnRecall, "acts"
    observed = (
        node_feature(["act"]),
        hand_feature(CARDS),
        Feature("bets", 1, lambda course, seat: [course.engine.acts[seat::2].count("bet")], around=True),
    )
    longest, most_rows = 5, 3  # two cards and three acts

    def deal(self) -> Stage:
        first = yield draw("deal", range(3))
        second = yield draw("deal", {0, 1, 2} - {first})
        self.finish_deal(KuhnState((first, second)))
