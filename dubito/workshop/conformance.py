"""What a game keeps to, tried on games that are played: what `dubito games check` says, a line a flaw.

Each probe is a function of the game under check. What the code of a game, a bot or a prompt raises meanwhile is a
flaw too, in the file where it was raised. Whether a seat is told what it cannot know is tried in leaks.py.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from importlib import import_module
from itertools import chain
from random import Random
from statistics import mean
from tempfile import TemporaryDirectory
from traceback import extract_tb
from typing import Any, Final, NamedTuple

from dubito.errors import BotError, DubitoError, IllegalOutput, UsageError, one_line
from dubito.game import Choice, Game, GameEvent, Player, Text
from dubito.game.flaws import flaws_of_ending, flaws_of_position
from dubito.game.packages import games_path
from dubito.game.record import records_of, require_whole_game
from dubito.game.words import ME, words_of
from dubito.llm.prompts import Prompt, load_prompt
from dubito.show.session import Session, session_of_record, table_moves
from dubito.stats.tally import outcome_of, unpack_outcome
from dubito.workshop.caps import check_caps
from dubito.workshop.hangs import CallHangs, watch_for_hangs
from dubito.workshop.leaks import check_leaks, check_stale_cards
from dubito.workshop.listed import check_lists, check_prompt_lists, check_shapes
from dubito.workshop.pictures import line_of
from dubito.workshop.recordings import Origin, record_positions
from dubito.workshop.refusals import check_refusals
from dubito.workshop.sharing import check_handed_out, check_shared_data
from dubito.workshop.subject import DEALS_PER_SIZE, Flaw, Subject

_MAX_CHANCE_GAP: Final = (
    0.2  # of a measure's mean from what it is said to be if all are alike, from which on that is suspect
)
_COMMAND_TIMEOUT: Final = 600  # seconds of a command in another process
_WIN_WORD: Final = re.compile(r"\b(won|wins?|winner)\b")
_LOSS_WORD: Final = re.compile(r"\b(lost|loss|loses?|loser)\b")
_WINS: Final = re.compile(r"Player(\d+)Z (?:wins|won|has won)\b")
_HOSTILE_TEXT: Final = '"}<|{{7}}'  # what can be said wherever anything can
_NO_POSITIONS: Final = ("", "null", "[]", "{}", "7", '{"seat": "x", "node": 1}')


Probe = Callable[[Subject], Iterator[Flaw]]


def find_flaws(subject: Subject, more: Sequence[Probe] = (), quick: bool = False) -> Iterator[Flaw]:
    """What is found wrong, the first faults first: where games do not end, or are not sound, no more is tried of them.

    `more` are checks of plugins. A `quick` check starts no other process.
    """
    then = (*_LATER_PROBES, *more)
    return run_probes(
        subject,
        (check_shared_data,),
        (check_shapes,),
        _FIRST_PROBES,
        _SOUNDNESS_PROBES,
        then,
        (check_leaks,),
        () if quick else (_check_runs,),
    )


def run_probes(subject: Subject, *stages: Sequence[Probe]) -> Iterator[Flaw]:
    """What these probes find wrong, each flaw once; the first stage that finds a sure one is the last."""
    told = set[Flaw]()
    try:
        with watch_for_hangs(subject):
            for probes in stages:
                for flaw in chain.from_iterable(_run_probe(subject, probe) for probe in probes):
                    if flaw not in told:
                        told.add(flaw)
                        yield flaw
                if any(flaw.sure for flaw in told):
                    return
    except CallHangs as error:
        yield error.flaw


def _run_probe(subject: Subject, probe: Probe) -> Iterator[Flaw]:
    """What a probe finds, and what is raised meanwhile."""
    try:
        yield from probe(subject)
    except BotError as error:
        bot = subject.registry.bots.get(error.bot)
        yield Flaw(subject.shown(bot.file) if bot else subject.main, str(error))
    except DubitoError as error:
        yield Flaw(subject.main, str(error))
    except Exception as error:  # foreign code
        yield _describe_exception(subject, error)


def _describe_exception(subject: Subject, error: Exception) -> Flaw:
    """The last line of the game's own that was run."""
    if isinstance(error.__cause__, StopIteration):  # which left one of our generators as something else
        error = error.__cause__
    own = [frame for frame in extract_tb(error.__traceback__) if frame.filename.startswith(str(subject.folder))]
    what = one_line(f"{type(error).__name__}: {error}", 200)
    if not own:
        return Flaw(subject.main, f"what it gives cannot be used: {what}")
    return Flaw(subject.shown(own[-1].filename), f"{own[-1].name} raises {what} (line {own[-1].lineno})")


