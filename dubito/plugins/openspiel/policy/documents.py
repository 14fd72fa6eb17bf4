"""The object that `dubito policy --json` prints."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from dubito.game import PlayerKind
from dubito.plugins.openspiel.policy.report import Findings
from dubito.plugins.openspiel.policy.values import nash_conv
from dubito.report.documents import Document, DocumentPart


class PolicyResult(DocumentPart):
    """How exploitable a player is."""

    name: str
    kind: PlayerKind
    nash_conv: float = Field(description="what best responses win, summed over the seats; 0 means unbeatable")
    draws: int | None = Field(description="actions counted in each state; null if it stated probabilities")
    fallbacks: int = Field(description="number of states without a usable answer, which count as random play")


class PolicyObject(Document):
    """The strategies of players in a small game."""

    format: Literal["dubito policy 1"] = "dubito policy 1"
    game: str = Field(description="with its rules")
    states: int = Field(description="number of information states")
    players: list[PolicyResult]
    folder: str


def build_document(findings: Findings, folder: Path) -> PolicyObject:
    players = [
        PolicyResult(
            name=one.name,
            kind=findings.kinds[one.name],
            nash_conv=nash_conv(findings.tree, one.rows),
            draws=one.draws,
            fallbacks=len(one.failures),
        )
        for one in findings.statements
    ]
    return PolicyObject(game=findings.game.name, states=len(findings.tree.states), players=players, folder=str(folder))
