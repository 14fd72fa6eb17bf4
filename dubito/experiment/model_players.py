"""Check the model players of an experiment before a call is made: prompts, keys, prices and fallbacks."""

import os
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Final

from dubito.errors import UsageError, one_line, sort_by_similarity
from dubito.experiment.call_options import NO_CAPS, CallOptions
from dubito.experiment.config import Config
from dubito.experiment.experiment import PlayerSpec, kind_of_player
from dubito.experiment.resolve import providers, round_up
from dubito.experiment.resolved import ResolvedPlayer, ResolvedRun
from dubito.experiment.servers import identify_weights
from dubito.game import STATED, Bool, Game
from dubito.hooks import find_batch_sender
from dubito.llm.price_list import (
    end_warnings,
    find_charged_by_call,
    find_price,
    find_unpriced,
    old_price_warning,
    price_to_fill_in,
)
from dubito.llm.prices import Price
from dubito.llm.protocols import find_protocol, protocols
from dubito.llm.settings import build_account, load_key
from dubito.model_settings import HOUSE, ModelSettings, embedded_kind, is_house, parse_faults
from dubito.settings import Setting

if TYPE_CHECKING:
    from dubito.llm.prompts import Prompt


def model_words(settings: ModelSettings) -> list[str]:
    """Return the words of a command that give a model these settings, except its prompt and fallback."""
    server = settings.base_url or ""
    kind = embedded_kind(server)
    if kind == HOUSE and server != HOUSE:  # the built-in server with faults is an address like any other
        kind = None
    provider = kind or find_protocol(settings.api).provider
    words = ["--model", f"{provider}:{settings.model}"]
    implied = dict(providers()[provider])
    if not server or kind:  # the API of a server is always named
        usual = next(api for api, wire in protocols().items() if wire.bot == implied["bot"])
        implied = {"api": usual, **implied}
    skipped = {"model", "prompt", "fallback", "adviser", *(["base_url"] if provider == kind else [])}
    for key, value in settings.model_dump(exclude=skipped).items():
        described = ModelSettings.model_fields[key]
        if value not in (None, implied.get(key, described.default)):
            words += Setting(key, described).to_words(value)
    return words


_PAID_GAMES: Final = 20  # games, or a few more, if nothing else limits what a model costs


def check_models(run: ResolvedRun, options: CallOptions) -> ResolvedRun:
    """Return the run with complete settings for model players, and digests of prompts and fallbacks.

    Raises UsageError for every error that can be found before a call is made, including programs that do not start.
    """
    if run.programs:
        _ = run.game.facts  # programs and agents receive the same facts as models
        from dubito.seats.program import find_program, try_programs  # imported late, since few runs have programs

        home = run.registry.working_directory
        started = [spec for spec in run.programs if kind_of_player(spec) != "agent"]
        programs = [find_program(spec.name, spec.settings, home) for spec in started]
        try_programs(programs, home, options.permits)
    players = []
    for player in run.players:
        if (model := player.model) is None:
            players.append(player)
            continue
        model = replace(model, settings=identify_weights(model.name, model.settings))
        prompt, fallback = model.prompt.digest, model.fallback.digest
        check_model_calls(model.name, model.settings, run.game, options)
        if model.settings.base_url and is_house(model.settings.base_url):
            from dubito.house.writers import WRITERS  # imported late, since most runs need no server

            # Some built-in models only write bots.
            if model.settings.model in WRITERS:
                raise UsageError(
                    f"{one_line(model.name)}: {model.settings.model} writes bots and does not play",
                    hint="use it in `dubito forge`",
                )
        _check_probabilities(model.name, model.settings, model.prompt, run.game)
        spec = replace(player.spec, settings=model.settings.model_dump(), prompt=prompt, fallback=fallback)
        players.append(ResolvedPlayer(spec, player.bot, model))
    # The same players under the same names, whose settings are now complete.
    specs = {player.name: player.spec for player in players}
    experiment = replace(
        run.experiment,
        bots=tuple(specs[spec.name] for spec in run.experiment.bots),
        contenders=tuple(specs[spec.name] for spec in run.experiment.contenders),
    )
    return replace(run, experiment=experiment, players=players)


def _check_probabilities(name: str, settings: ModelSettings, prompt: "Prompt", game: Game) -> None:
    """Raise UsageError if `play` or `belief` needs probabilities that the answers do not contain."""
    has_odds = not find_protocol(settings.api).writes_text or prompt.description.say == "odds"
    if settings.play == "drawn" and settings.belief is None and not has_odds:
        raise UsageError(
            f"{one_line(name)}: play: drawn: its answers contain no probabilities to draw from",
            hint="choose a prompt with `say: odds` (such as mixed), or set `belief: logprobs` or `api: decisions`",
        )
    if settings.belief is None:
        return
    problem = ""
    if has_odds or STATED in prompt.fields:
        problem = f"the prompt {one_line(prompt.name)} already asks for probabilities"
    elif all(node.answer != Bool() for node in game.nodes):
        problem = f"{game.name} has no yes-or-no question"
    if problem:
        raise UsageError(f"{one_line(name)}: belief: {problem}", hint="remove it, or choose another prompt")


