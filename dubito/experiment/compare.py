"""Contenders of several runs that were dealt the same cards, paired over the deals that all the runs keep."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dubito.errors import UsageError, one_line
from dubito.experiment.contenders import Contender
from dubito.experiment.fallbacks import add_touched_contender
from dubito.experiment.stored import Identity, Named, StoredRun
from dubito.experiment.tally import Tally, add_contended


@dataclass(frozen=True, slots=True)
class Comparison:
    """The contenders of all runs, and their sums over the common deals; the tally's keys are places in the list."""

    contenders: list[Contender]
    tally: Tally


def check_comparable(runs: Sequence[StoredRun]) -> None:
    """Refuse what cannot be paired: the same run twice, no deal kept, other cards. Raises UsageError."""
    folders = [run.folder.resolve() for run in runs]
    first = runs[0]
    for place, run in enumerate(runs):
        if folders[place] in folders[:place]:
            raise UsageError(f"{run} is given twice")
        if not run.deals:
            raise UsageError(f"{run} keeps no finished deal: there is nothing to compare")
        for key, here in _dealt(run.identity).items():
            if here != (there := _dealt(first.identity)[key]):
                raise UsageError(
                    f"{first} and {run} are not dealt the same cards, so their contenders cannot be paired: "
                    f"{key} is {_brief(there)} in {first} and {_brief(here)} in {run}"
                )


def _dealt(identity: Identity) -> dict[str, Any]:
    """What decides how the cards are dealt and who draws a seat (R1, R33)."""
    return {
        "seed": identity.seed,
        "table_sizes": identity.table_sizes,
        "the number of bots in the field": len(identity.bots),
        "rules.jokers": identity.rules.get("jokers"),
    }


def caveats(runs: Sequence[StoredRun]) -> list[str]:
    """What a reader must know of a comparison of these runs, a sentence each."""
    said = [
        f"{run} is unfinished: {run.kept:,} of {run.games:,} games are kept" for run in runs if run.kept < run.games
    ]
    if len({run.deals for run in runs}) > 1:
        kept = ", ".join(f"{run} keeps {run.deals:,}" for run in runs)
        said.append(f"only the first {_common(runs):,} deals are compared, which all runs keep: {kept}")
    first = runs[0]
    for run in runs[1:]:
        if bots := _other_bots(first, run):
            said.append(f"the fields differ, so the same cards were played in other company: {bots}")
        ours, theirs = _settings(first.identity), _settings(run.identity)
        for key in sorted(ours.keys() & theirs.keys()):
            if ours[key] != theirs[key]:
                values = f"{_brief(ours[key])} in {first} and {_brief(theirs[key])} in {run}"
                said.append(f"the same cards were played under other rules: {key} is {values}")
    return said


def _settings(identity: Identity) -> dict[str, Any]:
    """What besides cards, field and contenders can change a result; runs of other versions may have more of it."""
    rules = {f"rules.{key}": value for key, value in identity.rules.items()}
    return {"bot_deadline": None, **(identity.model_extra or {}), **rules, "on_bot_error": identity.on_bot_error}


def _other_bots(first: StoredRun, run: StoredRun) -> str:
    """In what the fields differ, bot by bot; empty if in nothing."""
    pairs = zip(first.identity.bots, run.identity.bots, strict=True)
    return ", ".join(_other_bot(one, other, first, run) for one, other in pairs if one != other)


def _other_bot(one: Named, other: Named, first: StoredRun, run: StoredRun) -> str:
    ours, theirs = one.model_dump(), other.model_dump()
    if one.name != other.name:
        return f"{_brief(one.name)} in {first} is {_brief(other.name)} in {run}"
    keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return f"{_brief(one.name)} has another {one_line(' and '.join(map(str, keys)))}"


def _brief(value: Any) -> str:
    return one_line(str(value), 120)


def _common(runs: Sequence[StoredRun]) -> int:
    return min(run.deals for run in runs)


def compared(runs: Sequence[StoredRun]) -> Comparison:
    """The contenders of these runs on their common deals; raises UsageError where a game cannot be read."""
    contenders = [(contender, run) for number, run in enumerate(runs) for contender in run.contenders(number)]
    names = Counter(contender.name for contender, _ in contenders)
    tally = Tally()
    add_contended(tally, _results(tally, runs))
    return Comparison(
        [
            replace(contender, name=f"{contender.name} ({run.folder})") if names[contender.name] > 1 else contender
            for contender, run in contenders
        ],
        tally,
    )


def _results(tally: Tally, runs: Sequence[StoredRun]) -> Iterator[list[int]]:
    """The results of all contenders deal by deal; games that a fallback touched are added to the tally."""
    deals = _common(runs)
    for games_of_runs in zip(*(run.contended(deals) for run in runs), strict=True):
        games = [game for of_run in games_of_runs for game in of_run]
        for contender, (result, touched) in enumerate(games):
            if touched:
                add_touched_contender(tally, contender, result)
        yield [result for result, _ in games]
