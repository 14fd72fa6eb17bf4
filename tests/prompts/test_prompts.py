"""Loading prompts: where they are found, what is rejected, and what templates can access."""

import shutil
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.games.dubito.bot import NODES
from dubito.games.dubito.facts import DubitoFacts, example_position
from dubito.games.dubito.game import GAME
from dubito.llm.answers import answer_format
from dubito.llm.prompts import OWN_PROMPTS, Prompt, SeatTexts, load_prompt, prompt_names
from dubito.llm.templates import format_value
from tests.prompts.kit import ARMS, PLAIN, PROMPTS, REPO

DESCRIPTION = "title: A test\nanswer: [answer]\n"


def prompt_folder(root: Path, name: str = "mine", **files: str) -> Path:
    """Write a prompt into `prompts` of a working directory; `prompt`, `system` and `user` are optional."""
    folder = root / "prompts" / name
    folder.mkdir(parents=True)
    (folder / "prompt.yaml").write_text(files.get("prompt", DESCRIPTION))
    (folder / "system.jinja").write_text(files.get("system", "Seat {{ seat }}."))
    (folder / "user.jinja").write_text(files.get("user", "{{ question }}"))
    if "history" in files:
        (folder / "history.jinja").write_text(files["history"])
    return folder


def refusal(root: Path, name: str = "mine") -> str:
    """Return the one-line error message for an unusable prompt."""
    with pytest.raises(UsageError) as caught:
        load_prompt(name, root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_prompt_of_the_working_directory_is_found_by_name(tmp_path: Path) -> None:
    prompt_folder(tmp_path)
    prompt = load_prompt("mine", tmp_path)
    assert (prompt.name, prompt.title) == ("mine", "A test")
    assert prompt.render(example_position("A")).system == "Seat 1."
    assert prompt_names(tmp_path) == sorted(["mine", *ARMS, *PROMPTS])


def test_a_prompt_is_found_by_its_path(tmp_path: Path) -> None:
    folder = prompt_folder(tmp_path)
    for path in ("prompts/mine", "./prompts/mine", "prompts/mine/", str(folder)):
        assert load_prompt(path, tmp_path).digest == load_prompt("mine", tmp_path).digest
    assert load_prompt(".", folder).name == "mine"


def test_a_folder_anywhere_may_include_the_facts_of_the_project(tmp_path: Path) -> None:
    folder = prompt_folder(tmp_path, user='{% include "shared/facts.jinja" %}Go.')
    elsewhere = tmp_path / "elsewhere"
    shutil.move(folder, elsewhere)
    user = load_prompt(str(elsewhere), tmp_path).render(example_position("C")).user
    assert user.startswith("=== facts ===\nwin_rule: ")
    assert user.endswith("\nnode: C\n=== end of facts ===\nGo.")


def test_the_digest_covers_every_source_and_nothing_else(tmp_path: Path) -> None:
    folder = prompt_folder(tmp_path, user='{% include "shared/own.jinja" %}')
    shared = tmp_path / "prompts" / "shared"
    shared.mkdir()
    (shared / "own.jinja").write_text("{{ question }}")
    digests = {load_prompt("mine", tmp_path).digest}
    (folder / "notes.txt").write_text("not of the prompt")
    assert load_prompt("mine", tmp_path).digest in digests
    for file in (folder / "prompt.yaml", folder / "system.jinja", folder / "user.jinja", shared / "own.jinja"):
        file.write_text(file.read_text().replace("A test", "Another test") + "\n")
        digests.add(load_prompt("mine", tmp_path).digest)
    assert len(digests) == 5


def test_loaded_prompt_does_not_read_its_files_again(tmp_path: Path) -> None:
    folder = prompt_folder(tmp_path)
    prompt = load_prompt("mine", tmp_path)
    shutil.rmtree(folder)
    assert prompt.render(example_position("A")).system == "Seat 1."


def test_same_name_with_different_bytes_is_refused(tmp_path: Path) -> None:
    prompt_folder(tmp_path, "plain")
    assert "with different contents: rename one, or use its path" in refusal(tmp_path, "plain")
    assert load_prompt("./prompts/plain", tmp_path).title == "A test"
    shutil.rmtree(tmp_path / "prompts")
    shutil.copytree(OWN_PROMPTS, tmp_path / "prompts")
    assert load_prompt("plain", tmp_path).digest == PLAIN.digest


def test_unknown_name_suggests_the_nearest(tmp_path: Path) -> None:
    assert refusal(tmp_path, "plane") == "no prompt is named 'plane': did you mean 'plan'?"
    assert refusal(tmp_path, "") == "no prompt is named '': choose from " + ", ".join(sorted([*ARMS, *PROMPTS]))
    assert "no such folder" in refusal(tmp_path, "./plain")


@pytest.mark.parametrize("file", ["prompt.yaml", "system.jinja", "user.jinja"])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    (prompt_folder(tmp_path) / file).unlink()
    wanted = "a prompt's folder has prompt.yaml, system.jinja and user.jinja, and the files that they include"
    assert refusal(tmp_path) == f"there is no {tmp_path / 'prompts' / 'mine' / file}: {wanted}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title: [", "not valid YAML"),
        ("answer: [answer]\n", "title: Field required"),
        ("title: x\nanswer: [reason]\n", "answer.0: Input should be 'reasoning', 'p_bluff' or 'answer'"),
        (
            "title: x\nanswer: [answer, reasoning]\n",
            "answer: Value error, each field can appear only once, and `answer` must be last",
        ),
        ("title: x\nanswer: []\n", "answer: List should have at least 1 item"),
        ("title: x\nanswer: [answer]\nmodel: y\n", "model: Extra inputs"),
        ("", "the file: Input should be"),
    ],
)
def test_a_bad_description_is_refused(tmp_path: Path, text: str, words: str) -> None:
    prompt_folder(tmp_path, prompt=text)
    message = refusal(tmp_path)
    assert words in message
    assert "prompt.yaml" in message


