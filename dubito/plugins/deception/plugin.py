"""Register `dubito deception`, and its page in reports."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dubito.hooks import Command, hookimpl

if TYPE_CHECKING:
    from dubito.experiment.lies import LieCounts
    from dubito.experiment.stored import Run
    from dubito.report.tables import Page


@hookimpl
def commands() -> Mapping[str, Command]:
    return {"deception": Command("Results", "dubito.plugins.deception.command:deception")}


@hookimpl
def report_pages(run: "Run", lies: "LieCounts | None") -> "Sequence[Page]":
    if lies is None or not run.game.has_lie_marks:
        return []
    from dubito.plugins.deception.pages import page_of_report  # imported late because every command loads this file

    return [page_of_report(run, lies)]
