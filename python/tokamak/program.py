"""Where the program is, and calling it."""
import os
import shutil
import subprocess
import sys
from pathlib import Path


class TokamakError(RuntimeError):
    """What the program said when it failed, with `status`, its exit status."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


def path():
    """The program: $TOKAMAK_PROGRAM, the one of this package, or one of $PATH."""
    own = Path(__file__).parent / "bin" / "tokamak"
    found = os.environ.get("TOKAMAK_PROGRAM") or (str(own) if own.exists() else shutil.which("tokamak"))
    if not found:
        raise TokamakError("expected the program tokamak in this package or in PATH; set TOKAMAK_PROGRAM", 127)
    return found


def options(settings, prefix=""):
    """{"model": {"layers": 2}, "seed": 1} -> ["--model.layers=2", "--seed=1"]; lists with commas, booleans on or off."""
    words = []
    for key, value in settings.items():
        if isinstance(value, dict):
            words += options(value, f"{prefix}{key}.")
            continue
        if isinstance(value, bool):
            value = "on" if value else "off"
        elif isinstance(value, (list, tuple)):
            value = ",".join(str(item) for item in value)
        words.append(f"--{prefix}{key}={value}")
    return words


def call(*words, quiet=True, **settings):
    """Runs `tokamak WORDS --settings` and gives what it prints, or prints it if not `quiet`. Raises TokamakError."""
    command = [path(), *map(str, words), *options(settings)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE if quiet else None, stderr=subprocess.PIPE, text=True,
                               errors="replace")
    try:
        out, err = process.communicate()
    except KeyboardInterrupt:  # which the program got as well: it saves, and ends
        process.communicate()
        raise
    if process.returncode != 0:
        raise TokamakError(err.strip() or f"ended with status {process.returncode}", process.returncode)
    return out or ""


def main():
    """The command `tokamak` of the package."""
    os.execv(path(), ["tokamak", *sys.argv[1:]])
