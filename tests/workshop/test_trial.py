"""Prompts tested on recorded positions: answers, causes of failure, and calls."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.experiment.call_options import CallOptions
from dubito.experiment.progress import ModelProgress
from dubito.experiment.stored import read_replayable_run
from dubito.game.log import Position
from dubito.games.dubito.bot import NODES
from dubito.games.dubito.facts import DubitoFacts, example_position
from dubito.games.dubito.game import GAME
from dubito.llm.request import AccountFault
from dubito.llm.settings import check_settings
from dubito.store.spend import Caps
from dubito.workshop import trial as trials
from dubito.workshop.recordings import RecordedPosition, read_folder, record_from_run, shipped_positions
from dubito.workshop.trial import Trial, TrialAnswer, TrialEntry, TrialOptions, trial_folder
from tests.conftest import in_gate
from tests.experiment.kit import REPO
from tests.house.kit import opinion
from tests.llm.kit import Incoming, NoWait, Response, Server, contender, error_body, respond, rows, run_games, small
from tests.workshop.kit import PLAIN, REASONED, prompt

FOUND = dict(list(read_folder(shipped_positions(GAME), GAME).items())[::4])  # two per node


def own_cards(position: Position) -> int:
    n: int = DubitoFacts().facts(position)["own_cards"]
    return n


def entry(prompt: Any = PLAIN, name: str = "p", **settings: Any) -> TrialEntry:
    base = {"model": "house-sharp", "api": "responses", "base_url": "house"}
    return TrialEntry(name, prompt, check_settings(name, base | settings))


def test_model_with_an_adviser_is_not_asked_about_single_positions() -> None:
    with pytest.raises(UsageError, match="adviser: a model that is asked about single positions cannot have one"):
        entry(adviser="Sherlock")


def run_trial(
    root: Path,
    *entries: TrialEntry,
    found: dict[str, RecordedPosition] = FOUND,
    name: str = "trial",
    watch: ModelProgress | None = None,
    **calls: Any,
) -> Trial:
    options = {"in_flight": 8, "cache": root / "cache", "offline": False, "preflight": False}
    means = TrialOptions(CallOptions(**{**options, **calls}), watch or NoWait(), lambda done: None)
    return trials.run_trial(entries, found, root / name, means)


def answers(taken: list[TrialAnswer]) -> list[object]:
    return [one.answer for one in taken]


@pytest.mark.parametrize("api", in_gate(["responses", "chat", "messages"], 1))
def test_the_answers_are_those_that_the_model_gives_to_the_prompt(tmp_path: Path, api: str) -> None:
    """The fake model's policy is called directly for comparison."""
    trial = run_trial(tmp_path, entry(PLAIN, "a", api=api), entry(REASONED, "b", api=api))
    for number, sent in enumerate((PLAIN, REASONED)):
        opinion_text = [opinion("house-sharp", str(sent.render(one.position)), Random(0)) for one in FOUND.values()]
        assert answers(trial.answers[number]) == [one.answer for one in opinion_text]
        stated = {one.recorded.digest: one.stated.stated for one in trial.answers[number] if one.stated}
        of_c = [
            (one.digest, o.stated)
            for one, o in zip(FOUND.values(), opinion_text, strict=True)
            if one.position.node == "C"
        ]
        assert stated == (dict(of_c) if sent is REASONED else {})
    assert [one.recorded for one in trial.answers[1]] == list(FOUND.values())
    assert trial.spent.calls == 2 * len(FOUND)


def test_a_trial_is_made_once_and_then_free(tmp_path: Path) -> None:
    """A trial is repeated from its folder, or from the cache in another folder, with no calls allowed."""
    entries = entry(PLAIN, model="house-random"), entry(REASONED, "b")
    first = run_trial(tmp_path, *entries)
    for name in ("trial", "another"):
        again = run_trial(tmp_path, *entries, name=name, offline=True)
        assert again.answers == first.answers
        assert again.spent.calls == 0
    with pytest.raises(AccountFault, match="the cache has no reply for p, "):
        run_trial(tmp_path, entry(PLAIN, model="house-honest"), name="third", offline=True)
    assert any(usage and usage.input for one in first.answers[0] for usage in one.usages)


def test_a_run_answers_for_the_positions_that_were_taken_from_it(tmp_path: Path) -> None:
    """The trial uses the run's cache and prompt, and the same question in the same game has the same draw."""
    player = contender("a", "house-random", prompt="reasoned")
    run_games(small(player, games=2, turns=20), tmp_path / "run")
    found = record_from_run(read_replayable_run(tmp_path / "run", REPO), NODES, 10_000)
    query = "SELECT a.game, a.seat, a.decision, d.answer FROM attempts a JOIN decisions d USING (game, seat, decision)"
    taken = {(game, seat, decision): bool(answer) for game, seat, decision, answer in rows(tmp_path / "run", query)}
    places = [(s.game, s.seat, s.decision) for one in found if one.source for s in [one.source]]
    asked = {str(place): one for one, place in zip(found, places, strict=True) if place in taken}
    trial = run_trial(tmp_path, entry(REASONED, model="house-random"), found=asked, offline=True)
    assert dict(zip(asked, answers(trial.answers[0]), strict=True)) == {str(key): value for key, value in taken.items()}
    assert len(set(taken.values())) == 2


