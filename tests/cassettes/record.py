"""Record the cassettes with `python -m tests.cassettes.record`, from the built-in server at no cost.

`--real --openai MODEL --anthropic MODEL` asks the providers instead, with OPENAI_API_KEY and ANTHROPIC_API_KEY: one
short game per cassette, which costs a few cents. Do not run it in CI.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import pytest
import yaml

from tests.cassettes.kit import CASSETTES, HERE, INDEX, KEYS, RECORD

HOUSE = "house-sharp"


def main(words: Sequence[str]) -> int:
    """Record, and return pytest's exit code, or 2 if something is missing."""
    reader = argparse.ArgumentParser(prog=RECORD, description=__doc__)
    reader.add_argument("--real", action="store_true", help="ask the providers, which costs money")
    reader.add_argument("--openai", metavar="MODEL", help="with --real: the model to ask by Responses and by Chat")
    reader.add_argument("--anthropic", metavar="MODEL", help="with --real: the model to ask by Messages")
    asked = reader.parse_args(words)
    if asked.real:
        if not (asked.openai and asked.anthropic and all(os.environ.get(key) for key in KEYS)):
            reader.error(f"--real needs --openai MODEL, --anthropic MODEL and the keys {' and '.join(KEYS)}")
        os.environ["DUBITO_TESTS_MAY_CONNECT"] = "yes"
    models = {"responses": asked.openai, "chat": asked.openai, "messages": asked.anthropic}
    index = {
        "against": "providers" if asked.real else "house",
        "models": models if asked.real else dict.fromkeys(models, HOUSE),
        "results": {},
    }
    CASSETTES.mkdir(exist_ok=True)
    INDEX.write_text(yaml.safe_dump(index, sort_keys=True), encoding="utf-8")
    # This module has already imported dubito.
    loaded = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    return int(pytest.main([str(HERE / "test_recorded.py"), "--record-mode=rewrite", "--quiet", "-W", loaded]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
