"""A person plays on from a turn of a run's game."""

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.experiment.stored import open_recorded_run
from dubito.game.moves import output_of
from dubito.report.share import saved_record, shared_file, shared_page
from dubito.show.moment import RunMoment, find_moment
from dubito.show.opponents import bots_of_game
from dubito.show.person import Sitting, seat_person, set_up_saved
from dubito.show.run import ReplayedGames
from tests.cli.kit import Shell
from tests.play.conftest import Play
from tests.seats.test_program import EXAMPLES, write_config
from tests.web.kit import serve

BOTS = ("run", "--bots", "UsualBot,AdaptyBoi,SusBoi,Sherlock", "--games", "6", "--output", "bots", "--quiet")
GAME, TURN = 3, 9


@pytest.fixture
def moment(shell: Shell) -> RunMoment:
    assert shell(*BOTS).code == 0
    with open_recorded_run(Path("bots")) as run:
        return find_moment(run, GAME, TURN)


def _outputs(number: int) -> list[Any]:
    with open_recorded_run(Path("bots")) as run:
        session, _, _ = ReplayedGames(run).replay(number)
        return [run.game.output_to_json(move.output) for move in session]


def _take_over(moment: RunMoment) -> Sitting:
    return seat_person(bots_of_game("dubito"), moment.set_up(), 0)


def _begin(sitting: Sitting) -> None:
    while not sitting.is_asked:
        sitting.step()


def test_person_with_the_runs_moves_gets_the_runs_game(moment: RunMoment) -> None:
    played, sitting = _outputs(GAME), _take_over(moment)
    _begin(sitting)
    assert sitting.state.turns_played + 1 == TURN
    while not sitting.state.over:
        output = output_of(sitting.game, played[len(sitting.outputs)])
        sitting.step(output if sitting.is_asked else None)
    assert sitting.outputs == played


def test_review_and_record_begin_at_the_moment(moment: RunMoment) -> None:
    sitting = _take_over(moment)
    with pytest.raises(Exception, match="it is not your turn"):
        sitting.step(output_of(sitting.game, sitting.setup.begun[0]))
    _begin(sitting)
    review = sitting.review_lies()
    assert (review.lies, review.faced) == (0, 0)
    again = _take_over(moment)
    again.replay(sitting.outputs, again.step)
    assert again.is_asked
    assert again.log == sitting.log
    assert sitting.setup.replay_command(sitting.game) == "dubito play --from bots:3:9 --seat 2"


def test_bot_that_now_fails_is_named(moment: RunMoment, monkeypatch: pytest.MonkeyPatch) -> None:
    sitting = _take_over(moment)
    first = sitting._table.players[0]
    assert first is not None
    monkeypatch.setattr(type(first), "play", lambda self, view: 1 // 0)
    with pytest.raises(UsageError, match="now fails in turn 1: "):
        sitting.step()


def test_terminal_tells_the_turns_before_and_saves_the_whole_game(play: Play, moment: RunMoment) -> None:
    result = play("--from", "bots:3:9", "--pace", "0", typed="log\n")
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert lines[0] == "Players, in playing order: Sherlock 0, SusBoi 1, you, SusBoi 3, Sherlock 4."
    assert [line[:4].strip() for line in lines[5:13]] == [str(turn) for turn in range(1, TURN)]
    whatever = "ace\n2\n3\n4\n5\n6\n7\n8\n9\n10\njack\nqueen\nking\ndoubt\njoker as 7\njoker\n" * 1000
    over = play("--from", "bots:3:9", "--pace", "0", "--save", "mine.json", typed=whatever)
    assert over.code == 0
    assert "To play the same cards again: dubito play --from bots:3:9 --seat 2" in over.out
    kept = json.loads(Path("mine.json").read_text(encoding="utf-8"))
    assert kept["outputs"][: len(moment.start.moves)] == _outputs(GAME)[: len(moment.start.moves)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--from", "bots:3:900"), "game 3 of bots has no turn 900; its turns are 1 to 91"),
        (("--from", "bots:9"), "bots:9 is not a moment; write RUN:GAME:TURN, such as runs/first:12:7"),
        (("--from", "bots:3:9", "--seat", "5"), "--seat 5: choose a seat from 0 to 4"),
        (("--from", "bots:3:9", "--seed", "1"), "--seed cannot change a moment of a run; leave it out"),
        (("--from", "bots:3:9", "--set", "hand=1"), "hand: seat 2 cannot hold these cards; give 9"),
        (("--from", "bots:3:9", "--set", "x=1"), "--set x=1: unknown; known: hand=2,2,7,0 (0 is a joker)"),
        (("--from", "bots:3:88", "--seat", "0", "--worlds", "sampled"), "seat 0 left the game before this moment"),
        (("--set", "hand=1"), "--set needs --from"),
        (("--worlds", "sampled"), "--worlds needs --from"),
        (("--from", "bots:3:9", "--ranks", "5"), "--from uses the run's players and rules; leave out the"),
        (("SusBoi", "--from", "bots:3:9"), "--from uses the run's players and rules; leave out the"),
    ],
)
@pytest.mark.usefixtures("moment")
def test_what_does_not_fit_a_moment_is_refused(play: Play, words: tuple[str, ...], sentence: str) -> None:
    result = play(*words)
    assert result.code == 2
    assert result.err.startswith(f"dubito: {sentence}")


