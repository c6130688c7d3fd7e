"""Who may come in, decided before anything is opened: addresses and keys."""

from __future__ import annotations

import ipaddress
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from headwise.errors import DataError, UsageError
from headwise.serving.guard import Doors

SHORTEST = 16  # characters: fewer can be guessed


def check_doors(host: str, keys: Sequence[str], key_file: Path | None, allowed: Iterable[str]) -> Doors:
    """The doors of a server; an address that others can reach needs a key."""
    for key in keys:
        _check_key(key, "--api-key")
    known = [*keys, *(_read_keys(key_file) if key_file is not None else [])]
    if not known and not _is_loopback(host):
        raise UsageError(
            f"--host {host} can be reached from other machines: give --api-key-file FILE (or --api-key KEY), so that "
            "only those with a key are served, or leave --host out"
        )
    names = list(allowed)
    for name in names:
        if not name or any(character in name for character in "/@ *") or "://" in name:
            raise UsageError(f"--allow-host {name}: give a host name alone, such as mt.example.org")
    return Doors.of(host, names, known)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _read_keys(path: Path) -> list[str]:
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--api-key-file {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISREG(mode) and mode & 0o077:
        raise UsageError(f"--api-key-file {path} can be read by others: chmod 600 {path}")
    keys = []
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            try:
                _check_key(line.strip(), "a key")
            except UsageError as error:
                raise DataError(str(error), file=path, line=number) from None
            keys.append(line.strip())
    if not keys:
        raise UsageError(f"--api-key-file {path} has no key in it: write one a line")
    return keys


def _check_key(key: str, what: str) -> None:
    """The key itself is never repeated in a message."""
    if len(key) < SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{what} must have at least {SHORTEST} characters, of ASCII and without spaces")