def by_node(request: Incoming) -> Response:
    """Fail in a different way at each node: at E with a bad reply first, at C always."""
    text = json.dumps(request.body)
    (node,) = re.findall(r"\\nnode: (.)\\n", text)
    match node:
        case "A":
            return respond("responses", "Yes, I do.")
        case "B":
            return respond("responses", "I would rather not.", "refusal")
        case "C":
            return respond("responses", '{"answer": tr', "length")
        case "D":
            return Response(400, error_body("responses", "context_length_exceeded", "prompt is too long"))
        case _:
            return respond("responses", '{"answer": true}' if request.re_asked else '{"answer": "yes"}')


def test_missing_answers_are_counted_by_cause(tmp_path: Path) -> None:
    with Server(by_node) as server:
        asker = entry(model="m", base_url=server.base_url("responses"), reasks=2)
        trial = run_trial(tmp_path, asker)
        again = run_trial(tmp_path, asker)
    ended = Counter((one.recorded.position.node, one.answer, one.cause, len(one.usages)) for one in trial.answers[0])
    assert ended == {
        ("A", None, "malformed", 3): 2,
        ("B", None, "refused", 3): 2,
        ("C", None, "truncated", 3): 2,
        ("D", None, "too_long", 0): 2,
        ("E", True, None, 2): 2,
    }
    assert (again.answers, again.spent.calls) == (trial.answers, 0)
    assert rows(tmp_path / "trial", "SELECT DISTINCT node, answer, outcome FROM decisions") == [
        ("E", 1, "model_after_reask")
    ]
    assert trial.spent.calls == 2 * (3 + 3 + 3 + 1 + 2)


def test_stopped_trial_resumes_with_its_spending(tmp_path: Path) -> None:
    with pytest.raises(AccountFault, match="the budget is used up: 7 of 7 calls spent"):
        run_trial(tmp_path, entry(), caps=Caps(calls=7))
    assert len(rows(tmp_path / "trial", "SELECT 1 FROM decisions")) == 7
    with pytest.raises(AccountFault, match="the budget is used up: 7 of 7 calls spent"):
        run_trial(tmp_path, entry(), caps=Caps(calls=7))
    trial = run_trial(tmp_path, entry(), caps=Caps(calls=len(FOUND)))
    assert trial.spent.calls == len(FOUND) - 7
    assert trial.answers == run_trial(tmp_path, entry(), name="undisturbed").answers


def test_another_trial_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    run_trial(tmp_path, entry())
    for other, found in (
        (entry(REASONED), FOUND),
        (entry(max_output=99), FOUND),
        (entry(), dict(list(FOUND.items())[1:])),
    ):
        with pytest.raises(UsageError, match="trial belongs to another run: "):
            run_trial(tmp_path, other, found=found)
        assert trial_folder([other], found) != trial_folder([entry()], FOUND)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    with pytest.raises(UsageError, match="mine exists and is not a run folder"):
        run_trial(tmp_path, entry(), name="mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["file"]


def test_a_template_that_fails_is_found_before_anything_is_asked(tmp_path: Path) -> None:
    known = {own_cards(example_position(node)) for node in NODES}
    other = next(n for one in FOUND.values() if (n := own_cards(one.position)) not in known)
    bad = prompt(tmp_path, user=f"{{{{ 1 / (own_cards - {other}) }}}}")
    with pytest.raises(UsageError, match=r"user\.jinja, line 1: ZeroDivisionError"):
        run_trial(tmp_path, entry(), entry(bad, "bad"))
    assert not (tmp_path / "trial").exists()


def test_positions_without_truth_are_asked_with_draws_of_their_own(tmp_path: Path) -> None:
    bare = {name: replace(one, right=None) for name, one in FOUND.items()}
    trial = run_trial(tmp_path, entry(model="house-random"), found=bare)
    assert len(set(answers(trial.answers[0]))) == 2
    draws = rows(tmp_path / "trial", "SELECT count(DISTINCT draw) FROM attempts")
    assert draws == [(len(FOUND),)]


def test_a_body_is_billed_once_however_many_positions_share_it(tmp_path: Path) -> None:
    """The cache treats two files with the same position as one question."""
    name, one = next(iter(FOUND.items()))
    trial = run_trial(tmp_path, entry(), found={name: one, f"copy-{name}": one})
    assert trial.spent.calls == 1
    assert answers(trial.answers[0])[0] is answers(trial.answers[0])[1]


def test_a_preflight_finds_a_wrong_model_before_any_question(tmp_path: Path) -> None:
    """The preflight sends one call for each form of answer, but none if the reply is cached or the run is offline."""
    prompts = entry(PLAIN, "a", model="m"), entry(PLAIN, "b", model="m", sample=1), entry(REASONED, "c", model="m")
    with Server(lambda request: Response(404, error_body("responses", "model_not_found", "there is no m"))) as server:
        lost = [replace(one, settings=one.settings.model_copy(update={"base_url": server.base_url("responses")}))
                for one in prompts]  # fmt: skip
        with pytest.raises(AccountFault, match=r"has no model 'm'.*`model` in the entry of 'a'"):
            run_trial(tmp_path, *lost, preflight=True)
        assert len(server.requests) == 1
    house = entry(PLAIN, "a"), entry(PLAIN, "b", sample=1), entry(REASONED, "c")
    trial = run_trial(tmp_path, *house, preflight=True, name="here")
    assert trial.spent.calls == 3 * len(FOUND) + 3
    again = run_trial(tmp_path, *house, preflight=True, name="there")
    assert (again.answers, again.spent.calls) == (trial.answers, 0)
    assert run_trial(tmp_path, *house, preflight=True, offline=True, name="offline").spent.calls == 0