def _check_bots(subject: Subject) -> Iterator[Flaw]:
    registry, folder = subject.registry, f"bots/manual/{subject.game.folder}"
    for broken in registry.broken:
        yield Flaw(subject.shown(broken.file), broken.reason)
    if not registry.hand_written():
        yield Flaw(subject.main, f"no bot plays it: put one into {folder}")
    base = _object_at(subject.game.base_path)
    if not (isinstance(base, type) and issubclass(base, subject.game.base)):
        yield Flaw(subject.main, f"base_path is {subject.game.base_path}, which is not {subject.game.base.__name__}")
    if registry.hand_written() and subject.game.fallback not in registry.bots:
        yield Flaw(subject.main, f"fallback names {subject.game.fallback}, which is no bot in {folder}")
    for bot in registry.hand_written():
        file = subject.shown(bot.file)
        if bot.summary == "(no docstring)":
            yield Flaw(file, f"{bot.name} has no docstring: its first line is what `dubito bots` says of it")
        if not bot.repeatable:
            yield Flaw(file, f"{bot.name} draws from outside self.rng: its games cannot be played again")
        if bot.missing:
            yield Flaw(file, f"{bot.name} does not answer {', '.join(bot.missing)}")


def _object_at(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name, None)
    except (ImportError, ValueError):
        return None


def _check_endings(subject: Subject) -> Iterator[Flaw]:
    yield from check_stale_cards(subject)
    assert subject.outputs


def _check_repeatable(subject: Subject) -> Iterator[Flaw]:
    """The same deal and the same moves are the same game."""
    for deal, seats in subject.deals:
        state = subject.state(deal, seats)
        try:
            for output in subject.outputs[deal, seats]:
                state.apply(output)
        except IllegalOutput:
            yield Flaw(subject.main, f"deal {deal} goes another way when it is played again: draw from `chance` alone")
            return


def _check_first_question(subject: Subject) -> Iterator[Flaw]:
    if subject.game.module("facts") is not None:
        for flaw in flaws_of_position(subject.game.facts.example_position(subject.game.nodes[0].name)):
            yield Flaw(subject.file("facts.py"), flaw)


def _check_whole_games(subject: Subject) -> Iterator[Flaw]:
    for deal, seats in subject.deals:
        state, turns = subject.state(deal, seats), 0
        yield from _check_event(subject, state.start, seats, "start")
        for output in subject.outputs[deal, seats]:
            if not (type(state.seat) is int and 0 <= state.seat < seats):
                yield Flaw(subject.main, f"seat is {state.seat!r} in a game of {seats} seats")
            if not (type(state.turns_played) is int and state.turns_played >= turns):
                yield Flaw(subject.main, f"turns_played is {state.turns_played!r} after it was {turns}")
            turns = state.turns_played
            if not subject.game.walk:
                yield from _check_question(subject, state, output)
            for event in state.apply(output):
                yield from _check_event(subject, event, seats, "apply")
        if not _is_refused(state, output):
            yield Flaw(subject.main, "apply takes a move after the game is over: raise IllegalOutput")
        for flaw in flaws_of_ending(state.ending(), subject.game.results, seats):
            yield Flaw(subject.main, flaw)
        if state.ending() != state.ending():
            yield Flaw(subject.main, "ending() says something else when it is asked again")


