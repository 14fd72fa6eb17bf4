"""`dubito policy`: how exploitable a player's complete strategy for a small game is, without luck."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from platform import python_version
from typing import Any

import click

from dubito import __version__
from dubito.cli.call_options import (
    asking_options,
    limited_call_options,
    model_progress,
    question_progress,
    settings_of_model,
    suggest_resume,
)
from dubito.cli.options import GAME, GameCommand, given_permits, json_option, parse_rules, program_options
from dubito.cli.output import note, print_document, say, show
from dubito.errors import UsageError, one_line
from dubito.experiment.call_options import CallOptions
from dubito.experiment.experiment import PlayerSpec, describe_fake_models, kind_of_player
from dubito.experiment.model_players import check_model_calls
from dubito.experiment.resolve import providers
from dubito.game import Game, PlayerKind
from dubito.game.find import find_bots
from dubito.game.table import Entrant
from dubito.llm.cache import SOLVED
from dubito.llm.prompts import Prompt, load_prompt
from dubito.model_settings import ModelSettings
from dubito.plugins.openspiel.policy.documents import build_document
from dubito.plugins.openspiel.policy.measure import BOT_DRAWS, PROGRAM_DRAWS, start_program
from dubito.plugins.openspiel.policy.report import (
    Findings,
    build_policy_site,
    fallbacks,
    head_to_head_table,
    largest_losses,
    pages,
    value_table,
)
from dubito.plugins.openspiel.policy.small import SmallGame, small_game, states_chances
from dubito.plugins.openspiel.policy.solver import ITERATIONS, solution_in
from dubito.plugins.openspiel.policy.stated_policy import StatedPolicy, list_starts, read_bot_policy, read_model_policy
from dubito.plugins.openspiel.policy.tree import InfoState, Tree
from dubito.plugins.openspiel.policy.values import nash_conv
from dubito.report.site import write_pages
from dubito.store import folder as run_folder
from dubito.store.spend import Spend
from dubito.workshop.bot_check import resolve_bot
from dubito.workshop.trial import TrialOptions

_POLICY = "policy"  # the prompt that asks for probabilities
_ACT = "plain"  # the prompt that asks for one action
_MAX_SHOWN = 12  # states per player shown in the terminal with --tables


@click.command(cls=GameCommand)
@click.argument("players", nargs=-1, required=True, metavar="PLAYER...")
@click.option("--game", type=GAME, required=True, metavar="NAME", help="A small game, such as openspiel:kuhn_poker.")
@click.option("--draws", type=click.IntRange(1), metavar="K", help="Count K actions of each player in each state.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of hand-written bots.")
@click.option(
    "--iterations",
    type=click.IntRange(1),
    default=ITERATIONS,
    show_default=True,
    help="Iterations of CFR+ for the solution.",
)
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: runs/policy-DIGEST]")
@json_option
@program_options
@click.option("--tables", is_flag=True, help="Print all tables, not only the summary.")
@asking_options
def policy(
    players: Sequence[str],
    game: Game,
    draws: int | None,
    seed: int,
    iterations: int,
    output: Path | None,
    as_json: bool,
    tables: bool,
    quiet: bool,
    rules: dict[str, object],
    **flags: Any,
) -> None:
    """Measure exactly how exploitable a player is at a small game.

    A PLAYER is a hand-written bot, a program (its command in quotes), or a model such as openai:MODEL@PROMPT or
    house:MODEL. A model is asked in every situation for the probability of each action or, with --draws, for actions.
    Repeating the command costs nothing.
    """
    calls, checked = limited_call_options(flags), parse_rules(rules, game)
    small = small_game(game, checked)
    if len({*players}) < len(players):
        raise UsageError("a player is listed twice; list each player once")
    tree = Tree(small.engine)
    to_ask = [read_strategy(name, flags, small, tree.states, draws, calls) for name in players]
    identity = {"policy": small.name, "iterations": iterations, "draws": draws, "seed": seed}
    folder = output or _default_folder(f"{small.name} {iterations} {draws} {seed}", to_ask)
    _begin(folder, {**identity, "players": [{"name": one.name, "digest": _digest(one.identity)} for one in to_ask]})
    if not quiet:
        note(f"{small.name}: {len(tree.states):,} information states")
        for one in to_ask:
            note(f"{one_line(one.name)}: {one.count_questions(tree.states, draws):,} questions")
    with suggest_resume(folder):
        statements = [
            one.state(tree.states, draws, seed, folder / f"{n}", calls, quiet) for n, one in enumerate(to_ask)
        ]
        solution = solution_in(calls.cache / SOLVED, small.engine, iterations=iterations)
    if solution.note:
        note(solution.note)
    findings = Findings(small, tree, statements, solution, {one.name: one.kind for one in to_ask})
    index = _write_report(findings, to_ask, folder)
    if as_json:
        print_document(build_document(findings, folder))
        return
    _print(findings, tables)
    say(f"report: {index}")
    if not tables:
        say("to print all tables: add --tables")


class _Player:
    """A player to ask: a bot from the registry, or a model with a prompt."""

    def __init__(
        self,
        name: str,
        game: SmallGame,
        entrant: Entrant | None,
        prompt: Prompt | None,
        settings: ModelSettings | None,
        digest: str = "",
        program: PlayerSpec | None = None,
    ) -> None:
        self.name, self._game, self._program = name, game, program
        self._entrant, self._prompt, self._settings, self._digest = entrant, prompt, settings, digest

    def count_questions(self, states: Sequence[InfoState], draws: int | None) -> int:
        """Return how often the player is asked: a bot once in each turn, unless it states its strategy."""
        if self._entrant is not None and states_chances(self._entrant.bot):
            return len(states)
        starts = list_starts(self._game, states)
        if self._entrant is not None:
            return len(starts) * (draws or self._draws)
        game, draws = self._game.prompt_game(states, draws)
        return sum(len(self._game.questions(game, state)) for state in starts) * (draws or 1)

    @property
    def _draws(self) -> int:
        return PROGRAM_DRAWS if self._program else BOT_DRAWS

    @property
    def kind(self) -> PlayerKind:
        if self._program:
            return "program"
        asks = {} if self._settings is None else self._settings.model_dump()
        return kind_of_player(PlayerSpec(self.name, "", asks, "", self._prompt.digest if self._prompt else ""))

    @property
    def identity(self) -> str:
        if self._prompt is None or self._settings is None:
            return f"{self.name} {self._digest}"
        return f"{self.name} {self._prompt.digest} {self._settings.model_dump_json()}"

    def state(
        self, states: Sequence[InfoState], draws: int | None, seed: int, folder: Path, calls: CallOptions, quiet: bool
    ) -> StatedPolicy:
        """Return the player's answers for every state."""
        if self._prompt is None or self._settings is None:
            assert self._entrant is not None
            with (
                question_progress(self.count_questions(states, draws), quiet) as progress,
                start_program(self._program, self._game, seed, given_permits()) as program,
            ):
                return read_bot_policy(self._entrant, self._game, states, draws or self._draws, seed, program, progress)
        draws = self._game.prompt_game(states, draws)[1]
        with question_progress(self.count_questions(states, draws), quiet) as progress:
            means = TrialOptions(calls, model_progress(quiet), progress)
            return read_model_policy(self.name, self._game, self._prompt, self._settings, states, draws, folder, means)

    def prompted(self, state: InfoState) -> str | None:
        if self._prompt is None:
            return None
        texts = self._prompt.render(self._game.questions(self._prompt.game, state)[()])
        return "\n\n".join(filter(None, (texts.system, *texts.history, texts.user)))


