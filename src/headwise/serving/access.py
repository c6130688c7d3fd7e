"""Who may use the server: host names and API keys, checked before any model is opened."""

from __future__ import annotations

import hmac
import ipaddress
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headwise.errors import DataError, UsageError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
MIN_KEY_LENGTH = 16  # characters: shorter keys can be guessed


@dataclass(frozen=True)
class AccessRules:
    """Decides which Host headers and which API keys are accepted."""

    hosts: frozenset[str] = LOOPBACK
    any_address: bool = False  # accept any IP address as Host: only a name could be rebound by an attacker
    keys: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, host: str, allowed: Iterable[str] = (), keys: Iterable[str] = ()) -> AccessRules:
        wildcard = host in ("0.0.0.0", "::", "")
        bound = () if wildcard else (host,)
        names = {name.lower().strip("[]") for name in (*bound, *allowed)}
        return cls(LOOPBACK | names, wildcard, tuple(keys))

    def accepts_host(self, host: str) -> bool:
        if host in self.hosts:
            return True
        if not self.any_address:
            return False
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    def accepts_key(self, key: str | None) -> bool:
        """Compares with every key, each in constant time; a server without keys accepts everyone."""
        if not self.keys:
            return True
        given = (key or "").encode("utf-8", "surrogatepass")
        same = [hmac.compare_digest(given, own.encode()) for own in self.keys]
        return any(same)


def read_access_rules(host: str, keys: Sequence[str], key_file: Path | None, allowed: Iterable[str]) -> AccessRules:
    """Checks the options of `headwise serve`: an address that other machines can reach needs a key."""
    for key in keys:
        _check_key(key, "--api-key")
    known = [*keys, *(_read_keys(key_file) if key_file is not None else [])]
    if not known and not _is_loopback(host):
        raise UsageError(
            f"--host {host} can be reached from other machines: give --api-key-file FILE (or --api-key KEY), so that "
            "only clients with a key are served, or leave --host out"
        )
    names = list(allowed)
    for name in names:
        if not name or any(character in name for character in "/@ *") or "://" in name:
            raise UsageError(f"--allow-host {name}: give a host name alone, such as mt.example.org")
    return AccessRules.of(host, names, known)


def check_proxies(addresses: Iterable[str]) -> list[str]:
    """Checks the values of --trusted-proxy: addresses or networks, not names and not everyone."""
    found = list(addresses)
    for address in found:
        try:
            ipaddress.ip_network(address)
        except ValueError:
            raise UsageError(
                f"--trusted-proxy {address}: give an address or a network, such as 127.0.0.1 or 10.0.0.0/8"
            ) from None
    return found


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
        raise UsageError(f"--api-key-file {path} has no key in it: write one per line")
    return keys


def _check_key(key: str, what: str) -> None:
    """Raises for a weak key, without repeating it in the message."""
    if len(key) < MIN_KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"{what} must have at least {MIN_KEY_LENGTH} characters, ASCII only and without spaces")
