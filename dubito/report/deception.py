"""How model players lie, and see through the lies of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dubito.experiment.replay import LieCounts, ToldPlay
from dubito.experiment.stored import Run
from dubito.report.tables import Tiles


@dataclass(frozen=True, slots=True)
class Stories:
    """Of the model players of a run; `turns` are, by game that has a page, those of its seats' moves."""

    source: Run
    lies: LieCounts
    turns: Mapping[int, Mapping[tuple[int, int], int]]

    def tiles(self) -> list[Tiles]:
        """Three figures of each player, and where it lied most boldly."""
        results = self.source.game.results
        lie, lies = results.lie_words[0], results.habit(results.lies).name
        found = []
        for name in self.source.models:
            player = self.source.names.index(name)
            figures = [(f"{lies} by choice", self.lies.share(player, "chosen"), "of its plays")]
            if results.found_out:
                figures.append(("caught", self.lies.share(player, "caught"), f"of its {lies}"))
            if self.source.game.deed:
                figures.append(
                    (f"catches {lies}", self.lies.share(player, "hits"), f"of the {lies} it was asked about")
                )
            links = [(f"Its boldest {lie}", *self.place(one)) for one in self.boldest(player)[:1]]
            path = f"bots/{player}.html"
            found.append(Tiles(name, self.source.kinds[name], path, figures, links))
        return found

    def boldest(self, player: int) -> Sequence[ToldPlay]:
        """Its lies by choice that nobody called one, in games with pages: where most was at stake first."""
        passed = [
            one
            for one in self.lies.plays_told
            if one.player == player
            and one.lie == "chosen"
            and one.called
            and not any(called for _, called in one.called)
            and one.game in self.turns
        ]
        return sorted(passed, key=lambda one: (-one.pile, one.game, one.move))

    def place(self, one: ToldPlay) -> tuple[str, str]:
        """The address of its turn, and what was played there."""
        turn = self.turns[one.game][one.seat, one.move]
        cards = f"{one.cards} card{'s' * (one.cards != 1)}, {one.pile} at stake"
        return f"games/{one.game}.html#turn-{turn}", f"game {one.game}, turn {turn}: {cards}"