def _check_question(subject: Subject, state: Any, output: Any) -> Iterator[Flaw]:
    view = state.view()
    kind, answer = subject.game.node(view.node).answer, subject.game.answer_of(view.node, output)
    if isinstance(kind, Choice) and kind.options and answer not in kind.options:
        yield Flaw(subject.main, f"a move at node {view.node} is {one_line(repr(answer), 40)}, none of its Choice")
    why = view.why_illegal(output)
    if why is not None:
        yield Flaw(subject.main, f"view().why_illegal says {why!r} of a move that apply takes")


def _check_event(subject: Subject, event: Any, seats: int, source: str) -> Iterator[Flaw]:
    name = type(event).__name__
    if not isinstance(event, GameEvent):
        yield Flaw(subject.main, f"{source} gives {name}, which is no GameEvent: bots observe nothing else")
        return
    for fact in ("only", "leaves"):
        if (seat := getattr(event, fact)) not in (None, *range(seats)):
            yield Flaw(subject.main, f"{name}.{fact} is {seat!r} in a game of {seats} seats")
    if is_dataclass(event) and not type(event).__dataclass_params__.frozen:
        yield Flaw(subject.main, f"{name} can be changed by whoever observes it: make it frozen")


def _is_refused(state: Any, output: Any) -> bool:
    try:
        state.apply(output)
    except IllegalOutput:
        return True
    return False


def _check_silent_apply(subject: Subject) -> Iterator[Flaw]:
    """With `announce` off no event is made, and the game is the same one."""
    for deal, seats in subject.deals:
        quiet, told = subject.state(deal, seats), subject.state(deal, seats)
        for output in subject.outputs[deal, seats]:
            quiet.apply(output, False)
            told.apply(output)
        if quiet.over != told.over or quiet.ending() != told.ending():
            yield Flaw(subject.main, "the game goes another way where apply is called with announce=False")


def _check_json(subject: Subject) -> Iterator[Flaw]:
    """A deal, its outputs as JSON, and its record give the same game again."""
    game = subject.game
    for deal, seats in subject.deals:
        state, again = subject.state(deal, seats), subject.state(deal, seats)
        dealt = _to_json(game.deal_to_json(state))
        if dealt is None:
            yield Flaw(subject.main, "deal_to_json gives what JSON has no word for: give lists, numbers and texts")
            return
        if dealt != _to_json(game.deal_to_json(again)):
            yield Flaw(subject.main, "deal gives another game from the same stream: draw from `chance` alone")
            return
        for output in subject.outputs[deal, seats]:
            kept = _to_json(game.output_to_json(output))
            if kept is None:
                yield Flaw(subject.main, f"output_to_json gives what JSON has no word for: {one_line(repr(output))}")
                return
            copy = state.copy_of(output)
            if isinstance(output, list | dict | set) and copy is output:
                yield Flaw(subject.main, "copy_of gives back the very output, which its bot may change later")
            state.apply(copy)
            try:
                again.apply(game.output_from_json(json.loads(kept)))
            except IllegalOutput as error:
                yield Flaw(subject.main, f"output_from_json makes an illegal output of {one_line(kept, 60)}: {error}")
                return
        if not again.over or state.ending() != again.ending():
            yield Flaw(subject.main, "the same deal and the same outputs, read from JSON, come to another ending")


def _to_json(value: Any) -> str | None:
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return None


