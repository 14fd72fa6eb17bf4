"""Fixtures that record and replay cassettes through the real SDKs, without any network."""

import os
from typing import Any

import pytest

from tests.cassettes.kit import CASSETTES, Readable, kept_request, kept_response, same_request


def pytest_recording_configure(config: pytest.Config, vcr: Any) -> None:
    vcr.register_serializer("yaml", Readable)
    vcr.register_matcher("request", same_request)


@pytest.fixture
def vcr_config() -> dict[str, Any]:
    """Configure pytest-recording and vcrpy."""
    return {
        "match_on": ["request"],
        "before_record_request": kept_request,
        "before_record_response": kept_response,
        "decode_compressed_response": True,
    }


@pytest.fixture(scope="module")
def vcr_cassette_dir() -> str:
    return str(CASSETTES)


@pytest.fixture
def default_cassette_name(request: pytest.FixtureRequest) -> str:
    named = request.node.get_closest_marker("default_cassette")
    return str(named.args[0] if named else request.node.callspec.id)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, record_mode: str) -> None:
    """Remove proxies, and set placeholder keys when replaying. Recording uses the user's keys."""
    for name in os.environ:
        if name.lower().endswith("_proxy") or (record_mode == "none" and name.startswith(("OPENAI_", "ANTHROPIC_"))):
            monkeypatch.delenv(name)
    if record_mode == "none":
        monkeypatch.setenv("OPENAI_API_KEY", "no-key-needed")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "no-key-needed")
