"""`dubito prompts`: list, show, compare, lint and test prompts before paying for games. Only `test` calls a model."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from dubito.cli.call_options import (
    ANSWER_SETTINGS,
    asking_options,
    limited_call_options,
    model_progress,
    question_progress,
    settings_of_model,
    suggest_resume,
)
from dubito.cli.main import LazyListing
from dubito.cli.options import flags, game_option, games_path_option, json_option, setting_options
from dubito.cli.output import note, say, show, table
from dubito.cli.trials import judge_trial, test_with_cassette
from dubito.errors import UsageError, one_line
from dubito.experiment.config import parse_config, read_config
from dubito.experiment.model_players import check_model_calls, price_of_model
from dubito.experiment.resolve import resolve
from dubito.experiment.stored import check_replayable, open_recorded_run
from dubito.files import read_text
from dubito.game import Game
from dubito.game.find import Registry, find_bots
from dubito.game.log import Position
from dubito.llm.price_list import end_warnings
from dubito.llm.prices import Price
from dubito.llm.prompts import game_of_folder, load_prompt, prompt_names, prompt_roots
from dubito.llm.settings import build_account
from dubito.report.run_tables import calibration_bins, calibration_table
from dubito.report.tables import cell_text
from dubito.stats.players import calibrations
from dubito.store.folder import is_export, unpack
from dubito.store.model_log import describe_answer
from dubito.store.spend import dollars
from dubito.workshop.cassettes import read_positions, record_trial, save_cassette
from dubito.workshop.checks import golden_files
from dubito.workshop.lint import FIRST_DECISION, prompt_differences
from dubito.workshop.lint import lint as advice_on
from dubito.workshop.recordings import (
    RecordedPosition,
    parse_position,
    record_from_config,
    record_from_run,
    sample_games,
    shipped_positions,
    write_files,
)
from dubito.workshop.trial import (
    Trial,
    TrialEntry,
    TrialOptions,
    compare_answers,
    run_trial,
    score_rows,
    tally_statements,
    trial_folder,
)
from dubito.workshop.verdict import parse_expectations

_PLACES: Final = {
    "cassette": "dubito.cli.trials:record_cassette",
    "list": "dubito.cli.prompts:list_prompts",
    "show": "dubito.cli.prompts:show_prompt",
    "diff": "dubito.cli.prompts:diff",
    "golden": "dubito.cli.prompts:golden",
    "lint": "dubito.cli.prompts:lint",
    "record": "dubito.cli.prompts:record",
    "test": "dubito.cli.prompts:test",
}


@click.group(cls=LazyListing, places=_PLACES)
def prompts() -> None:
    """List, show, audit and test prompts."""


@click.command()
@click.argument("name")
@game_option
def lint(name: str, game: Game) -> None:
    """Check a prompt's length, cacheable share and contents."""
    prompt = load_prompt(name, Path.cwd(), resolve_game(name, game))
    games = sample_games(prompt.game)
    advice = advice_on(prompt, games)
    cells = [
        [size.node, f"{size.requests}", f"{size.bytes:.0f}", f"{size.tokens:.0f}", cell_text(size.shared, "rate")]
        for size in advice.sizes
    ]
    headers = ["node", "requests", "bytes", "tokens (approx.)", "shared with previous request %"]
    title = f"{prompt.name}: {prompt.title}. Averages over {len(games)} games; the last column starts with a player's "
    table(f"{title}decision {FIRST_DECISION}", headers, cells)
    for finding in advice.findings:
        say(f"- {one_line(finding, 1000)}")
    if not advice.findings:
        say("no findings")


def node_names(game: Game) -> list[str]:
    return [node.name for node in game.nodes]


def main_node(game: Game) -> str:
    return next((node.name for node in game.nodes if node.states), game.nodes[0].name)


def check_node(game: Game, node: str | None) -> None:
    names = node_names(game)
    if node is not None and node not in names:
        raise click.BadParameter(f"{node!r} is not one of {', '.join(map(repr, names))}.", param_hint="'--node'")


