"""Check a game by playing it: `dubito games check` prints one line for each flaw.

Each probe is a function of the game under test. An exception in the code of a game, a bot or a prompt counts as a flaw
in the file that raised it. Leaks of hidden information are checked in leaks.py.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from random import Random
from statistics import mean
from tempfile import TemporaryDirectory
from traceback import extract_tb
from typing import Final, NamedTuple

from dubito.errors import BotError, DubitoError, IllegalOutput, one_line
from dubito.game import Choice, Facts, Game, GameEvent, HousePolicy, Player, State, Text, View, node_view
from dubito.game.events import EVERYTHING, NOBODY
from dubito.game.find import find_game
from dubito.game.flaws import (
    find_definition_flaws,
    find_ending_flaws,
    find_missing_parts,
    find_position_flaws,
    find_unknown_parts,
)
from dubito.game.log import Position
from dubito.game.moves import require_whole_game
from dubito.game.position_file import dump_position, load_position
from dubito.game.reader import Reader
from dubito.game.record import Records
from dubito.game.table import copy_output
from dubito.game.words import Words
from dubito.hooks import Flaw, game_checks
from dubito.llm.prompts import Prompt, load_prompt
from dubito.packages import games_path
from dubito.plugins.gamecheck.caps import check_caps
from dubito.plugins.gamecheck.hangs import CallHangs, watch_for_hangs
from dubito.plugins.gamecheck.leaks import check_leaks, check_stale_cards
from dubito.plugins.gamecheck.legal_checks import check_lists, check_prompt_lists, check_shapes
from dubito.plugins.gamecheck.plain_data import find_file, find_line
from dubito.plugins.gamecheck.refusals import check_refusals
from dubito.plugins.gamecheck.sharing import check_handed_out, check_shared_data
from dubito.plugins.gamecheck.subject import DEALS_PER_SIZE, Probe, Subject
from dubito.show.session import Session, session_of_record, table_moves
from dubito.stats.tally import build_outcome, unpack_outcome
from dubito.workshop.recordings import Origin, record_positions

_MAX_CHANCE_GAP: Final = 0.2  # maximum gap between a measure's mean and its chance level, as a share of its span
_COMMAND_TIMEOUT: Final = 600  # seconds
_WIN_WORD: Final = re.compile(r"\b(won|wins?|winner)\b")
_LOSS_WORD: Final = re.compile(r"\b(lost|loss|loses?|loser)\b")
_WINS: Final = re.compile(r"Player(\d+)Z (?:wins|won|has won)\b")
_HOSTILE_TEXT: Final = '"}<|{{7}}'  # text that could close any kind of quotes in a prompt


def check_game(game: Game | str, *, quick: bool = False) -> list[Flaw]:
    """Return a game's flaws, as reported by `dubito games check`. A `quick` check starts no processes."""
    here = Path.cwd()
    return [*find_flaws(Subject(find_game(game, here, flawed=True) if isinstance(game, str) else game, here), quick)]


def find_flaws(subject: Subject, quick: bool = False) -> Iterator[Flaw]:
    """Yield the flaws of a game. The check ends early if games do not end or are inconsistent.

    A `quick` check does not start processes.
    """
    if flaws := [*find_definition_flaws(subject.game)]:
        yield from (Flaw(subject.main, flaw) for flaw in flaws)
        return
    yield from run_probes(
        subject,
        (_check_parts,),
        (_check_deals,),
        (check_shared_data,),
        (check_shapes,),
        _FIRST_PROBES,
        _SOUNDNESS_PROBES,
        (*_LATER_PROBES, *game_checks()),
        (check_leaks,),
        () if quick else (_check_runs,),
    )


def run_probes(subject: Subject, *stages: Sequence[Probe]) -> Iterator[Flaw]:
    """Yield the flaws that these probes find, without duplicates. Stop after the first stage with a certain flaw."""
    reported = set[Flaw]()
    try:
        with watch_for_hangs(subject):
            for probes in stages:
                for flaw in chain.from_iterable(_run_probe(subject, probe) for probe in probes):
                    if flaw not in reported:
                        reported.add(flaw)
                        yield flaw
                if any(flaw.sure for flaw in reported):
                    return
    except CallHangs as error:
        yield error.flaw


