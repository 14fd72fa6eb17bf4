"""A model at the table in a real browser: thinking, unreachable, continuing, with its text saved."""

import threading
from pathlib import Path

from tests.chromium import Chrome
from tests.llm.kit import Incoming, Response, Server, respond
from tests.web.kit import in_events, model_at, table_with

DEAL = """
(() => {
  const form = document.querySelector('#lobby');
  localStorage.setItem('dubito speed', '0');
  form.size.value = '3';
  form.size.dispatchEvent(new Event('change'));
  form.bot[1].value = 'MrDoubt';
  form.seat.value = '0';
  form.seed.value = '1';
  form.requestSubmit();
})()
"""
SHOWN = "document.querySelector('#viewer')?.hidden === false"


def test_models_words_are_saved_after_thinking_and_retries(chrome: Chrome, home: Path) -> None:
    arrived, shown = threading.Event(), threading.Event()
    answers = iter([False])
    rules = {"max_turns": 4}

    def slow(asked: Incoming) -> Response:
        arrived.set()
        if next(answers, True):
            return respond(asked.protocol)
        overloaded = {"error": {"code": "overloaded", "message": "<script>document.title = 'x'</script>"}}
        return in_events({"reasoning": "I hold them.", "answer": True}, 6, shown, overloaded)

    with (
        Server(slow) as model,
        table_with(home, model_at(model, "<b>asker</b>", api="chat"), preflight=False, rules=rules) as server,
    ):
        chrome.screen(390)
        chrome.open(f"http://127.0.0.1:{server.port}/")
        assert (
            chrome.run("document.querySelector('#lobby').bot[0].value") == "<b>asker</b>"
        )  # a config's models are listed first
        chrome.until("document.querySelectorAll('.opponent[hidden]').length === 4")
        chrome.run(DEAL)
        chrome.until("document.querySelector('#own.asked') !== null")
        chrome.click("#hand button")
        chrome.click("#put")
        chrome.until("document.querySelector('#prompt').textContent.includes('is thinking')")
        assert arrived.wait(20)
        chrome.until("document.querySelector('#prompt').textContent === '<b>asker</b> is thinking … 2 words'")
        assert chrome.run("document.querySelector('#put') === null")
        shown.set()
        chrome.until("document.querySelector('#trouble').hidden === false")
        assert "which cannot be reached" in chrome.text("#why")
        assert "thinking" not in chrome.text("#prompt")
        assert chrome.run("document.activeElement.id") == "again"
        chrome.click("#again")
        chrome.until("document.querySelector('#own.asked') !== null")
        assert chrome.run("document.querySelector('#trouble').hidden")
        while chrome.run("document.querySelector('#end').hidden"):
            chrome.run("document.querySelector('#hand button').click(); document.querySelector('#put').click()")
            chrome.until("document.querySelector('#own.asked') !== null || !document.querySelector('#end').hidden")
        chrome.run("document.querySelector('#watch').click()")
        chrome.until(f"location.pathname.startsWith('/games/') && {SHOWN}")
        for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight"):  # the last one ends the scene of a doubt
            chrome.key(key)
        decisions = chrome.text("#decisions")
        assert '{"answer": true}' in decisions
        assert "MrDoubt" not in decisions
        assert chrome.run("document.querySelectorAll('#seats b b, #decisions script').length") == 0