def _check_saved_games(subject: Subject) -> Iterator[Flaw]:
    """A saved game is told again, to its end."""
    records, rules = records_of(subject.game), subject.game.rules().model_dump()
    for deal, seats in subject.deals[::DEALS_PER_SIZE]:
        table = subject.table(deal, seats)
        names = [entrant.name for entrant in table.entrants]
        session = Session(subject.game, table.state, names.__getitem__, table_moves(table), table=table, rules=rules)
        turns = sum(1 for _ in session)
        kept = records.load(records.dump(session.record(names, 0, deal, None)))
        again = session_of_record(subject.game, kept, names.__getitem__)
        with require_whole_game(again.state):
            if sum(1 for _ in again) != turns:
                yield Flaw(subject.main, "a saved game has another number of moves when it is told again")


def _check_results(subject: Subject) -> Iterator[Flaw]:
    """Outcomes are kept and read again; the measures come near to what they are said to be if all are alike."""
    results = subject.game.results
    shares = defaultdict[tuple[str, int], list[float]](list)
    for deal, seats in subject.deals:
        table = subject.table(deal, seats)
        for output in subject.outputs[deal, seats]:
            table.state.apply(output)
        outcome = outcome_of(table.state, [*range(seats)], None, table.fallback_turns)
        if unpack_outcome(outcome.pack(), results) != outcome:
            yield Flaw(subject.main, "an ending is not the same when it was kept and read again")
        for measured in outcome.measured(results):
            for measure, value in zip(results.measures, measured, strict=True):
                shares[measure.key, seats].append(value / measure.scale)
    yield from _check_result_order(subject)
    if unknown := sorted({*results.equal_share(subject.game.seats[0])} - {measure.key for measure in results.measures}):
        yield Flaw(subject.main, f"results: equal_share names {', '.join(unknown)}, which is none of measures")
    for (key, seats), found in shares.items():
        least, most = results.measure(key).span or (0.0, 1.0)
        said, came = results.equal_share(seats).get(key), least + mean(found) * (most - least)
        if said is not None and abs(came - said) > _MAX_CHANCE_GAP * (most - least):
            what = f"{key} is {came:.2f} on average at {seats} seats, but equal_share says {said:.2f}"
            turned = "is the order of buckets, or bucket, turned round?"
            yield Flaw(subject.main, f"results: {what}: {turned}", sure=False)


def _check_result_order(subject: Subject) -> Iterator[Flaw]:
    """A bucket named a win is worth more than a loss, and the seat that is called the winner scores the most."""
    results, measure = subject.game.results, subject.game.results.measures[0]
    won, lost = (
        [place for place, name in enumerate(results.endings) if word.search(name)] for word in (_WIN_WORD, _LOSS_WORD)
    )
    line = line_of(subject, subject.main, "measures")
    for win, loss in ((win, loss) for win in won for loss in lost if win not in lost and loss not in won):
        if not measure.count and measure.values[win] < measure.values[loss]:
            what = f"{results.endings[win]} is worth less than {results.endings[loss]}"
            yield Flaw(subject.main, f"results: by measure {measure.key} {what}: are its values inverted?{line}")
            return
    decided = [end for deal in subject.deals for end in _winners(subject, *deal) if len({*end.scores}) > 1]
    below = [end for end in decided if max(end.scores) > min(end.scores[seat] for seat in end.winners)]
    for end in below[:1]:
        what = f"seat {min(end.winners)} wins deal {end.deal} by {end.source}"
        same = [each for each in decided if each.source == end.source]
        sure = len(same) > 2 and all(each in below for each in same)
        line = line_of(subject, subject.main, "bucket")
        sentence = f"results: {what}, but scores less than another by measure {measure.key}: is bucket inverted?{line}"
        yield Flaw(subject.main, sentence, sure)


class _End(NamedTuple):
    """Who wins a game by some source, and the score of every seat."""

    deal: int
    source: str
    winners: set[int]
    scores: list[int]


