"""The overview page: the winner, how certain the result is, and what the run cost.

The page starts with the result in words, computed from the figures and their intervals (`ranking.py`).
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from dubito.errors import pluralize
from dubito.experiment.experiment import describe_claims, describe_fake_models
from dubito.experiment.lies import LieCounts
from dubito.experiment.stop import describe_stop_rule
from dubito.experiment.stored import Run, list_contenders
from dubito.game.words import display_name
from dubito.report.deception import Stories
from dubito.report.players import RunPlayers
from dubito.report.run_tables import (
    bot_errors,
    bounds_table,
    contender_notes,
    contenders_among_opponents,
    duel_tables,
    models_table,
    sizes_table,
    turns_per_game,
)
from dubito.report.scan import Scan
from dubito.report.tables import (
    Block,
    Column,
    Links,
    NamedValues,
    Page,
    Paragraph,
    Pills,
    Preview,
    ResultTable,
    Section,
)
from dubito.report.verdicts import describe_verdict, describe_winner
from dubito.stats.players import fallback_share
from dubito.stats.ranking import by_table_size, contender_ranking
from dubito.stats.relation import PRELIMINARY
from dubito.store.folder import last_written, to_yaml
from dubito.store.spend import PICO, dollars

_FALLBACK: Final = "a bot's answer replaced an unusable one"
_UNITS: Final = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


def headline(source: Run) -> list[str]:
    verdict = describe_verdict(source.relation, source.label)
    return [verdict, *_describe_cost(source)]


def _describe_cost(source: Run) -> list[str]:
    """Summarize the tokens, cost and fallbacks of all model players.

    Players whose answers were all fallbacks are named.
    """
    if not source.models:
        return []
    models, logs = source.models.items(), source.models.values()
    cached, costs = sum(log.cached for log in logs), [log.picodollars for log in logs]
    if cached and not any(log.calls for log in logs):
        use = f"All {cached:,} replies are from the cache, so this run called no model and cost nothing"
    else:
        tokens = sum(log.tokens["input"] + log.tokens["output"] for log in logs)
        total = sum(filter(None, costs))
        cost = dollars(total) if 0 < total < PICO // 100 else f"${total / PICO:,.2f}"
        use = f"{_format_count(tokens)} tokens, {'cost unknown' if None in costs else cost}"
    shares = {source.label(name): fallback_share(log.outcomes) for name, log in models if log.decisions}
    some = {
        name: "less than 0.1 %" if share < 0.001 else f"{100 * min(share, 0.999):.1f} %"
        for name, share in shares.items()
        if 0 < share < 1
    }
    every = [name for name, share in shares.items() if share == 1]
    usable = "" if some or every else " Every model answer was usable (no fallbacks)."
    sentences = [f"{use}.{usable}"]
    if some:
        parts = [f"{share} of the answers by {name}" for name, share in some.items()]
        sentences.append(f"Fallbacks ({_FALLBACK}): {' and '.join(parts)}.")
    if every:
        what = "fallbacks" if some else f"fallbacks ({_FALLBACK})"
        sentences.append(f"All answers by {' and '.join(every)} were {what}, so this run does not measure the model.")
    return sentences


def _format_count(count: int) -> str:
    """Format a large number, such as 5.9 M."""
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count}"


def overview(
    source: Run, scanned: Scan, lies: LieCounts | None, stories: Stories | None, looks: Sequence[tuple[str, str, str]]
) -> Page:
    """Return the first page. `looks` contains links to the other pages as (name, path, description)."""
    results, players, relation = source.game.results, RunPlayers(source), source.relation
    games, planned = source.tally.games, source.planned
    answer, sure = describe_winner(relation)
    marked = []
    if relation.is_preliminary:
        marked.append(f"Preliminary: only {pluralize(relation.deals, 'deal')} (fewer than {PRELIMINARY})")
    if not source.is_finished:
        marked.append(f"Unfinished: {games:,} of {planned.games:,} games counted")
    cost = _describe_cost(source) or ["No models played, so nothing was spent."]
    fake = describe_fake_models(source.kinds)
    blocks: list[Block] = [Paragraph(fake, warning=True)] if fake else []
    blocks += [Paragraph(sure)] if sure else []
    sections = [Section("", [*blocks, Pills(marked, cost), players.score_chart()])]
    if stories and source.models:
        sections.append(Section("How each model plays", stories.tiles(players.names)))
    sections.append(Section("All players", _player_blocks(source, players, lies)))
    if source.game.is_duel:
        tables = duel_tables(source.tally, source.names, results, source.label)
        sections.append(Section("First against second", tables))
    sections.append(Section("Look closer", [Links(looks)]))
    sections.append(Section("More: settings, model usage, files", _more_blocks(source, scanned), folded=True))

    preview = Preview(" ".join(headline(source)), players.chart())
    title, _ = describe_winner(relation, source.label)
    written = last_written(source.folder)  # 0 for an exported run, which has no database
    when = f"{datetime.fromtimestamp(written, UTC):%Y-%m-%d %H:%M} UTC, " if written else ""
    seed = f", the seed {source.secrecy_in_words}" if planned.has_programs else ""
    about = f"{display_name(source.game)} · {when}{games:,} games{seed}"
    return Page("index.html", title, sections, heading=answer, about=about, preview=preview)


def _player_blocks(source: Run, players: RunPlayers, lies: LieCounts | None) -> list[Block]:
    """Return the full verdict, the table of all players, and notes about limitations."""
    results, relation = source.game.results, source.relation
    verdict = Paragraph(describe_verdict(relation, source.label), answer=True)
    blocks: list[Block] = [verdict, Paragraph(results.meaning), players.table(lies)]
    if both := contenders_among_opponents(relation, [player.name for player in source.planned.bots]):
        blocks.append(Paragraph(both))
    contenders = list_contenders(source.planned)
    compared = contender_ranking(source.tally, contenders, results)
    # The contenders are in the table of all players, and their pairs are on the page that compares two.
    blocks += contender_notes(compared, relation if relation.paired else None, results)
    if source.not_enforced:
        blocks.append(Paragraph(f"Not enforced in this run: {'; '.join(source.not_enforced)}.", warning=True))
    claims = describe_claims(source.planned.claiming_kinds)
    return [*blocks, *bot_errors(source.rows), *([Paragraph(claims)] if claims else [])]


def _more_blocks(source: Run, scanned: Scan) -> list[Block]:
    planned, results = source.planned, source.game.results
    settings = [
        ("games", f"{source.tally.games:,} of {planned.games:,}"),
        *((("stop", describe_stop_rule(planned, source.game)),) if planned.stop else ()),
        *((("shard", f"{planned.shard.number} of {planned.shard.of}"),) if planned.shard else ()),
        ("game", planned.game),
        ("seed", source.seed_in_words),
        ("table sizes", ", ".join(map(str, planned.table_sizes))),
        ("turns per game", turns_per_game(source.tally, results)),
        *((f"rules: {key}", f"{value}") for key, value in planned.rules.items()),
        ("on_bot_error", planned.on_bot_error),
    ]
    for player in planned.players:
        if player.settings:
            given = (f"{key}: {value}" for key, value in player.settings.items() if value not in (None, {}, []))
            settings.append((f"player: {player.name}", "; ".join([player.bot, *given])))
    blocks: list[Block] = [NamedValues(settings, "Settings")]
    if source.models:
        bounds = bounds_table(source.rows, source.contenders, source.deals * planned.contender_seats, results)
        blocks += [models_table(source.models, source.names), *([bounds] if bounds else [])]
    if len(planned.table_sizes) > 1:
        places = {name: player for player, name in enumerate(source.names)}
        rows = by_table_size(source.tally, source.names, results)
        blocks.append(
            sizes_table(
                rows, lambda row, key: scanned.measure_at_size(places[row.name], row.size, key), results, scanned.widths
            )
        )
    return [*blocks, *_digests(source)]


def _digests(source: Run) -> list[Block]:
    planned = source.planned
    facts = [
        ("results digest", source.results_digest),
        *((key, f"{value}") for key, value in source.other_settings.items()),
        *((f"version of {key}", f"{value}") for key, value in source.versions.items()),
    ]
    roles = {"field": planned.bots, "contender": planned.contenders}
    players = planned.players
    played = [" and ".join(role for role, those in roles.items() if player in those) for player in players]
    settings = [to_yaml(player.settings).strip().removeprefix("{}") or None for player in players]
    columns = [
        Column("player", "player", "player", [player.name for player in players]),
        Column("role", "role", "text", played),
        Column("bot", "bot", "text", [player.bot for player in players]),
        Column("settings", "settings", "text", settings),
        Column("source", "SHA-256 of the bot's file", "text", [player.source or None for player in players]),
        Column("prompt", "digest of the prompt", "text", [player.prompt or None for player in players]),
        Column("fallback", "SHA-256 of the fallback's file", "text", [player.fallback or None for player in players]),
    ]
    return [
        NamedValues(facts, "Digests and versions"),
        ResultTable("digests", "Players and digests of their files", columns),
    ]