@pytest.mark.parametrize("file", ["system", "user"])
def test_an_unknown_variable_names_file_and_variable(tmp_path: Path, file: str) -> None:
    prompt_folder(tmp_path, **{file: "{% if seat > 99 %}{{ hands }}{% endif %}"})
    path = tmp_path / "prompts" / "mine" / f"{file}.jinja"
    assert refusal(tmp_path) == f"{path}: unknown variable 'hands': did you mean 'hand'?"


def test_an_unknown_field_of_a_fact_names_file_and_line(tmp_path: Path) -> None:
    prompt_folder(tmp_path, user="Now:\n{% for player in players %}{{ player.age }}{% endfor %}")
    message = refusal(tmp_path)
    assert "user.jinja, line 2: 'dict object' has no attribute 'age'" in message


def test_an_unknown_variable_in_an_included_file_is_found(tmp_path: Path) -> None:
    folder = prompt_folder(tmp_path, user='{% set mood = "calm" %}{% include "part.jinja" %}')
    (folder / "part.jinja").write_text("{{ mood }} {{ sead }}")
    assert refusal(tmp_path) == f"{folder / 'part.jinja'}: unknown variable 'sead': did you mean 'seat'?"
    (folder / "part.jinja").write_text("{{ mood }} {{ seat }}")
    assert load_prompt("mine", tmp_path).render(example_position("A")).user == "calm 1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one\n{{ seat", "user.jinja, line 2: unexpected end of template"),
        ("one\ntwo\n{% fi %}", "user.jinja, line 3: Encountered unknown tag 'fi'"),
        ("{{ seat | loud }}", "user.jinja, line 1: No filter named 'loud'"),
        ('{% include "none.jinja" %}', "mine/none.jinja: a prompt's folder has"),
        ('{% include "../../secret" %}', "secret: a prompt's folder has"),
        ("{% include node %}", "user.jinja: the name of an included file must be a literal string"),
        ('{% include "user.jinja" %}', "user.jinja, line 1: RecursionError"),
        ("{{ 1 / 0 }}", "user.jinja, line 1: ZeroDivisionError"),
    ],
)
def test_a_broken_template_names_the_place(tmp_path: Path, text: str, words: str) -> None:
    prompt_folder(tmp_path, user=text)
    (tmp_path / "secret").write_text("{{ seat }}")
    assert words in refusal(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{{ history.__class__.__mro__ }}",
        "{{ history.append('x') }}",
        "{{ hand.clear() }}",
        "{{ ''.format.__globals__ }}",
        "{{ seats | random }}",
        "{{ range(10000000) | list | length }}",
        "{{ range }}",
    ],
)
def test_template_can_access_only_its_facts(tmp_path: Path, text: str) -> None:
    prompt_folder(tmp_path, user=text)
    assert "user.jinja" in refusal(tmp_path)


def test_a_template_that_fails_later_is_the_users_error(tmp_path: Path) -> None:
    prompt_folder(tmp_path, user="{{ 1 / own_cards if own_cards else 0 }}{{ 1 / (own_cards - 99) }}")
    prompt = load_prompt("mine", tmp_path)
    with pytest.raises(UsageError, match=r"user\.jinja, line 1: ZeroDivisionError"):
        prompt.fill(DubitoFacts().facts(example_position("A")) | {"own_cards": 99})


@pytest.mark.parametrize(
    "fields",
    ["answer", "reasoning, answer", "p_bluff, answer", "reasoning, p_bluff, answer", "p_bluff, reasoning, answer"],
)
def test_the_fields_of_the_answer_are_the_prompts_own(tmp_path: Path, fields: str) -> None:
    """prompt.yaml declares the fields, the template places their description, and the code provides it."""
    prompt_folder(tmp_path, prompt=f"title: x\nanswer: [{fields}]\n", system="{{ answer_format }}")
    prompt = load_prompt("mine", tmp_path)
    assert list(prompt.fields) == fields.split(", ")
    rendered = prompt.render(example_position("C")).system
    places = [rendered.index(f'"{field}"') for field in prompt.fields]
    assert places == sorted(places)
    assert [field for field in ("reasoning", "p_bluff") if field in rendered and field not in fields] == []