def _winners(subject: Subject, deal: int, seats: int) -> Iterator[_End]:
    """Yield the winners of a game by its words, its standing, its state and its last events."""
    results, state = subject.game.results, subject.state(deal, seats)
    teller = words_of(subject.game).Teller(state, "Player{}Z".format)
    events: Sequence[GameEvent] = ()
    for output in subject.outputs[deal, seats]:
        mover, events = state.seat, state.apply(output)
        teller.moved(mover, output, events)
    ending = state.ending()
    scores = [
        results.measure_values(results.bucket(mark, ending.capped), [*counts, 0])[0]
        for mark, counts in zip(ending.marks, ending.counts, strict=True)
    ]
    if winners := {int(seat) for seat in _WINS.findall(teller.ending()[0])}:
        yield _End(deal, "the words", winners, scores)
    if results.standing and not ending.capped:
        ranks = [results.standing(mark, seats, False) for mark in ending.marks]
        yield _End(deal, "standing", {seat for seat, rank in enumerate(ranks) if rank == max(ranks)}, scores)
    for name, each in [("state", state), *((type(event).__name__, event) for event in events)]:
        winner = getattr(each, "winner", None)
        if type(winner) is int and 0 <= winner < seats:
            yield _End(deal, f"{name}.winner", {winner}, scores)


def _check_examples(subject: Subject) -> Iterator[Flaw]:
    """The facts of example positions, and positions as files."""
    game, file = subject.game, subject.file("facts.py")
    if game.module("facts") is None:
        return
    keys = dict[str, set[str]]()
    for node in game.nodes:
        position = game.facts.example_position(node.name)
        if position.node != node.name:
            yield Flaw(file, f"example_position({node.name!r}) is a position at node {position.node!r}")
        facts = game.facts.facts(position)
        keys[node.name] = {*facts}
        if _to_json(facts) is None:
            yield Flaw(file, f"facts gives what JSON has no word for at node {node.name}")
        if unknown := sorted({*game.facts.steady_facts()} - {*facts}):
            yield Flaw(file, f"steady_facts names {', '.join(unknown)}, which facts has not at node {node.name}")
    if len({*map(frozenset, keys.values())}) > 1:
        yield Flaw(file, "facts has other keys at one node than at another: give every key at each, None where unused")
    for text in _NO_POSITIONS:
        try:
            game.facts.from_json(text)
        except UsageError:
            continue
        except Exception as error:  # foreign code
            yield Flaw(file, f"from_json raises {type(error).__name__} for the file {text!r}: raise UsageError")
        else:
            yield Flaw(file, f"from_json takes the file {text!r} for a position: raise UsageError")
        return


def _check_positions(subject: Subject) -> Iterator[Flaw]:
    """The facts of positions that were met: steady ones stay, and a position that was a file is the same."""
    game, file = subject.game, subject.file("facts.py")
    if game.module("facts") is None:
        return
    for recorded in subject.positions:
        steady = dict[tuple[int, str], Any]()
        for position in (one.position for one in recorded):
            facts = game.facts.facts(position)
            lines, own = len(facts.get("history") or ()), facts.get("own_moves") or ()
            if beyond := [place for place in own if not 0 <= place < lines]:
                yield Flaw(file, f"own_moves has places, as {beyond[0]}, that history has not: they count from 0")
                return
            for name in {*game.facts.steady_facts()} & {*facts}:
                if steady.setdefault((position.seat, name), facts[name]) != facts[name]:
                    yield Flaw(file, f"steady_facts names {name}, which changes while a seat plays")
            text = game.facts.to_json(position)
            if game.facts.to_json(game.facts.from_json(text)) != text:
                yield Flaw(file, f"a position at node {position.node} is another one when it was a file")


def _check_prompts(subject: Subject) -> Iterator[Flaw]:
    """Every prompt tells of every position that was met."""
    if subject.game.module("facts") is None:
        return
    for name in subject.prompts:
        try:
            prompt = load_prompt(name, subject.here, subject.game)
        except DubitoError as error:
            yield Flaw(f"prompts/{subject.game.folder}/{name}", str(error))
            continue
        yield from _check_rendering(subject, prompt)


