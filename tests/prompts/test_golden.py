"""Golden renderings of every node; `python -m tests.prompts.golden` rewrites them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from statistics import mean
from typing import Any

import pytest

from dubito.games.dubito.facts import DubitoFacts, example_position
from dubito.llm.prompts import RenderedPrompt, load_prompt
from dubito.llm.protocols import build_request
from dubito.llm.protocols.wire import Exchange
from dubito.llm.recording import common_length
from dubito.model_settings import Api
from tests.conftest import in_gate
from tests.llm.kit import PROTOCOLS, settings
from tests.prompts import golden
from tests.prompts.kit import PLAIN, PROMPTS, REPO, RULES, SIZES, turns


@pytest.mark.parametrize("name", golden.NAMES)
def test_folder_has_exactly_the_golden_renderings(name: str) -> None:
    assert {file: file.read_bytes().decode() for file in golden.folder(name).iterdir()} == golden.renderings(name)


def test_example_positions_cover_many_facts() -> None:
    prompts_text = "\n".join(file.read_text() for file in golden.folder("plain").iterdir())
    for text in (": a bluff", ": honest", "Yours: ", "discards", "a hard win", " known ", " less ", "sure_bluff: no"):
        assert text in prompts_text, text


def test_every_line_of_the_facts_has_its_meaning() -> None:
    """Each line of the facts is explained at some node, and each explanation has a line."""
    values = DubitoFacts().facts(example_position("C"))
    block = PLAIN.render(example_position("C")).user.partition("=== facts ===\n")[2].partition("=== end")[0]
    names = {line.partition(":")[0] for line in block.splitlines()}
    seats = {f"seat {player['seat']}" for player in values["players"]}
    assert seats < names
    assert names - seats | {"seat N"} == {name for names in values["meanings"] for name in names.split(", ")}


def cached(protocol: Api, body: Mapping[str, Any], before: Mapping[str, Any]) -> float:
    """Return the share of a request's text that the provider can read from its cache after another request.

    With `messages`, these are whole blocks up to a mark of the earlier request, within 20 blocks. Otherwise it is the
    common prefix.
    """
    new, old = blocks(body), blocks(before)
    text = "".join(text for text, _ in new).encode()
    if protocol != "messages":
        return common_length(text, "".join(text for text, _ in old).encode()) / len(text)
    marks = [[place for place, (_, marked) in enumerate(each) if marked] for each in (new, old)]
    assert all(1 <= len(each) <= 4 for each in marks)
    texts = [[text for text, _ in each] for each in (new, old)]
    kept = [last for last in marks[1] if texts[0][: last + 1] == texts[1][: last + 1]]
    found = [last for last in kept if any(0 <= mark - last < 20 for mark in marks[0])]
    return len("".join(texts[0][: max(found) + 1]).encode()) / len(text) if found else 0.0


def blocks(body: Mapping[str, Any]) -> list[tuple[str, bool]]:
    contents = [body.get("system", []), *(each["content"] for each in body.get("messages") or body["input"])]
    parts = [[{"text": each}] if isinstance(each, str) else each for each in contents]
    return [(part["text"], "cache_control" in part) for each in parts for part in each]


@pytest.mark.parametrize(("protocol", "name"), in_gate(product(PROTOCOLS, PROMPTS), [("responses", "reasoned")]))
def test_most_of_a_request_can_be_read_from_a_providers_cache(name: str, protocol: Api) -> None:
    """From a player's fifth decision on, 80 % of a request comes before anything that changes.

    In 19 of 20 requests that part was sent before. The others are at tables of eight, where seven players' moves can be
    as long as the facts. Prompts for whole turns have longer questions and shorter rules, and more has happened since
    the last request.
    """
    many, least, usual, last = (190, 0.75, 0.80, 0.70) if load_prompt(name, REPO).asks_turn else (650, 0.80, 0.86, 0.75)
    shares: list[tuple[float, float]] = []
    for game in rendered(name):
        shares += cached_shares(protocol, game)
    ahead, sent = (sorted(share) for share in zip(*shares, strict=True))
    assert len(shares) > many
    assert ahead[0] >= least
    assert mean(sent) > usual
    assert sent[len(sent) // 20] >= least
    assert sent[0] >= last


@cache
def rendered(name: str) -> list[list[tuple[int, RenderedPrompt]]]:
    """Render the questions of whole games with three to eight players, with the seats that were asked."""
    prompt = load_prompt(name, REPO)
    games = [turns(rules, size, 0) for size in SIZES for rules in RULES[:2]]
    most = 1 if prompt.asks_turn else None  # requests per turn
    return [[(one.seat, prompt.render(one)) for _, asked in game for one in asked[:most]] for game in games]


def cached_shares(protocol: Api, game: Iterable[tuple[int, RenderedPrompt]]) -> Iterator[tuple[float, float]]:
    """Yield, for each late request of a game, the share before anything that changes and the share already sent."""
    last: dict[int, Mapping[str, Any]] = {}
    decisions: Counter[int] = Counter()
    for seat, rendered in game:
        exchange = Exchange(rendered.system, rendered.user, {}, history=rendered.history)
        body = build_request(settings(protocol), exchange, "key").body
        decisions[seat] += 1
        if decisions[seat] >= 5:
            size = sum(len(text.encode()) for text, _ in blocks(body))
            yield 1 - len(rendered.user.encode()) / size, cached(protocol, body, last[seat])
        last[seat] = body