def read_strategy(
    name: str,
    given: dict[str, Any],
    small: SmallGame,
    states: Sequence[InfoState],
    draws: int | None,
    calls: CallOptions,
) -> _Player:
    """Return the player of this name. Raises UsageError."""
    game = small.game
    provider, colon, model = name.partition(":")
    if not colon or provider not in providers():
        registry = find_bots(Path.cwd(), game.name)
        known = registry.bots.get(name)
        spec = PlayerSpec(name, name) if known and not known.cls.is_program else resolve_bot(name, registry)
        bot = registry.find(spec.bot)
        if bot.cls.is_model:
            raise UsageError(f"{one_line(name)} needs a model; name one, as in openai:MODEL or house:MODEL")
        program = spec if bot.cls.is_program else None
        digest = f"{spec.settings['files']}" if program else bot.digest
        return _Player(name, small, Entrant(name, bot.cls), None, None, digest, program)
    model, _, named = model.partition("@")
    settings = settings_of_model(f"{provider}:{model}", given, game)
    check_model_calls(f"{provider}:{model}", settings, game, calls)
    of, acts = small.prompt_game(states, draws)
    prompt = load_prompt(named or (_ACT if acts else _POLICY), Path.cwd(), of)
    prompt.check_rules(small.rules)
    return _Player(name, small, None, prompt, settings)


def _begin(folder: Path, identity: dict[str, object]) -> None:
    """Create the folder for the answers. Raises UsageError if it is used for something else."""
    manifest = {"games": 0, "identity": identity, "versions": {"dubito": __version__, "python": python_version()}}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / run_folder.MANIFEST).exists():
            run_folder.count_kept_games(folder, manifest)
        else:
            run_folder.save_manifest(folder, manifest)
    except OSError as error:
        raise UsageError(f"cannot make {one_line(str(folder))}: {error.strerror}; choose another --output") from None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _default_folder(how: str, players: Sequence[_Player]) -> Path:
    identity = "\n".join([how, *(one.identity for one in players)])
    return Path("runs") / f"policy-{_digest(identity)[:8]}"


def _write_report(findings: Findings, players: Sequence["_Player"], folder: Path) -> Path:
    by_name = {one.name: one for one in players}
    written = pages(findings, lambda one, state: by_name[one.name].prompted(state))
    return write_pages(folder / "report", build_policy_site(findings, folder.name), written)


def _print(findings: Findings, tables: bool) -> None:
    if fake_models := describe_fake_models(findings.kinds):
        say(fake_models)
    if tables:
        lost = [largest_losses(findings, one, _MAX_SHOWN) for one in findings.statements]
        show(value_table(findings), *fallbacks(findings), head_to_head_table(findings), *lost, kinds=findings.kinds)
    else:
        say("What best responses win against each strategy, summed over the seats (0 means unbeatable)")
    for one in findings.statements:
        first = findings.losses(one)[0]
        most = "" if tables or first.loss <= 0 else f", {first.loss:.3f} of it in state {first.state.string}"
        say(f"nash_conv of {one_line(one.name)}: {nash_conv(findings.tree, one.rows):.10f}{most}")
    if not tables:
        show(*fallbacks(findings), kinds=findings.kinds)
    spent = sum((one.spent for one in findings.statements if one.spent), Spend())
    say(f"calls: {spent.calls:,}")
