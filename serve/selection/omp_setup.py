"""What an OMP scout is started with: program, model, private folders, reduced environment, isolation settings.

OMP's own flags do not keep everything out: MCP servers and context files of the home and the working folder are loaded all
the same. So both are fresh and empty, and the settings of isolation.json switch off what looks elsewhere.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from serve.selection.chat import Endpoint
from serve.selection.limits import ChoiceError
from serve.selection.scout import SYSTEM_PROMPT
from serve.settings import ScoutSettings

ISOLATION = Path(__file__).with_name("isolation.json")
OWN_PROVIDER = "retrieval-scout"  # in a models.yml that is made from a URL
KEY_VARIABLE = "RETRIEVAL_SCOUT_MODEL_KEY"
PREFIX = "retrieval-scout-"
LARGEST_MODELS_FILE = 1 << 20
# What a program needs to find other programs, to write text and to trust certificates. No key is among them.
PASSED = (
    *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "SYSTEMROOT"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
FIXED = {
    "NO_COLOR": "1",
    "DO_NOT_TRACK": "1",
    "OTEL_SDK_DISABLED": "true",
    "PI_AUTO_QA": "0",
    "PI_NOTIFICATIONS": "off",
    "PI_NO_TITLE": "1",
}
# Never passed on, whoever names them.
_LEADING = re.compile(r"(?:PI|OMP|BUN|XDG|NODE|LD|DYLD)_|HOME$|TMPDIR$|OTEL_")


class Program(NamedTuple):
    """The scout's program. path: absolute. search_path: a PATH on which its runtime is found too."""

    path: str
    search_path: str


class Access(NamedTuple):
    """How the scout reaches its model. models: content of its models.yml. keys: variables that hold keys."""

    model: str
    models: str
    keys: dict[str, str]


class Folders(NamedTuple):
    """The private folders of one process, all below `root`. lock: held while this program lives."""

    root: str
    home: str
    work: str
    temporary: str
    lock: int


def leads_out(variable: str) -> bool:
    """Whether a variable would lead OMP or its runtime out of its private folders, or run code in it."""
    return _LEADING.match(variable) is not None


def find_program(settings: ScoutSettings) -> Program | None:
    """The program that is set, else `omp` on PATH."""
    path = os.environ.get("PATH", os.defpath)
    found = shutil.which(os.path.expanduser(settings.omp_command or "omp"), path=path)
    if found is None:
        return None
    found = os.path.abspath(found)
    # Its shebang asks PATH for the runtime, which an installation of its own has beside the program.
    beside = os.path.dirname(found)
    return Program(found, path if beside in path.split(os.pathsep) else os.pathsep.join((path, beside)))


def access(settings: ScoutSettings) -> Access:
    """The model access that the settings describe. Raises ChoiceError when they describe none that can be used."""
    if settings.models_file is not None:
        provider, slash, _model = settings.model.partition("/")
        if not slash:
            raise ChoiceError('the scout\'s model must be named as "provider/model", as its models.yml has it')
        if provider in _isolation()["model_providers"]:
            known = (
                f"`{provider}` is a provider that OMP knows by itself, and for those it asks other servers for models"
            )
            raise ChoiceError(f"{known}: give it another name in models.yml")
        text = _models_file(settings.models_file)
        return Access(settings.model, text, _named_keys(text, provider))
    if not settings.url:
        raise ChoiceError("no model is set up for the scout: it needs a models.yml, or a URL and the name of a model")
    if not settings.model:
        raise ChoiceError("the scout's model is not named")
    base = Endpoint(settings.url, settings.api_key).address.base
    return Access(f"{OWN_PROVIDER}/{settings.model}", _made(settings, base), _own_key(settings))


def stamp(settings: ScoutSettings) -> tuple[object, ...]:
    """Changes when a process that was started before would no longer be started the same way."""
    if settings.models_file is None:
        return ()
    try:
        found = os.stat(settings.models_file)
    except OSError:
        return (None,)
    return found.st_mtime_ns, found.st_size, found.st_ino


def isolation() -> dict[str, Any]:
    """OMP's settings. Every provider that is not switched off is looked up in the home, or asked for its models."""
    kept = _isolation()
    return {**kept["settings"], "disabledProviders": [*kept["discovery_providers"], *kept["model_providers"]]}


def make_folders(access_: Access) -> Folders:
    """Fresh private folders with settings and models.yml in them. Removes what killed programs have left behind."""
    remove_left_overs()
    root = tempfile.mkdtemp(prefix=PREFIX)
    new = os.path.join(root, "lock.new")
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.rename(new, os.path.join(root, "lock"))  # nobody who clears up sees it before it is held
    home, work, temporary = (os.path.join(root, name) for name in ("home", "work", "tmp"))
    agent = os.path.join(home, ".omp", "agent")
    for folder in (agent, work, temporary, *(os.path.join(home, name) for name in _XDG.values())):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    settings = json.dumps(isolation(), indent=1)  # JSON is YAML
    _write(os.path.join(root, "settings.yml"), settings)
    _write(os.path.join(agent, "config.yml"), settings)
    if access_.models:
        _write(os.path.join(agent, "models.yml"), access_.models)
    return Folders(root, home, work, temporary, lock)