def _run_probe(subject: Subject, probe: Probe) -> Iterator[Flaw]:
    """Yield the flaws that a probe finds, and its exceptions as flaws."""
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
    """Convert an exception to a flaw, with the last line of the game's own code."""
    if isinstance(error.__cause__, StopIteration):  # converted to a RuntimeError by one of our generators
        error = error.__cause__
    own = [frame for frame in extract_tb(error.__traceback__) if frame.filename.startswith(str(subject.folder))]
    what = one_line(f"{type(error).__name__}: {error}", 200)
    if not own:
        return Flaw(subject.main, f"its return values are unusable: {what}")
    return Flaw(subject.shown(own[-1].filename), f"{own[-1].name} raises {what} (line {own[-1].lineno})")


def _check_parts(subject: Subject) -> Iterator[Flaw]:
    """Check that the game's words and facts consist of known parts, and that no fact is missing."""
    words = subject.game.words
    for flaw in find_unknown_parts(type(words), Words):
        yield Flaw(find_file(subject, words, subject.file("words.py")), flaw)
    if subject.game.has_facts:
        yield from _check_facts_parts(subject, subject.game.facts)


def _check_facts_parts(subject: Subject, facts: Facts) -> Iterator[Flaw]:
    file = find_file(subject, facts, subject.file("facts.py"))
    if not isinstance(facts, Facts):
        yield Flaw(subject.main, "facts must return an instance of a subclass of dubito.game.Facts")
        return
    for flaw in find_unknown_parts(type(facts), Facts):
        yield Flaw(file, flaw)
    for name in find_missing_parts(facts, Facts, ("facts", "steady_facts", "example_position")):
        yield Flaw(file, f"it does not define {name}()")


def _check_deals(subject: Subject) -> Iterator[Flaw]:
    """Check that equal streams deal equal games, since everything else depends on it."""
    for deal, seats in subject.deals:
        one, other = (_to_json(subject.game.deal_to_json(subject.state(deal, seats))) for _ in range(2))
        if one != other:
            yield Flaw(subject.main, "deal returns a different game for the same stream; only draw from `chance`")
            return


def _check_bots(subject: Subject) -> Iterator[Flaw]:
    registry, folder = subject.registry, f"bots/manual/{subject.game.folder}"
    for broken in registry.broken:
        yield Flaw(subject.shown(broken.file), broken.reason)
    if not registry.hand_written():
        yield Flaw(subject.main, f"it has no bots; add one to {folder}")
    base = _import_object(subject.game.base_path)
    if not (isinstance(base, type) and issubclass(base, subject.game.base)):
        yield Flaw(subject.main, f"base_path is {subject.game.base_path}, which is not {subject.game.base.__name__}")
    if registry.hand_written() and subject.game.fallback not in registry.bots:
        yield Flaw(subject.main, f"fallback is {subject.game.fallback}, which is not a bot in {folder}")
    for bot in registry.hand_written():
        file = subject.shown(bot.file)
        if bot.summary == "(no docstring)":
            yield Flaw(file, f"{bot.name} has no docstring; `dubito bots` shows its first line")
        if not bot.repeatable:
            yield Flaw(file, f"{bot.name} uses randomness outside self.rng, so its games are not reproducible")
        if bot.missing:
            yield Flaw(file, f"{bot.name} does not answer {', '.join(bot.missing)}")


def _import_object(path: str) -> object:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name, None)
    except (ImportError, ValueError):
        return None


def _check_endings(subject: Subject) -> Iterator[Flaw]:
    yield from check_stale_cards(subject)
    assert subject.outputs


def _check_repeatable(subject: Subject) -> Iterator[Flaw]:
    """Check that the same deal and moves lead to the same game."""
    for deal, seats in subject.deals:
        state = subject.state(deal, seats)
        try:
            for output in subject.outputs[deal, seats]:
                state.apply(output)
        except IllegalOutput:
            yield Flaw(subject.main, f"deal {deal} is different when it is replayed; only draw from `chance`")
            return


def _check_first_question(subject: Subject) -> Iterator[Flaw]:
    if subject.game.has_facts:
        for flaw in find_position_flaws(subject.game.facts.example_position(subject.game.nodes[0].name)):
            yield Flaw(find_file(subject, subject.game.facts, subject.file("facts.py")), flaw)