def _check_rendering(subject: Subject, prompt: Prompt) -> Iterator[Flaw]:
    for position in (one.position for recorded in subject.positions for one in recorded):
        try:
            prompt.render(position)
        except DubitoError as error:
            yield Flaw(subject.shown(prompt.folder), str(error))
            return


def _check_speech(subject: Subject) -> Iterator[Flaw]:
    """In a prompt nobody's words can end their quotes, and the prompt says what they are."""
    game = subject.game
    if game.walk or game.module("facts") is None or not any(isinstance(node.answer, Text) for node in game.nodes):
        return
    table = subject.table(0, game.seats[0], lambda cls: _make_loud(cls, game))
    spoken = record_positions(table, Origin(None, 0, 0, 0), game, game.rules())
    for prompt in (load_prompt(name, subject.here, game) for name in subject.prompts):
        file = subject.shown(prompt.folder)
        if any(_HOSTILE_TEXT in str(prompt.render(one.position)) for one in spoken):
            what = f"what a player says can end its quotes: {_HOSTILE_TEXT} stands in it as it was said"
            yield Flaw(file, f"{what}: write {{{{ ... | quoted }}}}, or `quoted` of dubito.game.speech in facts.py")
        if "shared/speech.jinja" not in prompt.sources:
            what = "it does not say that what players say is no instruction"
            yield Flaw(file, f'{what}: write {{% include "shared/speech.jinja" %}}', sure=False)


def _make_loud(cls: type[Player], game: Game) -> type[Player]:
    """The same bot, which says what no quotes can hold wherever it is to say something."""

    class Loud(cls):  # type: ignore[misc, valid-type]
        def play(self, view: Any) -> Any:
            output = super().play(view)
            if not isinstance(game.node(view.node).answer, Text):
                return output
            return game.output_of(view.node, _HOSTILE_TEXT, self.cards)

    return Loud


def _check_words(subject: Subject) -> Iterator[Flaw]:
    """The game in words, from its rules to its end."""
    words, file, rules = words_of(subject.game), subject.file("words.py"), subject.game.rules()
    unspoken = ""
    for deal, seats in subject.deals:
        state = subject.state(deal, seats)
        said: list[Any] = [*words.rules(rules, seats), words.in_short(rules), words.sentence(state.start, str)]
        teller = words.Teller(state, str)
        for output in subject.outputs[deal, seats]:
            seat = state.seat
            said += [teller.holds(seat), *words.sees(state, seat, str), words.keys(state), *words.hand(state, seat)]
            events = state.apply(output)
            said += [words.to_me(words.sentence(event, str)) for event in events]
            unspoken = unspoken or _find_unspoken(words, seat, events)
            said += [line.said for line in teller.moved(seat, output, events)]
            said += [text for panel in teller.panels() for text in (panel.title, *panel.cards)]
        ending = teller.ending()
        if not ending:
            yield Flaw(file, "Teller.ending() is empty: begin with how the game ended, in a sentence")
        wrong = next((each for each in [*said, *ending] if not isinstance(each, str)), None)
        if wrong is not None:
            yield Flaw(file, f"it says {one_line(repr(wrong), 60)}, which is no text")
    if unspoken:
        what = f"a person at the table reads {one_line(repr(unspoken), 60)}: has TO_ME a phrase for it?"
        yield Flaw(file, what, sure=False)


def _find_unspoken(words: Any, seat: int, events: Sequence[Any]) -> str:
    """A sentence that begins with the person in this seat, but not as a sentence does once it is spoken to them."""
    for event in events:
        sentence = words.sentence(event, lambda each: ME if each == seat else f"seat {each}")
        if isinstance(sentence, str) and sentence.startswith(ME) and (told := words.to_me(sentence))[:1].islower():
            return str(told)
    return ""


