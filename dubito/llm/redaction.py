"""Keep an account's key, and the ids of organisations and projects, out of everything that a server echoes."""

import re
from html import escape
from typing import Final

_SHORTEST_KEY: Final = 8  # characters from which a key is a secret
_IDS: Final = r"org-[A-Za-z0-9]{16,}|proj_[A-Za-z0-9]{16,}"  # of organisations and projects
_UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # so one provider names them in its errors


class Redaction:
    """Replaces the key of one account in texts of its server."""

    def __init__(self, key: str) -> None:
        written = pattern_of_key(key)
        self._in_errors = re.compile(f"{written}|{_IDS}|{_UUID}")
        self._in_replies = re.compile(f"{written}|{_IDS}" if len(key) >= _SHORTEST_KEY else _IDS)

    def error(self, text: str) -> str:
        return self._in_errors.sub("***", text)

    def reply(self, text: str) -> str:
        return self._in_replies.sub("***", text)


def pattern_of_key(key: str) -> str:
    slashes = re.compile(r"\\+|[^\\]")
    return "".join(_pattern_of_characters(part) for part in slashes.findall(key))


def _pattern_of_characters(part: str) -> str:
    """Return the pattern of one character, or of backslashes in a row, which each level of JSON doubles."""
    slash = r"(?:\\(?:u005[cC])?)"
    code = ord(part[0])
    coded = rf"{slash}{{1,4}}u(?i:{code:04x})|%(?i:{code:02x})|&\#0*{code};|&\#[xX]0*(?i:{code:x});"
    if part[0] == "\\":
        forms = [f"{slash}{{{len(part) * times}}}" for times in (8, 4, 2, 1)]
        return f"(?:{'|'.join(forms)}|(?:{coded}){{{len(part)}}})"
    named = f"|{re.escape(escape(part))}" if escape(part) != part else ""
    plain = f"{slash}{{0,7}}{part}" if part in "\"'/" else re.escape(part)
    return f"(?:{plain}|{coded}{named})"