def _check_whole_games(subject: Subject) -> Iterator[Flaw]:
    for deal, seats in subject.deals:
        state, turns = subject.state(deal, seats), 0
        for event in state.start:
            yield from _check_event(subject, event, seats, "start")
        for output in subject.outputs[deal, seats]:
            if not (type(state.seat) is int and 0 <= state.seat < seats):
                yield Flaw(subject.main, f"seat is {state.seat!r} in a game of {seats} seats")
            if not (type(state.turns_played) is int and state.turns_played >= turns):
                yield Flaw(subject.main, f"turns_played is {state.turns_played!r} after it was {turns}")
            turns = state.turns_played
            if not subject.game.has_walk:
                yield from _check_question(subject, state, output)
            for event in state.apply(output):
                yield from _check_event(subject, event, seats, "apply")
        if not _is_refused(state, output):
            yield Flaw(subject.main, "apply accepts a move after the game is over; raise IllegalOutput")
        for flaw in find_ending_flaws(state.ending(), subject.game.results, seats):
            yield Flaw(subject.main, flaw)
        if state.ending() != state.ending():
            yield Flaw(subject.main, "ending() returns a different value when it is called again")


def _check_question(subject: Subject, state: State, output: object) -> Iterator[Flaw]:
    view = node_view(state)
    kind, answer = subject.game.node(view.node).answer, subject.game.answer_of(view.node, output)
    if isinstance(kind, Choice) and kind.options and answer not in kind.options:
        yield Flaw(
            subject.main, f"a move at node {view.node} is {one_line(repr(answer), 40)}, which is not in its Choice"
        )
    reason = view.why_illegal(output)
    if reason is not None:
        yield Flaw(subject.main, f"view().why_illegal returns {reason!r} for a move that apply accepts")


def _check_event(subject: Subject, event: GameEvent, seats: int, source: str) -> Iterator[Flaw]:
    name = type(event).__name__
    if not isinstance(event, GameEvent):
        yield Flaw(subject.main, f"{source} returns {name}, which is not a GameEvent; bots only observe game events")
        return
    for fact, seat in (("only", event.only), ("leaves", event.leaves)):
        if seat not in (None, NOBODY, *range(seats)):
            yield Flaw(subject.main, f"{name}.{fact} is {seat!r} in a game of {seats} seats")
    if is_dataclass(event) and not type(event).__dataclass_params__.frozen:
        yield Flaw(subject.main, f"{name} can be changed by its observers; make it frozen")


def _is_refused(state: State, output: object) -> bool:
    try:
        state.apply(output)
    except IllegalOutput:
        return True
    return False


def _check_silent_apply(subject: Subject) -> Iterator[Flaw]:
    """Check that a game played without `announce` is the same."""
    for deal, seats in subject.deals:
        quiet, announced = subject.state(deal, seats), subject.state(deal, seats)
        for output in subject.outputs[deal, seats]:
            quiet.apply(output, False)
            announced.apply(output)
        if quiet.over != announced.over or quiet.ending() != announced.ending():
            yield Flaw(subject.main, "the game is different if apply is called with announce=False")


def _check_json(subject: Subject) -> Iterator[Flaw]:
    """Check that a deal and its outputs, converted to JSON and back, lead to the same game."""
    game = subject.game
    for deal, seats in subject.deals:
        state, again = subject.state(deal, seats), subject.state(deal, seats)
        dealt = _to_json(game.deal_to_json(state))
        if dealt is None:
            yield Flaw(
                subject.main, "deal_to_json returns a value that JSON does not support; use lists, numbers and strings"
            )
            return
        for output in subject.outputs[deal, seats]:
            as_json = _to_json(game.output_to_json(output))
            if as_json is None:
                yield Flaw(
                    subject.main, f"output_to_json returns a value that JSON does not support: {one_line(repr(output))}"
                )
                return
            copy = copy_output(state, output)
            if isinstance(output, list | dict | set) and copy is output:
                yield Flaw(subject.main, "copy_of returns the output itself, which its bot may change later")
            state.apply(copy)
            try:
                again.apply(game.output_from_json(json.loads(as_json)))
            except IllegalOutput as error:
                yield Flaw(
                    subject.main, f"output_from_json returns an illegal output for {one_line(as_json, 60)}: {error}"
                )
                return
        if not again.over or state.ending() != again.ending():
            yield Flaw(subject.main, "the same deal and outputs, read from JSON, have a different ending")


def _to_json(value: object) -> str | None:
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return None


