"""Cassettes: the stored interactions, matching of requests, and messages for missing ones."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import yaml

from dubito.files import check_format
from dubito.llm.recording import compare_requests
from dubito.llm.request import canonical_json
from dubito.model_settings import is_on_this_machine

HERE: Final = Path(__file__).parent
CASSETTES: Final = HERE / "recorded"
INDEX: Final = CASSETTES / "index.yaml"  # the servers that were recorded, and the results
KEYS: Final = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_KEPT_HEADERS: Final = ("content-type", "retry-after")  # all other headers are dropped from requests and responses
_IDS: Final = {
    *("id", "request_id", "user", "safety_identifier", "system_fingerprint", "organization", "project"),
    *("signature", "encrypted_content", "prompt_cache_retention"),
}
_ID: Final = re.compile(r"(?:org-|proj_|req_)[A-Za-z0-9]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
GONE: Final = "(scrubbed)"


class Block(str):
    """A text of several lines, which YAML writes as a block."""

    __slots__ = ()


FORMAT: Final = 1  # version of vcrpy's format
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's loader if available


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|"))


class Readable:
    """A serializer for vcrpy that writes bodies as YAML and texts in lines, so that diffs of prompts are readable."""

    @staticmethod
    def serialize(cassette: dict[str, Any]) -> str:
        for interaction in cassette["interactions"]:
            interaction["request"]["body"] = _opened(interaction["request"]["body"])
            interaction["response"]["body"] = _opened(interaction["response"]["body"]["string"])
        return yaml.dump(cassette, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=140)

    @staticmethod
    def deserialize(text: str) -> dict[str, Any]:
        cassette: dict[str, Any] = yaml.load(text, _LOADER)  # noqa: S506, which loads no more than `safe_load`
        check_format(cassette.get("version"), FORMAT, "this cassette")
        for interaction in cassette["interactions"]:
            interaction["request"]["body"] = _closed(interaction["request"]["body"])
            interaction["response"]["body"] = {"string": _closed(interaction["response"]["body"])}
        return cassette


def _opened(body: str) -> Any:
    try:
        return _lines(json.loads(body))
    except ValueError:
        return {"text": body}


def _closed(body: Any) -> str:
    return body["text"] if set(body) == {"text"} else json.dumps(body)


def _lines(value: Any) -> Any:
    """Return the value with its multi-line texts as blocks."""
    if isinstance(value, dict):
        return {key: _lines(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_lines(inner) for inner in value]
    return Block(value) if isinstance(value, str) and "\n" in value else value


def kept_request(request: Any) -> Any:
    """Remove what identifies the sender from a request: headers, port and key."""
    url = urlsplit(request.uri)
    host = "http://house" if is_on_this_machine(request.uri) else f"{url.scheme}://{url.hostname}"
    request.uri = f"{host}{url.path}"
    request.headers = _kept_headers(request.headers)
    request.body = _without_keys((request.body or b"").decode()).encode()
    return request


def kept_response(response: dict[str, Any]) -> dict[str, Any]:
    """Remove cookies and the ids of requests, answers and organisations from a response."""
    text = _without_keys(response["body"]["string"].decode("utf-8", "replace"))
    try:
        text = json.dumps(_without_ids(json.loads(text)))
    except ValueError:
        text = _ID.sub(GONE, text)
    return {**response, "headers": _kept_headers(response["headers"]), "body": {"string": text.encode()}}


def _kept_headers(headers: Mapping[str, Any]) -> dict[str, Any]:
    return {name.lower(): value for name, value in headers.items() if name.lower() in _KEPT_HEADERS}


def _without_keys(text: str) -> str:
    for key in filter(None, map(os.environ.get, KEYS)):
        text = text.replace(key, GONE)
    return text


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: GONE if key in _IDS and isinstance(inner, str) else _without_ids(inner) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_ids(inner) for inner in value]
    return _ID.sub(GONE, value) if isinstance(value, str) else value


def text_of(request: Any) -> str:
    return canonical_json({"path": urlsplit(request.uri).path, "body": json.loads(request.body)})


def same_request(one: Any, other: Any) -> None:
    assert (one.method, text_of(one)) == (other.method, text_of(other))


@contextmanager
def played_whole(cassette: Any) -> Iterator[None]:
    """Check that each request inside the context has a recording, and that every recording was used."""
    finds: Callable[[Any], bool] = cassette.can_play_response_for
    if not cassette.write_protected:  # the cassette is being recorded
        yield
        return

    missed: list[str] = []

    def find(request: Any) -> bool:
        if not finds(request):
            missed.append(_missing(cassette, request))
            pytest.fail(missed[0])  # not an Exception, which an SDK would treat as a lost connection
        return True

    cassette.can_play_response_for = find
    yield
    if missed:
        pytest.fail(missed[0])
    if unused := _unused(cassette):
        pytest.fail(f"{len(unused)} of {len(cassette)} recorded interactions were not used, the first: {unused[0].uri}")


def _unused(cassette: Any) -> list[Any]:
    return [request for place, request in enumerate(cassette.requests) if not cassette.play_counts[place]]


def _missing(cassette: Any, request: Any) -> str:
    unused = _unused(cassette)
    if not unused:
        return f"one request more than the {len(cassette)} that were recorded: {request.uri}"
    lines = [f"a request differs from the recording; record again with `{RECORD}`. Differences from the next one:"]
    for difference in compare_requests(text_of(request), text_of(unused[0])):
        lines += [f"- {difference.part}", f"  now:      {difference.wanted}", f"  recorded: {difference.stored}"]
    return "\n".join(lines)


RECORD: Final = "python -m tests.cassettes.record"
