"""`dubito play`: a person among bots, in the terminal."""

import io
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from dubito.cli.company import opponents
from dubito.cli.options import server_options
from dubito.cli.output import note, say
from dubito.cli.telling import check_save, save_record
from dubito.errors import IllegalOutput, RunStopped, UsageError, one_line
from dubito.experiment.opponents import Opponents, trouble
from dubito.games.dubito.core_game import Result
from dubito.games.dubito.game_data import JOKER, NUMBERS, TurnOutput
from dubito.games.dubito.record import card_name, cards_in_words
from dubito.games.dubito.rule_text import objective, rule_sentences
from dubito.games.dubito.rules import Rules, WinRule
from dubito.human import GOOD_BOTS, Setup, Sitting, as_sentence, in_words_to, set_up, sorted_hand, to_me

_HOW: Final = (
    "Type `doubt` (or `d`), or the cards you put down: `7 7 joker`, also `a k j`, `jack`, `*` for a joker. When you "
    "open a round, say the number you claim: `7 king as 7`; without it, cards of one number are claimed as what they "
    "are. `?` tells the rules, Ctrl-D leaves the table."
)
_CARDS: Final = {
    **{card_name(card): card for card in (JOKER, *NUMBERS)},
    **{card_name(card, plural=True): card for card in (JOKER, *NUMBERS)},
    **{str(card): card for card in (JOKER, *NUMBERS)},
    "sixes": 6,
    "a": 1,
    "j": 11,
    "q": 12,
    "k": 13,
    "*": JOKER,
}


@click.command()
@click.argument("bots", nargs=-1, metavar="[BOT ...]")
@click.option("--seed", type=click.IntRange(0), help="Seed of the game; by chance if not said.")
@click.option("--deal", default=0, show_default=True, help="Number of the deal: with the seed it fixes the cards.")
@click.option("--win-rule", default="immediate", show_default=True, help="immediate, or contested.")
@click.option("--jokers", default=2, show_default=True, help="Jokers in the deck, 0 to 2.")
@click.option("--seat", type=int, help="Your seat, from 0, which opens; by chance if not said.")
@click.option("--save", type=click.Path(path_type=Path), help="Save the finished game, for `dubito replay`.")
@click.option("--config", type=click.Path(path_type=Path), help="Experiment whose players may be named as well.")
@click.option(
    "--games",
    type=click.Path(path_type=Path),
    default="games",
    show_default=True,
    help="Folder that keeps what model players are asked.",
)
@server_options
def play(
    bots: Sequence[str],
    seed: int | None,
    deal: int,
    win_rule: WinRule,
    jokers: int,
    seat: int | None,
    save: Path | None,
    config: Path | None,
    games: Path,
    **server: str | None,
) -> None:
    """Play a game yourself against these bots, by default three good ones.

    A BOT is a class name, a player of --config, or a model as in openai:MODEL@PROMPT or house:MODEL.
    """
    setup = set_up(bots or GOOD_BOTS, Rules(jokers, win_rule), seat, seed, deal)
    check_save(save)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    number = int(time.time() * 1000)
    with opponents(config, setup.bots, games, number, lambda: False, server) as company:
        sitting = company.seat(setup, number)
        _welcome(setup, sitting)
        try:
            while not sitting.game.over:
                try:
                    _turn(sitting)
                except RunStopped as error:
                    sitting = _taken_up(company, sitting, error)
        except EOFError:
            say("\nYou leave the table; the game ends here, unfinished.")
            if sitting.asks_models:
                say(f"The same cards again: {_again(setup, config)}")
            return
    _farewell(sitting, config)
    if save is not None:
        save_record(save, sitting.record())