def _check_saved_games(subject: Subject) -> Iterator[Flaw]:
    """Check that a saved game can be replayed."""
    records, rules = Records(subject.game), subject.game.rules().model_dump()
    for deal, seats in subject.deals[::DEALS_PER_SIZE]:
        table = subject.table(deal, seats)
        names = [entrant.name for entrant in table.entrants]
        session = Session(
            subject.game, table.state, Reader(names.__getitem__), table_moves(table), table=table, rules=rules
        )
        turns = sum(1 for _ in session)
        record = records.load(records.dump(session.record(names, 0, deal, None)))
        again = session_of_record(subject.game, record, Reader(names.__getitem__))
        with require_whole_game(again.state):
            if sum(1 for _ in again) != turns:
                yield Flaw(subject.main, "a saved game has a different number of moves when it is replayed")


def _check_results(subject: Subject) -> Iterator[Flaw]:
    """Check that outcomes survive being stored and read, and that measures are close to their chance levels."""
    results = subject.game.results
    shares = defaultdict[tuple[str, int], list[float]](list)
    for deal, seats in subject.deals:
        table = subject.table(deal, seats)
        for output in subject.outputs[deal, seats]:
            table.state.apply(output)
        outcome = build_outcome(table.state, [*range(seats)], None, table.fallback_turns)
        if unpack_outcome(outcome.pack(), results) != outcome:
            yield Flaw(subject.main, "an ending is different after being stored and read")
        for measured in outcome.measure_seats(results):
            for measure, value in zip(results.measures, measured, strict=True):
                shares[measure.key, seats].append(value / measure.scale)
    yield from _check_result_order(subject)
    if unknown := sorted(
        {*results.chance_level(subject.game.seats[0])} - {measure.key for measure in results.measures}
    ):
        yield Flaw(subject.main, f"results: equal_share names {', '.join(unknown)}, which is not a measure")
    for (key, seats), values in shares.items():
        least, most = results.measure(key).span or (0.0, 1.0)
        level, average = results.chance_level(seats).get(key), least + mean(values) * (most - least)
        if level is not None and abs(average - level) > _MAX_CHANCE_GAP * (most - least):
            what = f"{key} is {average:.2f} on average at {seats} seats, but equal_share is {level:.2f}"
            cause = "is bucket or the order of buckets inverted?"
            yield Flaw(subject.main, f"results: {what}: {cause}", sure=False)


def _check_result_order(subject: Subject) -> Iterator[Flaw]:
    """Check that win buckets are worth more than loss buckets, and that winners score most."""
    results, measure = subject.game.results, subject.game.results.measures[0]
    won, lost = (
        [place for place, name in enumerate(results.endings) if word.search(name)] for word in (_WIN_WORD, _LOSS_WORD)
    )
    line = find_line(subject, subject.main, "measures")
    for win, loss in ((win, loss) for win in won for loss in lost if win not in lost and loss not in won):
        if not measure.count and measure.values[win] < measure.values[loss]:
            what = f"{results.endings[win]} is worth less than {results.endings[loss]}"
            yield Flaw(
                subject.main, f"results: {what} according to measure {measure.key}; are its values inverted?{line}"
            )
            return
    decided = [end for deal in subject.deals for end in _winners(subject, *deal) if len({*end.scores}) > 1]
    below = [end for end in decided if max(end.scores) > min(end.scores[seat] for seat in end.winners)]
    for end in below[:1]:
        what = f"seat {min(end.winners)} wins deal {end.deal} according to {end.source}"
        same = [each for each in decided if each.source == end.source]
        sure = len(same) > 2 and all(each in below for each in same)
        line = find_line(subject, subject.main, "bucket")
        sentence = (
            f"results: {what}, but scores less than another seat in measure {measure.key}; is bucket inverted?{line}"
        )
        yield Flaw(subject.main, sentence, sure)


class _End(NamedTuple):
    """The winners of a game according to a source, and every seat's score."""

    deal: int
    source: str
    winners: set[int]
    scores: list[int]