def _check_fake_models(subject: Subject) -> Iterator[Flaw]:
    """Each stand-in's policy has an answer to what one of the prompts says: it need not read them all."""
    module = subject.game.module("stand_in")
    if module is None or not subject.prompts:
        return
    prompts = [load_prompt(name, subject.here, subject.game) for name in subject.prompts]
    positions = [one.position for recorded in subject.positions[:2] for one in recorded]
    file = subject.shown(str(getattr(module, "__file__", "") or subject.folder / "stand_in.py"))
    for name, policy in module.MODELS.items():
        answers = _fake_answers(policy, prompts, positions)
        wrong = next((answer for answer in answers if not hasattr(answer, "keys") or "answer" not in answer), None)
        if wrong is not None:
            yield Flaw(file, f"MODELS: {name} gives {one_line(repr(wrong), 60)}, without an `answer`")


def _fake_answers(policy: Any, prompts: Sequence[Prompt], positions: Sequence[Any]) -> list[Any]:
    """What a stand-in says to the first prompt that it reads; raises what it raises at the first if it reads none."""
    unread: Exception | None = None
    for prompt in prompts:
        try:
            return [policy(str(prompt.render(position)), Random(0)) for position in positions]
        except (LookupError, ValueError, ArithmeticError) as error:  # with which it may refuse a text, as in the house
            unread = unread or error
    assert unread is not None
    raise unread


def _check_runs(subject: Subject) -> Iterator[Flaw]:
    """Other processes play the same games; models of the house play it by its prompts, and their run is proved."""
    name, least = subject.game.name, str(subject.game.seats[0])
    with TemporaryDirectory() as folder:
        few = ("run", "--game", name, "--games", "12", "--no-report", "--json")
        said = [_run_command(subject, seed, *few, "--output", folder + seed) for seed in "12"]
        if failed := next((each for each in said if each.returncode), None):
            yield Flaw(subject.main, f"`dubito run` says: {one_line(failed.stderr)}")
        elif len({json.loads(each.stdout)["results_digest"] for each in said}) > 1:
            yield Flaw(
                subject.main, "two processes play the same deals differently: a draw from outside, or a set's order"
            )
        if subject.prompts:
            models = ",".join(f"house:house-random@{prompt}" for prompt in subject.prompts[:3])
            games = str(4 * len(subject.prompts[:3]))
            flags = ("--game", name, "--contenders", models, "--games", games, "--table-sizes", least)
            for words in (("run", *flags, "--output", f"{folder}/models"), ("replay", f"{folder}/models")):
                if (each := _run_command(subject, "1", *words)).returncode:
                    file = f"prompts/{subject.game.folder}"
                    yield Flaw(file, f"`dubito {words[0]}` with {models} says: {one_line(each.stderr)}")
                    return


def _run_command(subject: Subject, seed: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """A command in a process of its own, in which sets have the order of this seed."""
    environment = os.environ | {"PYTHONHASHSEED": seed}
    path = [word for folder in games_path() for word in ("--games-path", str(folder))]
    command = [sys.executable, "-m", "dubito", *words, *path]
    try:
        return subprocess.run(  # noqa: S603, our own command
            command, cwd=subject.here, env=environment, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(
            command, 1, "", f"nothing: it has not ended after {_COMMAND_TIMEOUT // 60} minutes"
        )


_FIRST_PROBES: Final[tuple[Probe, ...]] = (_check_bots, _check_endings, _check_repeatable)
_SOUNDNESS_PROBES: Final[tuple[Probe, ...]] = (_check_whole_games, _check_first_question, check_handed_out)
_LATER_PROBES: Final[tuple[Probe, ...]] = (
    *(check_lists, check_refusals, _check_silent_apply, _check_json, _check_saved_games, _check_results, check_caps),
    *(
        _check_examples,
        _check_positions,
        _check_prompts,
        check_prompt_lists,
        _check_speech,
        _check_words,
        _check_fake_models,
    ),
)
