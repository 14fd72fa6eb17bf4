"""Bots as short shell scripts, and helpers that play them."""

from pathlib import Path

from dubito.plugins.tournament.pair import Pair
from dubito.plugins.tournament.plan import Pairing, Tournament, load_bots, validate_config
from dubito.sandbox.programs import METHODS, Confinement

QUICK = {"prepare_seconds": 1.0, "move_seconds": 0.5, "chance_seconds": 0.0, "grace_seconds": 0.3}
MEMORY = 16 << 30


def acting(act: str, pondering: str = ":", first: str = ":", last: str = "exit 0") -> str:
    """Return a bot with code for its start, its turns (`$legal` has the actions), other nodes, and the end."""
    return f"""#!/bin/sh
read game; read seat
{first}
while read -r seen legal; do
    if [ "$seen" = end ]; then {last}
    elif [ -n "$legal" ]; then {act}
    else {pondering}
    fi
done
"""


FIRST = 'echo "${legal%% *}"'  # answer with the first legal action
GOOD = acting(FIRST)


def write(folder: Path, name: str, script: str) -> Path:
    """Write an executable script."""
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)
    return path


def tournament(folder: Path, scripts: dict[str, str], **config: object) -> Tournament:
    """Return a tournament of scripts with short deadlines."""
    commands = {name: str(write(folder, f"{name}.sh", script)) for name, script in scripts.items()}
    content = {"games": ["kuhn_poker"], "secret": "of the tests alone", **QUICK, **config, "bots": commands}
    experiment = validate_config(content, "the test", {})
    return Tournament(experiment, load_bots(experiment, folder, "the test"), experiment.secret or "")


def pair(folder: Path, one: str, other: str, apart: bool = False, **config: object) -> Pair:
    entered = tournament(folder, {"one": one, "other": other}, **config)
    methods = METHODS[:1] if apart else ()
    confinement = Confinement(int(entered.config.memory_gb * (1 << 30)), None, methods, allow_unsandboxed=True)
    return Pair(entered, Pairing(0, (0, 1)), folder / "run", confinement)


NOWHERE = Confinement(MEMORY, None, (), allow_unsandboxed=True)