def _winners(subject: Subject, deal: int, seats: int) -> Iterator[_End]:
    """Yield the winners according to the game's words, standing, state and last events."""
    results, state = subject.game.results, subject.state(deal, seats)
    teller = subject.game.words.teller(state, Reader("Player{}Z".format))
    events: Sequence[GameEvent] = ()
    for output in subject.outputs[deal, seats]:
        mover, events = state.seat, state.apply(output, EVERYTHING)
        teller.describe_move(mover, output, events)
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
    """Check the facts of example positions, and positions in files."""
    game = subject.game
    if not game.has_facts:
        return
    file = find_file(subject, game.facts, subject.file("facts.py"))
    keys = dict[str, set[str]]()
    for node in game.nodes:
        position = game.facts.example_position(node.name)
        if position.node != node.name:
            yield Flaw(file, f"example_position({node.name!r}) is a position at node {position.node!r}")
        facts = game.facts.facts(position)
        keys[node.name] = {*facts}
        if _to_json(facts) is None:
            yield Flaw(file, f"facts returns a value that JSON does not support at node {node.name}")
        if unknown := sorted({*game.facts.steady_facts()} - {*facts}):
            yield Flaw(file, f"steady_facts names {', '.join(unknown)}, which are missing in facts at node {node.name}")
    if len({*map(frozenset, keys.values())}) > 1:
        yield Flaw(
            file, "facts has different keys at different nodes; return every key at each node, with None if unused"
        )


def _check_positions(subject: Subject) -> Iterator[Flaw]:
    """Check that steady facts do not change during a game, and that positions survive being saved and loaded."""
    game = subject.game
    if not game.has_facts:
        return
    file = find_file(subject, game.facts, subject.file("facts.py"))
    for recorded in subject.positions:
        steady = dict[tuple[int, str], object]()
        for position in (one.position for one in recorded):
            facts = game.facts.facts(position)
            lines, own = len(facts.get("history") or ()), facts.get("own_moves") or ()
            if missing := [place for place in own if not 0 <= place < lines]:
                yield Flaw(file, f"own_moves has indexes that are not in history, such as {missing[0]}; count from 0")
                return
            for name in {*game.facts.steady_facts()} & {*facts}:
                if steady.setdefault((position.seat, name), facts[name]) != facts[name]:
                    yield Flaw(file, f"steady_facts names {name}, which changes during a game")
            text = dump_position(game, position)
            if dump_position(game, load_position(game, text)) != text:
                yield Flaw(file, f"a position at node {position.node} is different after being written to a file")


def _check_prompts(subject: Subject) -> Iterator[Flaw]:
    """Check that every prompt can render every position."""
    if not subject.game.has_facts:
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
    """Check that players' messages cannot escape from their quotes in a prompt, and that the prompt explains them."""
    game = subject.game
    if game.has_walk or not game.has_facts or not any(isinstance(node.answer, Text) for node in game.nodes):
        return
    table = subject.table(0, game.seats[0], lambda cls: _with_hostile_messages(cls, game))
    spoken = record_positions(table, Origin(None, 0, 0, 0), game, game.rules())
    for prompt in (load_prompt(name, subject.here, game) for name in subject.prompts):
        file = subject.shown(prompt.folder)
        if any(_HOSTILE_TEXT in str(prompt.render(one.position)) for one in spoken):
            what = f"a player's message can end its quotes: {_HOSTILE_TEXT} is in the prompt unescaped"
            yield Flaw(file, f"{what}; write {{{{ ... | quoted }}}}, or use dubito.game.speech.quoted in facts.py")
        if "shared/speech.jinja" not in prompt.sources:
            what = "it does not state that players' messages are not instructions"
            yield Flaw(file, f'{what}: write {{% include "shared/speech.jinja" %}}', sure=False)


def _with_hostile_messages(cls: type[Player], game: Game) -> type[Player]:
    """Return a bot class that sends a hostile message whenever it is asked for one."""

    class Loud(cls):  # type: ignore[misc, valid-type]
        def play(self, view: View) -> object:
            output = super().play(view)
            if not isinstance(game.node(view.node).answer, Text):
                return output
            return game.output_of(view.node, _HOSTILE_TEXT, self.cards)

    return Loud


