"""The pages for playing without a server: a worker in the visitor's browser asks for them (docs/playing.md)."""

import json
import re
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from mimetypes import guess_type
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from dubito.errors import one_line
from dubito.game.find import DUBITO
from dubito.show.opponents import bots_of_game, bots_of_other_games
from dubito.show.person import MAX_NAME
from dubito.web.site import PlaySite, refuse
from dubito.web.tables import Tables
from dubito.web.visit import POLICY, VIEWER, PageAnswer, Visit

_BROKEN: Final = "an internal error occurred; see the browser's console"
_NOT_FOUND: Final = "Not Found"
_STATIC: Final = {"static": files("dubito.web") / "static", VIEWER: files("dubito.report") / "static"}


class InPage:
    """The site of one person, whose games are in `folder`. Others can open it at `address`."""

    def __init__(self, folder: Path, address: str) -> None:
        first = bots_of_game(DUBITO)
        games = {first.game.name: first} | bots_of_other_games(first.game)
        self._site = PlaySite(Tables(folder, games, time.time, in_threads=False), address)
        self._secret_file = folder / "running" / "secret"

    def visit(self, method: str, address: str, body: str = "", person: str = "") -> str:
        """Answer a visit to an address of the site, such as `/games?x=1`, as JSON for the worker's script."""
        parts = urlsplit(address)
        try:
            answer = self._answer(method, parts.path, dict(parse_qsl(parts.query)), body.encode(), person)
        except Exception:
            traceback.print_exc()
            answer = refuse(parts.path, 500, _BROKEN)
        if answer.secret is not None:
            self._secret_file.write_text(answer.secret, encoding="utf-8")
        kind = answer.headers.get("Content-Type", answer.kind)
        headers = {
            **answer.headers,
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Security-Policy": POLICY,
        }
        return json.dumps({"status": answer.status, "headers": headers, "text": answer.text})

    def _answer(self, method: str, path: str, query: Mapping[str, str], body: bytes, person: str) -> PageAnswer:
        for route in self._site.routes:
            found = re.fullmatch(route.path.replace("{name}", "([^/]+)"), path)
            if found is not None and route.method == method:
                name = unquote("".join(found.groups()))
                secret = None
                with suppress(FileNotFoundError):
                    secret = self._secret_file.read_text(encoding="utf-8")
                who = one_line(person, MAX_NAME).strip()
                return self._site.answer(route, Visit(path, query, name, body, secret, who))
        _, folder, *rest = path.split("/")
        if len(rest) != 1 or folder not in _STATIC or not (file := _STATIC[folder] / rest[0]).is_file():
            return refuse(path, 404, _NOT_FOUND)
        return PageAnswer(file.read_text(encoding="utf-8"), headers={"Content-Type": f"{guess_type(file.name)[0]}"})