position_options = flags(
    click.option("--node", metavar="NODE", help="Use the example position of this node. [default: C, in Dubito]"),
    click.option(
        "--position", "file", type=click.Path(path_type=Path), metavar="FILE", help="Use this recorded position."
    ),
)


def choose_position(game: Game, node: str | None, file: Path | None) -> Position:
    """Return the position that these options select; raises UsageError."""
    check_node(game, node)
    if node is not None and file is not None:
        raise UsageError("--node and --position cannot be combined; the position's file already contains a node")
    position: Position
    if file is None:
        position = game.facts.example_position(node or main_node(game))
    else:
        position = parse_position(read_text(file), game).position
    return position


def resolve_game(name: str, game: Game) -> Game:
    is_given = click.get_current_context().get_parameter_source("game") is not ParameterSource.DEFAULT
    return game if is_given or "/" not in name or not Path(name).is_dir() else game_of_folder(Path(name), Path.cwd())


@click.command("list")
@game_option
def list_prompts(game: Game) -> None:
    """List the prompts with their titles, digests and folders."""
    here, rows, broken = Path.cwd(), [], []
    for name in prompt_names(here, game):
        try:
            prompt = load_prompt(name, here, game)
            rows.append([prompt.name, prompt.title, prompt.digest[:12], str(prompt.folder)])
        except UsageError as error:
            broken.append(f"broken: {error}")
    table(f"{len(rows)} prompts", ["prompt", "title", "digest", "folder"], rows)
    for reason in broken:
        say(reason)


@click.command()
@click.argument("name")
@position_options
@game_option
def show_prompt(name: str, node: str | None, file: Path | None, game: Game) -> None:
    """Show the system and user text of a prompt for one position.

    NAME is a prompt's name or folder.
    """
    game = resolve_game(name, game)
    position = choose_position(game, node, file)
    say(str(load_prompt(name, Path.cwd(), game).render(position)))


@click.command()
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@position_options
@game_option
def diff(one: str, other: str, node: str | None, file: Path | None, game: Game) -> int:
    """Show the difference between prompts A and B at one position.

    Each is a prompt's name or folder. The exit code is 1 if they differ.
    """
    game, here = resolve_game(one, game), Path.cwd()
    position = choose_position(game, node, file)
    old, new = load_prompt(one, here, game), load_prompt(other, here, game)
    lines = list(prompt_differences(old, new, position))
    for line in lines:
        say(line)
    if lines:
        return 1
    elsewhere = []
    if node is None and file is None:
        example = game.facts.example_position
        elsewhere = [name for name in node_names(game) if any(prompt_differences(old, new, example(name)))]
    same = f"identical at node {main_node(game)}, but different at {', '.join(elsewhere)}; see them with --node"
    say(same if elsewhere else "identical")
    return 1 if elsewhere else 0


@click.command()
@click.argument("name")
@game_option
def golden(name: str, game: Game) -> None:
    """Write a prompt's golden files.

    The files are named `golden/NODE.txt` in the prompt's folder and contain its text at each example position.
    """
    prompt = load_prompt(name, Path.cwd(), resolve_game(name, game))
    if prompt.condition.name:
        raise UsageError(f"{one_line(name)}: golden files are of a prompt without a condition")
    files = golden_files(prompt)
    write_files(files)
    for file in files:
        say(f"written: {file}")


@click.command()
@click.argument("what", metavar="RUN|FILE|CONFIG", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), default="positions", show_default=True, metavar="FOLDER",
              help="Folder to add the files to.")  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="Number of positions.")