def _tell(text: str) -> None:
    """A line for a reader: on a terminal, broken between words."""
    say(click.wrap_text(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text)


def _welcome(setup: Setup, sitting: Sitting) -> None:
    seats = [to_me(sitting.label(seat)) for seat in range(len(setup.players))]
    _tell(f"At the table, in playing order: {', '.join(seats)}.")
    _tell(objective(len(seats)))
    _tell(_HOW)
    say()
    _tell(in_words_to(sitting.game.start, sitting.label))


def _turn(sitting: Sitting) -> None:
    before = sitting.game.places[sitting.me]
    thinks = sitting.waits_for
    if thinks is not None and sys.stdout.isatty():
        click.echo(f"      {thinks} is thinking ...\r", nl=False)
    words = _asked(sitting) if sitting.asked else sitting.step()[2]
    if thinks is not None and sys.stdout.isatty():
        click.echo("\033[2K", nl=False)
    for line in words:
        _tell(f"{sitting.game.turns_played:4}. {line}")
    place = sitting.game.places[sitting.me]
    if before is None and place is not None:
        say(_cheer(place))


def _taken_up(company: Opponents, sitting: Sitting, error: RunStopped) -> Sitting:
    """The game once more as it stands before the turn that could not be played, when the person wants to go on."""
    _tell(trouble(error))
    input("Enter tries again, Ctrl-D leaves the table. ")
    company.try_again()
    again = company.seat(sitting.setup, sitting.number)
    again.play_again(sitting.recorder.outputs, again.step)
    return again


def _cheer(place: int) -> str:
    if place == 1:
        return "\n  ***  A hard win! You are the first to be out of cards.  ***\n"
    return f"\n  **  A soft win! You are out of cards, in place {place}, and have not lost.  **\n"


def _asked(sitting: Sitting) -> list[str]:
    """Ask until the answer is legal, and play it."""
    _show(sitting)
    while True:
        line = input("> ").strip()
        if line == "?":
            _tell_rules(sitting)
        elif line:
            try:
                return sitting.step(read_move(line, sitting.game.number))[2]
            except (IllegalOutput, UsageError) as error:
                _tell(as_sentence(str(error)))


def _show(sitting: Sitting) -> None:
    game, hand = sitting.game, sorted_hand(sitting.game.hands[sitting.me].cards)
    held = [
        f"{to_me(sitting.label(seat))} {game.player_data(seat).n_cards}"
        for seat, place in enumerate(game.places)
        if place is None
    ]
    say()
    _tell(f"Cards held: {', '.join(held)}.")
    _tell(f"Your hand: {cards_in_words(hand)}")
    if not game.number:
        _tell("Your turn. The board is empty: you open a round.")
        return
    assert game.last_player is not None
    last = to_me(sitting.label(game.last_player))
    number = card_name(game.number, plural=True)
    doubt = "" if game.can_doubt else " (nobody may doubt them)"
    _tell(f"Your turn. On the board: {game.n_cards_played} of {len(game.board)} by {last}, as {number}{doubt}.")


def read_move(line: str, number: int) -> TurnOutput:
    """What a person typed, in a round of that number (0: they open); whether it is legal the engine says.

    Raises UsageError for what cannot be read.
    """
    words = line.casefold().replace(",", " ").split()
    if words in (["doubt"], ["d"]):
        return TurnOutput(True)
    text, claimed, as_what = " ".join(words).partition(" as ")
    cards = [_card(word) for word in text.split()]
    if claimed:
        return TurnOutput(False, _card(as_what), cards)
    own = set(cards) - {JOKER}
    return TurnOutput(False, own.pop() if not number and len(own) == 1 else None, cards)


def _card(word: str) -> int:
    if word not in _CARDS:
        raise UsageError(f"'{one_line(word, 20)}' is no card: type ace, 2 to 10, jack, queen, king, joker, or `doubt`")
    return _CARDS[word]


def _tell_rules(sitting: Sitting) -> None:
    players = len(sitting.setup.players)
    for line in [objective(players), *rule_sentences(sitting.game.rules, players)[:-1]]:  # without the long example
        _tell(f"- {line}")
    _tell(_HOW)


def _farewell(sitting: Sitting, config: Path | None) -> None:
    game, setup = sitting.game, sitting.setup
    if game.result(sitting.me) is Result.LOSS:
        say("You lose this one.")
    for error in sitting.errors:
        note(error)
    say(f"The same cards again: {_again(setup, config)}")


def _again(setup: Setup, config: Path | None) -> str:
    """The command that deals the same cards."""
    flags = "" if setup.rules == Rules() else f" --jokers {setup.rules.jokers} --win-rule {setup.rules.win_rule}"
    if config is not None:
        flags += f" --config {shlex.quote(str(config))}"
    return f"dubito play {shlex.join(setup.bots)} --seed {setup.seed} --deal {setup.deal} --seat {setup.seat}{flags}"