def remove_folders(folders: Folders) -> None:
    """Remove the private folders; what cannot be removed now is removed by a later start."""
    shutil.rmtree(folders.root, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.close(folders.lock)


def remove_left_overs() -> None:
    """Remove private folders whose program was killed: nobody holds their lock any more."""
    base = tempfile.gettempdir()
    with contextlib.suppress(OSError):
        for name in os.listdir(base):
            if name.startswith(PREFIX):
                _remove_left_over(os.path.join(base, name))


def environment(settings: ScoutSettings, program: Program, access_: Access, folders: Folders) -> dict[str, str]:
    """The scout's whole environment: the fixed few, the variables that the settings name, the model's key."""
    named = [name for name in settings.pass_variables if not leads_out(name)]
    passed = {name: os.environ[name] for name in (*PASSED, *named) if name in os.environ}
    xdg = {name: os.path.join(folders.home, below) for name, below in _XDG.items()}
    own = {"HOME": folders.home, "USERPROFILE": folders.home, "TMPDIR": folders.temporary, "PATH": program.search_path}
    return {**passed, **access_.keys, **FIXED, **xdg, **own}


def command(program: Program, access_: Access, folders: Folders) -> list[str]:
    """The scout's command line."""
    switched_off = [
        f"--no-{what}" for what in ("tools", "lsp", "pty", "skills", "rules", "extensions", "session", "title")
    ]
    # Without a text of ours, an APPEND_SYSTEM.md found anywhere would be appended.
    prompts = ["--system-prompt", SYSTEM_PROMPT, "--append-system-prompt", "Use no tool but those two."]
    settings = ["--config", os.path.join(folders.root, "settings.yml")]
    return [program.path, "--mode", "rpc", "--model", access_.model, *switched_off, *prompts, *settings]


_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "XDG_RUNTIME_DIR": ".run",
}


@cache
def _isolation() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(ISOLATION.read_text(encoding="utf-8"))
    return kept


def _models_file(path: Path) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LARGEST_MODELS_FILE + 1)
    except (OSError, UnicodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ChoiceError(f"the scout's models.yml cannot be read: {said} ({path})") from None
    if len(text) > LARGEST_MODELS_FILE:
        raise ChoiceError(f"the scout's models.yml is larger than {LARGEST_MODELS_FILE} characters ({path})")
    return text


def _named_keys(models: str, provider: str) -> dict[str, str]:
    """The variable that a provider's `apiKey` names, when it is set. OMP takes the value for a key otherwise."""
    name = re.escape(provider)
    head = re.search(rf"(?:^|[{{,])([ \t]*)[\"']?{name}[\"']?[ \t]*:", models, re.MULTILINE)
    if head is None:
        return {}
    rest = models[head.end() :]
    block = _braced(rest) if rest.lstrip().startswith("{") else _indented(rest, len(head[1]))
    found = re.search(r"apiKey[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z_]\w*)[\"']?[ \t]*(?=[,}\r\n#]|$)", block)
    named = found[1] if found else ""
    return {named: os.environ[named]} if named in os.environ and not leads_out(named) else {}


def _braced(text: str) -> str:
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == "}" and depth <= 0:
            return text[:at]
    return text


def _indented(text: str, margin: int) -> str:
    block: list[str] = []
    for line in text.splitlines():
        if block and line.strip() and len(line) - len(line.lstrip()) <= margin:
            break
        block.append(line)
    return "\n".join(block)


def _made(settings: ScoutSettings, base: str) -> str:
    key = {"apiKey": KEY_VARIABLE} if settings.api_key else {"auth": "none"}
    model = {"id": settings.model, "name": settings.model, "reasoning": False, "input": ["text"]}
    model |= {"contextWindow": 128_000, "maxTokens": 4_096}
    provider = {"baseUrl": base, "api": "openai-completions", **key, "models": [model]}
    return json.dumps({"providers": {OWN_PROVIDER: provider}}, indent=1)


def _own_key(settings: ScoutSettings) -> dict[str, str]:
    return {KEY_VARIABLE: settings.api_key} if settings.api_key else {}


def _write(path: str, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _remove_left_over(root: str) -> None:
    try:
        if os.lstat(root).st_uid != os.getuid():
            return
        lock = os.open(os.path.join(root, "lock"), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # another user's, or one that is just being made
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(root, ignore_errors=True)
    except OSError:
        return  # its program lives
    finally:
        os.close(lock)
