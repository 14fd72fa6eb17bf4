"""The moment at which a model's game opens, and the words that are its own."""

from typing import Any

from dubito.report.own_words import model_moment, own_words

PROMPT = "Seat 0 played 1 card as 5s. You hold two kings and no fives. Do you doubt it?"


def _decision(turn: int, reason: str, **more: Any) -> dict[str, Any]:
    attempt = {"said": [["user", [0, 1]]], "system": [], "reasoning": reason}
    return {"turn": turn, "seat": 1, "link": f"turn-{turn}-C", "outcome": "model", "attempts": [attempt], **more}


def _story(*decisions: dict[str, Any]) -> dict[str, Any]:
    lie = {"seat": 1, "panels": {0: {"plays": [0]}}, "marks": ["bluff"], "speech": "one 7!"}
    catch = {"seat": 0, "panels": {}, "marks": ["doubt"], "caught": True}
    honest = {"seat": 0, "panels": {0: {"plays": [0, 1]}}, "marks": []}
    doubt = {"seat": 1, "panels": {}, "marks": ["doubt"]}
    plays = [[1, "1 card as 7s", [0], True, False], [0, "3 cards as 8s", [1, 2, 3], False, False]]
    return {
        "names": ["Sherlock", "local:smollm2@plan"], "pieces": [PROMPT], "shared": [], "panels": [{}], "plays": plays,
        "lie": "bluff", "turns": [lie, catch, honest, doubt], "decisions": [*decisions],
    }  # fmt: skip


def test_words_are_sentences_that_do_not_repeat_the_prompt() -> None:
    story = _story()
    for reason, own in {
        "I hold no sevens, so I must bluff.": "I hold no sevens, so I must bluff.",
        "Seat 0 played 1 card as 5s. Nobody ever plays a true five here.": "Nobody ever plays a true five here.",
        "C: seat 0 played 1 card as 5s.": "",
        "no way to decide anything, 0/0 0/0": "",
        "Yes.": "",
        "": "",
    }.items():
        assert own_words(story, _decision(1, reason)) == own


def test_game_opens_where_a_model_lied_or_erred_with_words_and_many_cards() -> None:
    lie = _decision(1, "I hold no sevens, so I must bluff.")
    error = _decision(4, "Three eights is too many to be true.", mistake=True, wrong="doubted an honest play")
    moment = model_moment(_story(lie))
    assert moment is not None
    assert moment.title == "smollm2 lied about one 7 and was caught: “I hold no sevens, so I must bluff.”"
    assert (moment.opens, moment.quote and moment.quote["turn"]) == (2, 1)
    worse = model_moment(_story(lie, error))  # four cards are on the pile, not one
    assert worse is not None
    assert worse.title == "smollm2 doubted an honest play: “Three eights is too many to be true.”"
    silent = model_moment(_story(lie, error | {"attempts": []}))
    assert silent == moment
    assert model_moment(_story()) is None


def test_best_lie_was_not_caught() -> None:
    error = _decision(4, "Three eights is too many to be true.", mistake=True, wrong="doubted an honest play")
    story = _story(_decision(1, "I hold no sevens, so I must bluff."), error)
    assert model_moment(story, only_lies=True) is None
    story["turns"][1]["caught"] = False
    best = model_moment(story, only_lies=True)
    assert best is not None
    assert (best.title.partition(":")[0], best.stake) == ("smollm2 lied about one 7 and got away with it", 1)