def check_model_calls(name: str, settings: ModelSettings, game: Game, options: CallOptions) -> None:
    """Raise UsageError for problems that would stop a run at its first call, such as a missing key or price."""
    if not options.offline:
        if settings.wait and find_batch_sender(settings.wait) is None:
            problem = "batches need the `batch` plugin, which is not in dubito/plugins"
            raise UsageError(f"{one_line(name)}: wait: {problem}", hint="remove `wait`")
        load_key(build_account(settings), name)
    check_house(name, settings, game)
    if not find_protocol(settings.api).writes_text:
        from dubito.llm.questions import check_askable  # imported late, since few players use this API

        check_askable(name, game)
    if options.caps.usd is None:
        return
    if (price := price_of_model(settings, options)) is None:
        raise UsageError(
            f"{one_line(name)}: budget.usd needs the price of {one_line(settings.model)!r} at "
            f"{build_account(settings).server}, which is unknown",
            hint="remove budget.usd, or add this line with the provider's prices in USD per million tokens "
            f"(these are the highest known prices): {price_to_fill_in(settings.model)}",
        )
    # If the price did not cover a player's parameters, its calls could exceed the budget.
    if not price.worst_cost(1, 1):  # a model without a price is free in any mode
        return
    if (tool := find_charged_by_call(settings.parameters)) is not None:
        raise UsageError(
            f"{one_line(name)}: parameters.{tool}: the server charges for its tools per call, and the price is unknown",
            hint="remove the parameter or budget.usd",
        )
    unpriced, model = find_unpriced(settings.parameters, price), one_line(settings.model)
    if unpriced is not None and settings.model not in options.prices:
        raise UsageError(
            f"{one_line(name)}: parameters.{one_line(unpriced)}: the list price of {model!r} does not cover it",
            hint=f"set the price with this parameter in `prices.{model}`, or remove the parameter or budget.usd",
        )


def check_house(name: str, settings: ModelSettings, game: Game) -> None:
    """Raise UsageError if the built-in server does not support this model or these faults."""
    if not settings.base_url or not is_house(settings.base_url):
        return
    from dubito.house.core import FOLLOWER, model_names  # imported late, since most runs need no server
    from dubito.house.writers import WRITERS

    if settings.model not in (*model_names(game), FOLLOWER, *WRITERS):
        known = ", ".join(sort_by_similarity(settings.model, model_names(game)))
        raise UsageError(
            f"{one_line(name)}: the built-in server has no model {one_line(settings.model, 80)!r}; it has {known}"
        )
    faults = parse_faults(settings.base_url)
    if faults:
        from dubito.house.faults import Faults  # imported late, since most runs need no server

        try:
            Faults.parse(faults)
        except UsageError as error:
            raise UsageError(f"{one_line(name)}: base_url: {error}") from None


def find_paid_model(run: ResolvedRun, config: Config, options: CallOptions) -> PlayerSpec | None:
    """Return the first player whose calls may cost money, if neither games, a budget nor a stop rule limits them.

    A model with an unknown price counts as paid.
    """
    if "games" in config.model_fields_set or config.stop or config.offline or options.caps != NO_CAPS:
        return None
    return next((spec for spec, model in run.models if is_paid(model.settings, options)), None)


def is_paid(settings: ModelSettings, options: CallOptions) -> bool:
    price = price_of_model(settings, options)
    return not embedded_kind(settings.base_url or "") and (price is None or price.worst_cost(10**6, 10**6) > 0)


def limit_paid_games(run: ResolvedRun, config: Config, options: CallOptions) -> ResolvedRun:
    """Return the run with few games if nothing else limits what a model costs."""
    if find_paid_model(run, config, options) is None:
        return run
    games = round_up(_PAID_GAMES, run.experiment.games_per_deal)
    return replace(run, experiment=replace(run.experiment, games=games))


def price_of_model(settings: ModelSettings, options: CallOptions) -> Price | None:
    return find_price(build_account(settings).server, settings.model, options.prices, settings.api)


def announced_ends(run: ResolvedRun, today: date) -> list[str]:
    every = [model.settings for _, model in run.models]
    ends = (end_warnings(build_account(each).server, each.model, each.parameters, today) for each in every)
    return sorted({warning for warnings in ends for warning in warnings})


def old_price_warnings(run: ResolvedRun, options: CallOptions, today: date) -> list[str]:
    every = [model.settings for _, model in run.models]
    warnings = [old_price_warning(build_account(each).server, each.model, options.prices, today) for each in every]
    return sorted({warning for warning in warnings if warning})


def unused_address_warnings(run: ResolvedRun) -> list[str]:
    variables = set[str]()
    for _, model in run.models:
        wire = find_protocol(model.settings.api)
        value = os.environ.get(wire.address_variable, "").strip().rstrip("/")
        if wire.uses_provider(model.settings) and value not in ("", wire.address):
            variables.add(wire.address_variable)
    return [
        f"note: {name} is set but not used. To ask that server, set `base_url: env` or --base-url env"
        for name in sorted(variables)
    ]