@pytest.mark.parametrize("name", ["plain", "reasoned"])
@pytest.mark.parametrize("node", NODES)
def test_the_answer_format_and_the_rules_come_from_the_code(node: str, name: str) -> None:
    values = DubitoFacts().facts(example_position(node))
    prompt = load_prompt(name, REPO)
    rendered = prompt.render(example_position(node))
    for text in (
        *values["rule_text"],
        values["objective"],
        values["scoring"],
        answer_format(prompt.fields, GAME.nodes),
    ):
        assert text in rendered.system
    for text in (values["question"], values["if_true"], values["if_false"]):
        assert text in rendered.user
    own = [(OWN_PROMPTS / folder / "system.jinja").read_text() for folder in (name, "shared")]
    assert [text for text in ("joker", '"answer"', '"reasoning"') if text in "".join(own)] == []


def test_values_are_formatted_for_prompts() -> None:
    values = [None, True, False, 0.5, 3, "ace", ["2", "king"], [], {"7": 2, "joker": 1}, {}]
    written = ["unknown", "yes", "no", "0.50", 3, "ace", "2 king", "none", "2x 7, 1x joker", "none"]
    assert [format_value(value) for value in values] == written


def test_a_chapter_of_the_history_ends_where_the_seat_had_to_move(tmp_path: Path) -> None:
    prompt_folder(tmp_path, history="{{ '> ' if first }}{{ history | join('|') }}\n", user="{{ history | length }}")
    position = example_position("C")
    rendered, values = load_prompt("mine", tmp_path).render(position), DubitoFacts().facts(position)
    assert len(rendered.history) == len(values["own_moves"]) + 1 > 3
    assert rendered.history[0].startswith("> The cards are dealt")
    lines = [line for chapter in rendered.history for line in chapter.removeprefix("> ").rstrip().split("|")]
    assert lines == values["history"]
    starts = [chapter.split("|")[0] for chapter in rendered.history[1:]]
    assert all(text.startswith(f"seat {position.seat} ") for text in starts)
    assert rendered.user == str(len(lines)), "the user text may still use all facts"


@pytest.mark.parametrize("changed", ["seat", "rule_text", "history", "own_moves"])
def test_chapters_are_rendered_again_if_facts_change(tmp_path: Path, changed: str) -> None:
    """A subclass of a model player can change facts, including the steady ones."""
    prompt_folder(tmp_path, history="{{ seat }} {{ history }}\n", system="{{ seat }} {{ rule_text }}")
    prompt, texts, values = load_prompt("mine", tmp_path), SeatTexts(), DubitoFacts().facts(example_position("C"))
    before = prompt.fill(values, texts)
    anew = {"seat": 99, "own_moves": values["own_moves"][1:]}.get(changed, ["otherwise"] * len(values["history"]))
    other = values | {changed: anew}
    assert prompt.fill(other, texts) == prompt.fill(other) != before
    assert prompt.fill(values, texts) == before


def test_system_text_with_changing_facts_is_rendered_again(tmp_path: Path) -> None:
    prompt_folder(tmp_path, system='{% include "now.jinja" %}').joinpath("now.jinja").write_text("{{ hand }}")
    prompt, texts, values = load_prompt("mine", tmp_path), SeatTexts(), DubitoFacts().facts(example_position("C"))
    assert prompt.fill(values, texts) != prompt.fill(values | {"hand": {"ace": 1}}, texts)


def test_a_chapter_without_text_is_left_out(tmp_path: Path) -> None:
    prompt_folder(tmp_path, history="{{ history[0] if first }} \n")
    assert len(load_prompt("mine", tmp_path).render(example_position("C")).history) == 1


@pytest.mark.parametrize("name", ["hand", "node", "question", "own_moves", "players"])
def test_history_cannot_use_changing_facts(tmp_path: Path, name: str) -> None:
    """Neither directly nor through an include; otherwise the beginning of requests would change."""
    folder = prompt_folder(tmp_path, history='{% include "seen.jinja" %}')
    (folder / "seen.jinja").write_text(f"{{{{ {name} }}}}")
    message = refusal(tmp_path)
    assert f"seen.jinja: unknown variable '{name}'" in message
    assert message.endswith("; anything that changes during a game belongs in user.jinja")


def test_the_history_is_part_of_the_prompts_identity(tmp_path: Path) -> None:
    folder = prompt_folder(tmp_path)
    without = load_prompt("mine", tmp_path)
    (folder / "history.jinja").write_text("{{ history }}")
    prompt = load_prompt("mine", tmp_path)
    assert without.digest != prompt.digest
    position = example_position("C")
    assert without.render(position).history == ()
    assert Prompt(tmp_path, prompt.sources).render(position) == prompt.render(position)
    assert str(prompt.render(position)).count("--- history ---") == 1
