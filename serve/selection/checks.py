"""What `doctor` says of the selector: each thing it needs, whether it is there, and what to do where it is not.

No model is asked. `explain` looks; `rehearse` starts the scout up to where only a task is missing, and ends it again.
"""

from __future__ import annotations

import os
import stat
import subprocess
import time
from threading import Event
from typing import NamedTuple

from serve.embedder.transport import shown_url
from serve.errors import OperatorError
from serve.selection import omp_setup, registry
from serve.selection.chat import Endpoint
from serve.selection.limits import ChoiceError, Limits
from serve.selection.omp_process import OmpProcess
from serve.selection.untrusted import one_line
from serve.settings import ScoutSettings

TRIED = "18.2.3"  # the version of OMP that the isolation was measured with
VERSION_SECONDS = 15.0
MODEL_STEP = "name a models.yml and a model of it, or the URL and the name of a model"


class Check(NamedTuple):
    """One thing the selector needs. next_step: "" where `ok`, or where nothing can be done."""

    what: str
    ok: bool
    detail: str
    next_step: str = ""


def explain(settings: ScoutSettings) -> list[Check]:
    """The checks for the selector that the settings mean. Asks OMP for its version, starts nothing else."""
    try:
        name, notes = registry.resolve(settings)
    except OperatorError as error:
        return [Check("selector", False, error.what, error.next_step)]
    said = f"{settings.selector} means {name} here" if settings.selector == "auto" else name
    checks = [Check("selector", True, "; ".join((said, *notes)))]
    if name == "omp":
        checks += [_program(settings), *_model(settings), *_variables(settings)]
    elif name == "endpoint":
        checks.append(_endpoint(settings))
    return checks


def rehearse(settings: ScoutSettings, seconds: float = 30.0) -> Check:
    """Whether the scout starts, knows its model, and shows it the two tools and nothing else. No model is asked."""
    begun = time.monotonic()
    process = None
    try:
        process = OmpProcess(settings)
        process.prepare(Limits(begun + seconds, (Event(), "")))
    except ChoiceError as error:
        return Check("scout", False, str(error), "correct the model or the program and repeat")
    finally:
        if process is not None:
            process.end()
    return Check("scout", True, f"ready within {time.monotonic() - begun:.1f} s, with its two tools and nothing else")


def _program(settings: ScoutSettings) -> Check:
    program = omp_setup.find_program(settings)
    if program is None:
        missing = f"there is no program `{settings.omp_command or 'omp'}`"
        return Check("omp", False, missing, "install OMP, or name its program")
    try:
        version = _version(program)
    except (OSError, subprocess.SubprocessError) as error:
        return Check(
            "omp", False, f"{program.path} does not tell its version: {one_line(str(error), 200)}", "repair it"
        )
    detail = f"{version} ({program.path})"
    if version != f"omp/{TRIED}":
        detail += f"; the isolation was measured with {TRIED}: `rehearse` shows whether it holds"
    return Check("omp", True, detail)


def _version(program: omp_setup.Program) -> str:
    nothing = omp_setup.Access("", "", {})
    folders = omp_setup.make_folders(nothing)
    try:
        done = subprocess.run(
            [program.path, "--version"],
            cwd=folders.work,
            env=omp_setup.environment(ScoutSettings(), program, nothing, folders),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=VERSION_SECONDS,
        )
    finally:
        omp_setup.remove_folders(folders)
    return one_line(done.stdout.decode("utf-8", "replace"), 60)


def _model(settings: ScoutSettings) -> list[Check]:
    try:
        access = omp_setup.access(settings)
    except ChoiceError as error:
        return [Check("model", False, str(error), MODEL_STEP)]
    where = settings.models_file or shown_url(settings.url)
    keys = f", key from {', '.join(access.keys)}" if access.keys and settings.models_file else ""
    checks = [Check("model", True, f"{access.model} by {where}{keys}")]
    if settings.models_file is not None:
        checks += _models_file(str(settings.models_file), access)
    return checks


def _models_file(path: str, access: omp_setup.Access) -> list[Check]:
    provider = access.model.partition("/")[0]
    checks = []
    if provider not in access.models:
        missing = f"{path} has no provider `{provider}`"
        checks.append(Check("models.yml", False, missing, "name the model as it stands there: provider/model"))
    if os.stat(path).st_mode & (stat.S_IRGRP | stat.S_IROTH):
        checks.append(Check("models.yml", False, f"{path} can be read by others", f"chmod 600 {path}"))
    return checks


def _variables(settings: ScoutSettings) -> list[Check]:
    unset = [name for name in settings.pass_variables if name not in os.environ]
    refused = [name for name in settings.pass_variables if omp_setup.leads_out(name)]
    checks = []
    if unset:
        checks.append(Check("variables", False, f"not set: {', '.join(unset)}", "set them where the server is started"))
    if refused:
        said = f"never passed, because the scout would be led out of its folders: {', '.join(refused)}"
        checks.append(Check("variables", False, said, "take them out of the list"))
    return checks


def _endpoint(settings: ScoutSettings) -> Check:
    if not settings.url or not settings.model:
        return Check("model", False, "the endpoint needs a URL and the name of a model", MODEL_STEP)
    try:
        endpoint = Endpoint(settings.url, settings.api_key)
    except ChoiceError as error:
        return Check("model", False, str(error), 'write the URL as "https://host/v1", and the key by itself')
    key = "with a key" if settings.api_key else "without a key"
    return Check("model", True, f"{settings.model} at {endpoint.address.shown}, {key}")