@click.option("--node", metavar="NODE", help="Only record positions of this node. [default: all nodes, evenly]")
@games_path_option
def record(what: Path, output: Path, count: int, node: str | None) -> None:
    """Record positions from a run's games or a config's games.

    Positions are spread evenly over games and nodes. A run or exported run is replayed. A config, which must contain
    only hand-written bots, is played.
    """
    if what.is_dir():
        positions = _record_from_run(what, node, count)
    elif what.is_file() and is_export(what):
        with unpack(what) as folder:
            positions = _record_from_run(folder, node, count)
    else:
        config = parse_config(read_config(what), str(what))
        registry = find_bots(Path.cwd(), config.game)
        positions = record_from_config(resolve(config, registry), _nodes(registry, node), count)
    if not positions:
        raise UsageError(f"{what} has no such positions because its bots do not answer one node at a time")
    write_files({output / one.file_name: one.text for one in positions})
    nodes = Counter(one.position.node for one in positions)
    by_node = ", ".join(f"{name} {nodes[name]}" for name in node_names(positions[0].game) if nodes[name])
    fewer = "" if len(positions) == count else f" (of {count} requested; there are no more)"
    deals = len({one.deal for one in positions})
    say(f"written: {len(positions)} positions{fewer} from {deals} deals in {output}: {by_node}")


def _nodes(registry: Registry, node: str | None) -> Sequence[str]:
    check_node(registry.game, node)
    return node_names(registry.game) if node is None else [node]


def _record_from_run(folder: Path, node: str | None, count: int) -> list[RecordedPosition]:
    with open_recorded_run(folder) as run_source:
        nodes = _nodes(run_source.registry, node)
        check_replayable(run_source)
        positions = record_from_run(run_source, nodes, count)
    for mismatch in dict.fromkeys(run_source.mismatches):
        note(f"manifest mismatch: {mismatch}")
    return positions


def print_trial(entries: Sequence[TrialEntry], files: Sequence[str], trial: Trial, price: Price | None) -> None:
    """Print the results of a test. `files` are the names of the position files."""
    rows = [
        (entry.name, row)
        for entry, answers in zip(entries, trial.answers, strict=True)
        for row in score_rows(answers, price)
    ]
    causes = sorted({cause for _, row in rows for cause in row.causes})
    right = entries[0].prompt.game.workshop.RIGHT
    headers = ["prompt", "node", "positions", "yes %", *(["right %"] if right else []), "invalid %", *causes]
    headers += ["tokens in", "cached in", "tokens out", "cost per 1,000"]
    cells = []
    for name, row in rows:
        rights = [cell_text(row.right, "rate")] if right else []
        shares = [cell_text(row.causes.get(cause, 0) / row.positions, "rate") for cause in causes]
        tokens = ["-"] * 3 if row.tokens is None else [f"{count:.0f}" for count in row.tokens]
        cost = "-" if row.picodollars is None else dollars(round(row.picodollars))
        figures = [f"{row.positions}", cell_text(row.yes, "rate"), *rights, cell_text(row.invalid, "rate"), *shares]
        cells.append([name, row.node, *figures, *tokens, cost])
    count, deals = len(trial.answers[0]), len({one.recorded.deal for one in trial.answers[0]})
    title = f"{entries[0].settings.model} at {count:,} positions in {deals:,} deals; 95 % confidence intervals, "
    title += f"clustered by deal; {f'right: {right}; ' if right else ''}tokens are per decision"
    table(one_line(title), headers, cells)

    if len(entries) > 1:
        first_answers, second_answers = trial.answers
        one, two = (entry.name for entry in entries)
        headers = ["node", "positions", "same answer %", f"{one} yes, {two} no", f"{one} no, {two} yes"]
        cells = [
            [row.node, f"{row.positions}", cell_text(row.same, "rate"), f"{row.to_yes}", f"{row.to_no}"]
            for row in compare_answers(first_answers, second_answers)
        ]
        table(f"{one_line(one)} and {one_line(two)} at positions that both answered", headers, cells)
        for name, first, second in zip(files, first_answers, second_answers, strict=True):
            if None not in (first.answer, second.answer) and first.answer != second.answer:
                answer, other = describe_answer(first.answer), describe_answer(second.answer)
                say(f"different: {name}: {one_line(one)} {answer}, {one_line(two)} {other}")

    if players := calibrations(tally_statements(trial.answers), [entry.name for entry in entries]):
        of = entries[0].prompt.game.results.stated
        show(calibration_table(players, of), calibration_bins(players, "calibration-bins"))
    spent = trial.spent
    if not spent.calls:
        say("calls: 0 (all replies were in the run folder or the cache)")
    else:
        say(f"calls: {spent.calls:,}" + (f", cost {dollars(spent.usd)}" if price else ""))
    say(f"run folder: {trial.folder}")


