"""Limits of templates: an expensive prompt from elsewhere is rejected quickly with one sentence."""

from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import pytest

from dubito.errors import UsageError
from dubito.games.dubito.facts import example_position
from dubito.llm import templates
from dubito.llm.prompts import Prompt

BESIDE = {"prompt.yaml": "title: t\nanswer: [answer]\n", "system.jinja": "{{ answer_format }}"}
MOST_MAX_STEPS = templates._MAX_STEPS
FEWER = 20_000  # steps; only one test uses the real limit
STEPS, WIDTH, LONGER = f"takes more than {FEWER:,} steps", "a width in a format", "would be too long"
MOST = 60 << 10  # kilobytes; some of these templates used gigabytes


def doubled(way: str) -> str:
    return "{% set ns = namespace(s=['x']|first, t=[1]) %}{% for i in range(40) %}" + way + "{% endfor %}{{ ns.s }}"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for a in range(9999) %}{% for b in range(9999) if false %}{% endfor %}{% endfor %}", STEPS),
        ("{% for a in range(99999) recursive %}{{ loop(range(99999)) }}{% endfor %}", STEPS),
        ("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}", STEPS),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "maximum recursion depth"),
        *(
            (f"x {{% {tag} %}}", "user.jinja, line 1: .*because user.jinja includes itself")
            for tag in (
                "include 'user.jinja'",
                "import 'user.jinja' as u",
                "extends 'user.jinja'",
                "include ['user.jinja']",
            )
        ),
        (
            "{% if seat > 99 %}{% include 'system.jinja' %}{% include 'user.jinja' %}{% endif %}",
            "because user.jinja includes itself",
        ),
        ("{% for i in range(9999) %}" + "x" * 5000 + "{% endfor %}", "user.jinja produces more than 500,000"),
        ("{{ '%999999999d' % 1 }}", WIDTH),
        ("{{ '%*d' % (999999999, 1) }}", WIDTH),
        ("{{ '%999999999d'|format(1) }}", WIDTH),
        ("{{ '{:999999999}'.format(1) }}", WIDTH),
        ("{{ ('{0:9999}' * 60000).format(1) }}", LONGER),
        ("{{ 'x' * 10**9 }}", LONGER),
        ("{{ [0] * 10**9 }}", LONGER),
        ("{{ 'x'|center(10**9) }}", LONGER),
        ("{{ 'x'.center(10**9) }}{{ 'x'.zfill(10**9) }}", LONGER),
        ("{{ 'x\nx'|indent(10**9) }}", LONGER),
        ("{{ [1]|batch(10**8, 0)|list }}", LONGER),
        ("{{ 7 .to_bytes(10**9, 'big') }}", LONGER),
        ("{{ ('x' * 9000).join(range(9999)|map('string')) }}", LONGER),
        ("{{ 10**10000000 }}", "a number has more than 4,096 bits"),
        ("{% for i in range(10**9) %}x{% endfor %}", "Range too big"),
        ("{% set l = range(99999)|list %}{{ range(99999)|select('in', l)|list|length }}", STEPS),
        ("{% set l = range(99999)|list %}{% for i in range(9999) %}{% set n = l.count(-1) %}{% endfor %}", STEPS),
        ("{% set l = range(9999)|list %}{% for i in range(4000) %}{{ l }}{% endfor %}", STEPS),
        ("{{ ('x' * 400000).encode('punycode') }}", "access to attribute 'encode' of 'str' object is unsafe"),
        (doubled("{% set ns.s = ns.s ~ ns.s %}"), STEPS),
        (doubled("{% set ns.s = {'a': ns.s, 'b': ns.s} %}"), STEPS),
        (doubled("{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}"), "produces more than 500,000"),
        ("{% set x = 'x' * 400000 %}{% for i in range(9999) %}{{ 'y' if x == x }}{% endfor %}", STEPS),
        ("".join(f"{{% for a{n} in [1] %}}" for n in range(30)) + "{% endfor %}" * 30, "it cannot be compiled"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "it cannot be compiled: RecursionError"),
        ("{{ " + "9" * 5000 + " }}", "it cannot be compiled: ValueError"),
    ],
)
def test_resources_of_a_template_are_limited(template: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_MAX_STEPS", FEWER if words == STEPS else MOST_MAX_STEPS)
    check_refused(template, words)


def test_template_has_at_most_a_million_steps() -> None:
    loop = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}"
    check_refused(loop, "takes more than 1,000,000 steps")


def check_refused(template: str, words: str) -> None:
    """Check that the prompt is rejected with a sentence about its file before it uses much memory."""
    before = getrusage(RUSAGE_SELF).ru_maxrss
    with pytest.raises(UsageError, match=words) as refused:
        Prompt(Path("prompts/theirs"), BESIDE | {"user.jinja": template})
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < MOST
    assert str(refused.value).startswith("prompts/theirs")
    assert "user.jinja" in str(refused.value)
    assert len(str(refused.value)) < 400


def test_limits_allow_ordinary_prompts() -> None:
    template = (
        "{% for number in [3, 1]|sort %}{{ loop.index }} of {{ loop.length }}: {{ number }}{{ ',' if not loop.last }} "
        "{% endfor %}{{ '%-4s|%05.1f' % ('x', 2) }} {{ '{:>5}'.format(3) }} {{ '%s'|format('y') }} "
        "{{ 'a,b'.split(',') }} "
        "{{ [1, 2, 3][:2] }} {{ 1 < 2 < 3 and 3 not in [1] }} {{ 'x' ~ 1 }} {% set a, b = 1, 2 %}{{ a + b * 2 }} "
        "{{ range(3)|map('string')|join('-') }} {{ 'text'|indent(2, true) }} {{ [1, 2, 3]|batch(2)|list }} {{ 2**10 }}"
    )
    text = Prompt(Path("prompts/mine"), BESIDE | {"user.jinja": template}).render(example_position("C")).user
    assert text.endswith("1 of 2: 1, 2 of 2: 3 x   |002.0     3 y a b 1 2 yes x1 5 0-1-2   text 1 2 3 1024")