def _check_words(subject: Subject) -> Iterator[Flaw]:
    """Check the game's texts, from its rules to its ending."""
    words, rules, reader = subject.game.words, subject.game.rules(), Reader(str, 0)
    file = find_file(subject, words, subject.file("words.py"))
    for deal, seats in subject.deals:
        state = subject.state(deal, seats)
        texts: list[object] = [*words.rules(rules, seats), words.summarize_rules(rules)]
        texts += [words.sentence(event, reader) for event in state.start]
        teller = words.teller(state, reader)
        for output in subject.outputs[deal, seats]:
            seat = state.seat
            texts += [
                teller.describe_hand(seat),
                *words.describe_view(state, seat, reader),
                words.key_hint(state),
                *words.hand(state, seat),
            ]
            events = state.apply(output, EVERYTHING)
            texts += [words.sentence(event, reader) for event in events]
            texts += [line.sentence for line in teller.describe_move(seat, output, events)]
            for panel in teller.panels():
                texts += [panel.title, panel.badge, *panel.cards]
                texts += [text for play in panel.plays for text in (play.claim, *play.cards)]
        ending = teller.ending()
        if not ending:
            yield Flaw(file, "Teller.ending() is empty; start with a sentence about how the game ended")
        wrong = next((each for each in [*texts, *ending] if not isinstance(each, str)), None)
        if wrong is not None:
            yield Flaw(file, f"{one_line(repr(wrong), 60)} is not text")


def _check_fake_models(subject: Subject) -> Iterator[Flaw]:
    """Check that each fake model can answer at least one of the prompts."""
    if not subject.prompts:
        return
    prompts = [load_prompt(name, subject.here, subject.game) for name in subject.prompts]
    positions = [one.position for recorded in subject.positions[:2] for one in recorded]
    file = subject.file("fake_models.py")
    for name, policy in subject.game.fakes.items():
        answers = _fake_answers(policy, prompts, positions)
        wrong = next((answer for answer in answers if not (isinstance(answer, Mapping) and "answer" in answer)), None)
        if wrong is not None:
            yield Flaw(file, f"MODELS: {name} returns {one_line(repr(wrong), 60)} without an `answer`")


def _fake_answers(
    policy: HousePolicy, prompts: Sequence[Prompt], positions: Sequence[Position]
) -> list[Mapping[str, object]]:
    """Return a fake model's answers to the first prompt that it can read, or raise its first exception."""
    first_error: Exception | None = None
    for prompt in prompts:
        try:
            return [policy(str(prompt.render(position)), Random(0)) for position in positions]
        # Fake models raise this for prompts that they cannot read.
        except (LookupError, ValueError, ArithmeticError) as error:
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def _check_runs(subject: Subject) -> Iterator[Flaw]:
    """Check that separate processes play identical games, and that a run with fake models can be replayed."""
    name, least = subject.game.name, str(subject.game.seats[0])
    with TemporaryDirectory() as folder:
        words_of_run = ("run", "--game", name, "--games", "12", "--no-report", "--json")
        results = [_run_command(subject, seed, *words_of_run, "--output", folder + seed) for seed in "12"]
        if failed := next((each for each in results if each.returncode), None):
            yield Flaw(subject.main, f"`dubito run` fails: {_last_line(failed.stderr)}")
        elif len({json.loads(each.stdout)["results_digest"] for each in results}) > 1:
            yield Flaw(
                subject.main,
                "two processes play the same deals differently; check for other randomness and the order of sets",
            )
        if subject.prompts:
            models = ",".join(f"house:house-random@{prompt}" for prompt in subject.prompts[:3])
            games = str(4 * len(subject.prompts[:3]))
            flags = ("--game", name, "--contenders", models, "--games", games, "--table-sizes", least)
            for words in (("run", *flags, "--output", f"{folder}/models"), ("replay", f"{folder}/models")):
                if (each := _run_command(subject, "1", *words)).returncode:
                    file = f"prompts/{subject.game.folder}"
                    what = _last_line(each.stderr) or one_line(each.stdout.strip())
                    yield Flaw(file, f"`dubito {words[0]}` with {models} fails: {what}")
                    return


def _last_line(errors: str) -> str:
    """Return the last line, which is the error after progress or a traceback."""
    return one_line(errors.strip().rpartition("\n")[2])


def _run_command(subject: Subject, seed: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command with this hash seed, which determines the iteration order of sets."""
    environment = os.environ | {"PYTHONHASHSEED": seed}
    path = [word for folder in games_path() for word in ("--games-path", str(folder))]
    command = [sys.executable, "-m", "dubito", *words, *path]
    try:
        return subprocess.run(  # noqa: S603, our own command
            command, cwd=subject.here, env=environment, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(
            command, 1, "", f"it was still running after {_COMMAND_TIMEOUT // 60} minutes"
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