@click.command()
@click.argument("name")
@click.option("--model", metavar="M", help="openai:MODEL, anthropic:MODEL, local:MODEL or house:MODEL.")
@click.option("--against", metavar="OTHER", help="A second prompt. Repeat NAME to measure random variation.")
@click.option("--positions", type=click.Path(path_type=Path), metavar="FOLDER|CASSETTE",
              help="[default: the project's own]")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: runs/prompts-NAME-DIGEST]")
@click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Write the replies to this cassette.")
@click.option(
    "--cassette", type=click.Path(path_type=Path), metavar="FILE", help="Use these replies instead of a model."
)
@click.option("--expect", metavar="LIST", help="Exit with 1 unless these are met, such as 'right>=55, invalid<=1'.")
@json_option
@asking_options
@setting_options(ANSWER_SETTINGS)
@game_option
def test(
    name: str,
    model: str | None,
    against: str | None,
    positions: Path | None,
    output: Path | None,
    record: Path | None,
    cassette: Path | None,
    expect: str | None,
    as_json: bool,
    quiet: bool,
    game: Game,
    **flags: Any,
) -> int:
    """Score a model's answers at recorded positions.

    No games are played and fallbacks are not used. Repeating the command costs nothing.
    """
    expected = [] if expect is None else parse_expectations(expect)
    calls = limited_call_options(flags)
    if model is None or cassette is not None:
        if cassette is None or any(option is not None for option in (model, against, record, positions)):
            raise UsageError("give --model, or --cassette without --against, --record and --positions")
        return test_with_cassette(name, cassette, calls, expected, quiet, as_json)
    if record is not None and against is not None:
        raise UsageError("--record: a cassette covers one prompt; record each prompt separately, without --against")
    game = resolve_game(name, game)
    settings = settings_of_model(model, flags, game)
    entries: list[TrialEntry] = []
    for tested in [name] if against is None else [name, against]:
        prompt, own = load_prompt(tested, Path.cwd(), game), settings
        # A prompt that is given twice gets separate answers.
        if any(prompt.digest == entry.prompt.digest for entry in entries):
            own = settings.model_copy(update={"sample": 1})
        shown = tested if all(tested != entry.name for entry in entries) else f"{tested} again"
        entries.append(TrialEntry(shown, prompt.for_api(own.api), own))
    recorded = read_positions(_folder(game) if positions is None else positions, game, Path.cwd())
    check_model_calls(model, settings, game, calls)
    today = datetime.now(UTC).date()
    for sentence in end_warnings(build_account(settings).server, settings.model, settings.parameters, today):
        note(sentence)
    folder = output or trial_folder(entries, recorded)
    with suggest_resume(folder, flags=True), question_progress(len(recorded) * len(entries), quiet) as progress:
        done = run_trial(entries, recorded, folder, TrialOptions(calls, model_progress(quiet), progress))
    if record is not None:
        save_cassette(record_trial(entries[0], done, positions), record)
        note(f"recorded: {record}")
    if not as_json:
        print_trial(entries, list(recorded), done, price_of_model(settings, calls))
    return judge_trial(entries, done, expected, as_json)


def _folder(game: Game) -> Path:
    """Return the folder with a game's recorded positions, next to its prompts."""
    prompts = reversed(prompt_roots(Path.cwd(), game))
    folder = next((folder for root in prompts if (folder := root / "positions").is_dir()), shipped_positions(game))
    if not folder.is_dir():
        raise UsageError(
            f"there are no positions of {game.name}",
            hint=f"record some with `dubito prompts record RUN --output prompts/{game.folder}/positions`",
        )
    return folder
