"""Turns a path as a person writes it into an absolute one: variables, `~`, separators and `..`, on any system.

The system is a parameter ("posix" or "nt", as `os.name` has it), so that each one's rules can be tested on the others.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from typing import TYPE_CHECKING, NoReturn

from serve.config.suggest import did_you_mean, shown
from serve.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

LONGEST_PATH = 32_768  # characters: no system takes more
MOST_LOOKUPS = 1_000  # variables looked up for one path, so that values naming each other end soon
DEEPEST = 32  # defaults inside defaults, values that name further variables

_BRACED = re.compile(r"([A-Za-z_][A-Za-z0-9_()]*)(?::-(.*))?", re.DOTALL)
_DOLLAR = r"\$\$|\$\{|\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)"
_POSIX_TOKEN = re.compile(_DOLLAR)
_NT_TOKEN = re.compile(_DOLLAR + r"|%%|%(?P<percent>[A-Za-z_][A-Za-z0-9_()]*)%")
_BRACE = re.compile(r"\$\{|\}")


def flavour(os_name: str) -> ModuleType:
    """The path rules of a system: `ntpath` or `posixpath`."""
    return ntpath if os_name == "nt" else posixpath


class Expander:
    """Expands `~`, `$NAME`, `${NAME}`, `${NAME:-default}` (and `%NAME%` on Windows) in one path.

    `$$` is a dollar sign. Values and defaults are expanded like the path itself, so `~` and variables may stand in each
    other in any order. where: what an error points at. Every failure is a ConfigError.
    """

    def __init__(self, environ: Mapping[str, str], home: str, os_name: str, where: str) -> None:
        self.environ = environ
        self.home = home
        self.os_name = os_name
        self.where = where
        self._lookups = 0
        self._open: list[str] = []

    def expand(self, text: str) -> str:
        """The text with everything expanded; not yet absolute."""
        return self._tilde(self._variables(text, at_start=True, depth=0))

    def _fail(self, what: str, next_step: str) -> NoReturn:
        raise ConfigError(what, where=self.where, next_step=next_step)

    def _variables(self, text: str, *, at_start: bool, depth: int) -> str:
        if depth > DEEPEST:
            self._fail("the path's variables are nested too deeply", f"keep it to {DEEPEST} levels")
        token = _NT_TOKEN if self.os_name == "nt" else _POSIX_TOKEN
        out: list[str] = []
        length = at = 0
        while match := token.search(text, at):
            out.append(text[at : match.start()])
            first = at_start and length == 0 and match.start() == at
            if match[0] in {"$$", "%%"}:
                piece, at = match[0][0], match.end()
            elif match[0] == "${":
                end = self._closing(text, match.end())
                piece, at = self._braced(text[match.end() : end], first=first, depth=depth), end + 1
            else:
                name = match["bare"] or match["percent"]
                piece, at = self._value(name, None, first=first, depth=depth), match.end()
            out.append(piece)
            length += len(out[-2]) + len(piece)
            if length > LONGEST_PATH:
                self._fail("the path is too long once its variables are filled in", "check the variables it uses")
        out.append(text[at:])
        return "".join(out)

    def _closing(self, text: str, start: int) -> int:
        """Where the `}` stands that belongs to a `${` ending at `start`."""
        depth = 1
        for match in _BRACE.finditer(text, start):
            depth += 1 if match[0] == "${" else -1
            if depth == 0:
                return match.start()
        return self._fail(f"the path has an open ${{: {shown(text)}", "close it with }, or write $$ for a dollar sign")

    def _braced(self, inner: str, *, first: bool, depth: int) -> str:
        match = _BRACED.fullmatch(inner)
        if match is None:
            self._fail(
                f"the path has a variable that cannot be read: {shown('${' + inner + '}')}",
                "write ${NAME} or ${NAME:-default}",
            )
        return self._value(match[1], match[2], first=first, depth=depth)

    def _value(self, name: str, default: str | None, *, first: bool, depth: int) -> str:
        """What stands in for a variable. Empty counts as unset: `$BASE/skills` must never become `/skills`."""
        self._lookups += 1
        if self._lookups > MOST_LOOKUPS:
            self._fail("the path looks up too many variables", "check the variables it uses")
        name = name.upper() if self.os_name == "nt" else name  # names have no case there
        value = self.environ.get(name, "")
        if not value and default is not None:
            piece = self._variables(default, at_start=first, depth=depth + 1)
        elif not value:
            self._unset(name)
        elif name in self._open:
            self._fail(f"the variable {name} leads back to itself", f"give {name} a value that does not use it")
        else:
            self._open.append(name)
            piece = self._variables(value, at_start=first, depth=depth + 1)
            self._open.pop()
        if not first and self._is_tilde(piece):
            self._fail(
                f"the variable {name} begins with ~, which is a home folder only at the beginning of a path",
                f"put {name} first, or write its path out",
            )
        return piece

    def _unset(self, name: str) -> NoReturn:
        state = "is empty" if name in self.environ else "is not set"
        through = f" (through {' → '.join(self._open)})" if self._open else ""
        otherwise = f"set {name} in the environment or in .env, or write ${{{name}:-default}}"
        next_step = did_you_mean_variable(name, self.environ, otherwise)
        self._fail(f"the path uses {name}, which {state}{through}", next_step)

    def _is_tilde(self, text: str) -> bool:
        return text == "~" or text.startswith(("~/", "~\\") if self.os_name == "nt" else "~/")

    def _tilde(self, text: str) -> str:
        if not text.startswith("~"):
            return text
        if self._is_tilde(text):
            return self.home + text[1:]
        user, slash, rest = text[1:].partition("/")
        return self._home_of(user) + slash + rest

    def _home_of(self, user: str) -> str:
        if self.os_name != "nt":
            import pwd  # does not exist on Windows

            try:
                return pwd.getpwnam(user).pw_dir
            except (KeyError, ValueError, UnicodeError):
                pass  # falls through to the one error for both systems
        return self._fail(f"the path names the home of {shown(user)}, who is unknown here", "write the path out")


def did_you_mean_variable(name: str, environ: Mapping[str, str], otherwise: str) -> str:
    """The next step for an unset variable, naming one that is spelt nearly alike."""
    near = did_you_mean(name, (known for known in environ if known != name), "")
    return f"{near} Else {otherwise}" if near else otherwise


def absolute(text: str, base: str, os_name: str, where: str) -> str:
    """The path seen from `base`, without `..`, double or foreign separators. Links are kept as they are."""
    if not text.strip():
        raise ConfigError("the path is empty", where=where, next_step="write the folder's path")
    if any(ord(char) < 0x20 or ord(char) == 0x7F or 0xD800 <= ord(char) < 0xE000 for char in text):
        raise ConfigError(
            f"the path holds a character that no path should: {shown(text)}",
            where=where,
            next_step="remove control characters; the path must be valid UTF-8",
        )
    rules = flavour(os_name)
    joined: str = rules.normpath(rules.join(base, text))
    if len(joined) > LONGEST_PATH:
        raise ConfigError("the path is too long", where=where, next_step="check the variables it uses")
    # POSIX gives a leading "//" a meaning of its own, which "$ROOT/skills" with ROOT=/ does not ask for.
    return joined[1:] if os_name != "nt" and joined.startswith("//") else joined


def is_foreign(text: str, os_name: str) -> bool:
    """True for a Windows path (a drive letter first) on another system, where it would be a strange relative name."""
    return os_name != "nt" and re.match(r"[A-Za-z]:[\\/]", text) is not None