HAND = "hand=1,1,2,6,6,7,9,10,7"


def _changed(moment: RunMoment, **changes: Any) -> Sitting:
    sitting = seat_person(bots_of_game("dubito"), moment.set_up(**changes), 0)
    _begin(sitting)
    return sitting


def test_person_can_hold_other_cards(moment: RunMoment) -> None:
    sitting = _changed(moment, settings=[HAND])
    assert sorted(sitting.state.hands[sitting.me].cards) == [1, 1, 2, 6, 6, 7, 7, 9, 10]  # type: ignore[attr-defined]
    assert [text for _, text in sitting.log] == [text for _, text in _changed(moment).log]
    assert sitting.setup.replay_command(sitting.game) == f"dubito play --from bots:3:9 --seat 2 --set {HAND}"


def test_person_sees_the_same_in_sampled_worlds(moment: RunMoment) -> None:
    """The person's seat need not be the one to move."""
    real, sitting = _changed(moment, seat=3), _changed(moment, seat=3, sample="7")
    assert sitting.words.hand(sitting.state, 3) == real.words.hand(real.state, 3)
    before = len(sitting.setup.begun)
    assert sitting.log[:before] == real.log[:before]
    assert sitting.outputs[:before] != real.outputs[:before]
    assert sitting.setup.replay_command(sitting.game) == (
        "dubito play --from bots:3:9 --seat 3 --worlds sampled --seed 7"
    )


def test_game_with_changed_cards_is_verified_and_played_on(play: Play, shell: Shell, moment: RunMoment) -> None:
    del moment
    whatever = "ace\n2\n3\n4\n5\n6\n7\n8\n9\n10\njack\nqueen\nking\ndoubt\njoker as 7\njoker\n" * 1000
    words = ("--set", HAND, "--worlds", "sampled", "--seed", "7")
    assert play("--from", "bots:3:9", *words, "--pace", "0", "--save", "mine.json", typed=whatever).code == 0
    result = shell("replay", "mine.json")
    assert (result.code, result.out.partition(":")[0]) == (0, "identical")
    game, record = saved_record(Path("mine.json"))
    again = seat_person(bots_of_game("dubito"), set_up_saved(game, record, TURN, 2), 0)
    _begin(again)
    assert again.outputs == record.outputs[: len(again.outputs)]
    assert Counter(again.state.hands[2].cards) == Counter([1, 1, 2, 6, 6, 7, 7, 9, 10])  # type: ignore[attr-defined]
    assert "Play these cards" not in shared_page(shared_file(Path("mine.json")))
    for bad in ({"seat": 9}, {"settings": ["x"]}, {"outputs": [{"doubt": True}]}):
        text = json.loads(Path("mine.json").read_text("utf-8"))
        Path("bad.json").write_text(json.dumps(text | {"change": text["change"] | bad}), "utf-8")
        result = shell("replay", "bad.json")
        assert (result.code, len(result.err.splitlines())) == (2, 1)


def test_programs_cannot_be_moved_to_a_moment(play: Play, shell: Shell) -> None:
    shutil.copytree(EXAMPLES, shell.folder / "programs")
    program = {"name": "mine", "process": [sys.executable, "programs/honest.py"]}
    write_config(shell.folder, games=1, bots=[program])
    assert shell("run", "config.yaml", "--output", "run").code == 0
    result = play("--from", "run:0:1")
    assert result.code == 2
    assert result.err.endswith("is a program, which can only play a game from its start\n")


def test_page_offers_the_moment_and_reload_keeps_it(moment: RunMoment, tmp_path: Path) -> None:
    with serve(tmp_path / "games") as server:
        browser = server.browser()
        assert "Play on from here" not in browser("GET", "/").text
        refused = browser.post("/api/moment", {})
        assert (refused.status, refused.json["error"]) == (
            404,
            "This server offers no moment of a run. Start it with --from RUN:GAME:TURN.",
        )
        server.tables.moment = moment.set_up()
        page = browser("GET", "/").text
        assert "Turn 9 of game 3 of bots" in page
        assert "You take over seat 2, against Sherlock, SusBoi, SusBoi and Sherlock." in page
        seen = browser.post("/api/moment", {}).json
        assert (seen["turn"], seen["asked"], seen["me"]) == (TURN - 1, True, moment.seat)
        server.tables.close()  # the file is all that is left
        again = browser("GET", "/api/table").json
        assert again["frames"] == seen["frames"]
        assert again["asked"]


def test_web_command_refuses_other_rules_and_configs(shell: Shell, moment: RunMoment) -> None:
    del moment
    for words, sentence in (
        (("--ranks", "5"), "--from uses the run's players and rules; leave out the other arguments"),
        (("--game", "bs"), "--game cannot change a moment of a run; leave it out"),
        (("c.yaml",), "--from uses the run's players and rules; leave out the other arguments"),
    ):
        result = shell("web", "--from", "bots:3:9", "--port", "0", "--no-browser", *words)
        assert (result.code, result.err) == (2, f"dubito: {sentence}\n")
