"""One OMP process in RPC mode: started in private folders, brought to where only a prompt is missing, and ended for good."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from queue import SimpleQueue
from typing import Any

import msgspec

from serve.selection import omp_setup
from serve.selection.limits import POLL, ChoiceError, Limits
from serve.selection.omp_frames import STDERR_KEPT, Frame, FrameError, Reader, Tail
from serve.selection.scout import SYSTEM_PROMPT, TOOLS
from serve.selection.untrusted import one_line
from serve.settings import ScoutSettings

GRACE = 0.5  # seconds to end by itself, and again after being asked to
OWN_WORDS = 3_000  # characters that OMP adds to the system prompt: workstation, date, how tools are called
LAST_WORDS = 300  # characters of what a process said before its end
_DIALOGUES = frozenset({"select", "confirm", "input", "editor"})


class GoneError(ChoiceError):
    """The process has ended."""


class OmpProcess:
    """A started scout. `prepare` must have succeeded before `prompt`; `end` must be called in any case."""

    def __init__(self, settings: ScoutSettings) -> None:
        """Starts the process. Raises ChoiceError when there is no program, no model, or it cannot be started."""
        program = omp_setup.find_program(settings)
        if program is None:
            raise ChoiceError(f"OMP was not found: there is no program `{settings.omp_command or 'omp'}`")
        access = omp_setup.access(settings)
        self.model = access.model
        self.stamp = omp_setup.stamp(settings)
        self._secrets = [value for value in access.keys.values() if len(value) > 3]
        self._number = 0
        self._folders = _folders(access)
        try:
            self._process = subprocess.Popen(
                omp_setup.command(program, access, self._folders),
                cwd=self._folders.work,
                env=omp_setup.environment(settings, program, access, self._folders),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # a group of its own, which can be ended as a whole
            )
        except OSError as error:
            omp_setup.remove_folders(self._folders)
            raise ChoiceError(f"OMP cannot be started: {error.strerror or error} ({program.path})") from None
        pipes = self._process.stdin, self._process.stdout, self._process.stderr
        self._stdin, stdout, stderr = (pipe.fileno() for pipe in pipes if pipe is not None)
        os.set_blocking(self._stdin, False)  # a process that does not read must not hold us
        self._writable = select.poll()
        self._writable.register(self._stdin, select.POLLOUT)
        self._reader, self._tail = Reader(stdout), Tail(stderr)
        self._reader.start()
        self._tail.start()

    @property
    def pid(self) -> int:
        """The process's ID, which is its group's too."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended by itself."""
        return self._status() is None

    @property
    def frames(self) -> SimpleQueue[Frame | FrameError | None]:
        """What has come and was not received yet."""
        return self._reader.frames

    def prepare(self, limits: Limits) -> None:
        """Bring it to where only a prompt is missing. Raises ChoiceError, also when it offers its model any other tool."""
        ready = self.receive(limits)
        if ready.get("type") != "ready":
            raise ChoiceError("OMP did not begin with `ready`")
        if 2 in (ready.get("supportedProtocolVersions") or ()):
            self.request(limits, "negotiate_protocol", protocolVersion=2)
        tools = [{**tool, "label": tool["name"], "loadMode": "essential"} for tool in TOOLS]
        self.request(limits, "set_host_tools", tools=tools)
        self._check(self.request(limits, "get_state"))

    def prompt(self, limits: Limits, message: str) -> str:
        """Give it its one task. Returns the ID by which a refusal can be told."""
        return self._send_command(limits, "prompt", {"message": message})

    def request(self, limits: Limits, command: str, **fields: Any) -> Any:
        """The `data` of the answer to a command. Other frames that come first are dropped."""
        number = self._send_command(limits, command, fields)
        while True:
            frame = self.receive(limits)
            if frame.get("type") != "response" or frame.get("id") not in (number, None):
                continue
            if frame.get("success") is not True:
                raise ChoiceError(f"OMP refuses `{command}`: {one_line(str(frame.get('error')), 200)}")
            if frame.get("id") == number:
                return frame.get("data")

    def receive(self, limits: Limits) -> Frame:
        """The next frame that matters. Questions to a person are answered with "cancelled" here."""
        while True:
            frame = limits.take(self._reader.frames)
            if isinstance(frame, FrameError):
                raise ChoiceError(f"OMP does not keep to its protocol: {frame}")
            if frame is None:
                raise GoneError(self._obituary(limits))
            if frame.get("type") == "rpc_frame_error":
                raise ChoiceError(f"OMP could not say something: {one_line(str(frame.get('error')), 200)}")
            if frame.get("type") != "extension_ui_request":
                return frame
            if frame.get("method") in _DIALOGUES:
                self.send(limits, {"type": "extension_ui_response", "id": frame.get("id"), "cancelled": True})

    def send(self, limits: Limits, frame: dict[str, Any]) -> None:
        """Write one frame. Raises ChoiceError when it is not taken in time, GoneError when nobody is there."""
        rest = memoryview(msgspec.json.encode(frame) + b"\n")
        while rest:
            limits.check()
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:
                self._writable.poll(POLL * 1000)
            except OSError:
                raise GoneError(self._obituary(limits)) from None

    def end(self) -> None:
        """End the process and whatever it has started, and remove its folders. Takes at most some two graces."""
        with contextlib.suppress(OSError):
            os.write(self._stdin, b'{"type":"abort"}\n')
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        if not self._ended_within(GRACE):
            self._signal(signal.SIGTERM)
            self._ended_within(GRACE)
        self._signal(signal.SIGKILL)  # also for what outlived the process in its group
        self._process.wait()
        for thread in (self._reader, self._tail):
            thread.join(GRACE)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None and not (self._reader.is_alive() or self._tail.is_alive()):
                pipe.close()
        omp_setup.remove_folders(self._folders)

    def _send_command(self, limits: Limits, command: str, fields: dict[str, Any]) -> str:
        self._number += 1
        number = f"retrieval-{self._number}"
        self.send(limits, {"id": number, "type": command, **fields})
        return number

    def _check(self, state: Any) -> None:
        """Raises ChoiceError unless the process is as empty as it was meant to be."""
        if not isinstance(state, dict):
            raise ChoiceError("OMP does not tell its state")
        dumped = state.get("dumpTools")
        names = [tool.get("name") for tool in dumped if isinstance(tool, dict)] if isinstance(dumped, list) else []
        wanted = [tool["name"] for tool in TOOLS]
        if sorted(map(str, names)) != sorted(wanted):
            others = [one_line(str(name), 40) for name in names if name not in wanted]
            raise ChoiceError(f"OMP offers its model other tools than the scout's two: {', '.join(others) or 'fewer'}")
        if state.get("sessionFile") or state.get("messageCount"):
            raise ChoiceError("OMP did not start with an empty session of its own")
        prompts = state.get("systemPrompt")
        whole = "\n".join(map(str, prompts)) if isinstance(prompts, list) else str(prompts or "")
        if SYSTEM_PROMPT.strip() not in whole or len(whole) > len(SYSTEM_PROMPT) + OWN_WORDS:
            raise ChoiceError("OMP has put something else into the scout's instructions")

    def _obituary(self, limits: Limits) -> str:
        """How the process ended, in its own last words."""
        until = time.monotonic() + min(GRACE, limits.left())
        while (self._tail.is_alive() or self._status() is None) and time.monotonic() < until:
            time.sleep(0.005)
        # Advice to put something into folders that are gone in a moment helps nobody.
        words = "\n".join(line for line in self._tail.text().splitlines() if self._folders.root not in line)
        for secret in self._secrets:
            words = words.replace(secret, "[key]")
        said = one_line(words, STDERR_KEPT)[-LAST_WORDS:]
        status = self._status()
        how = "closed its output" if status is None else f"ended with status {status}"
        return f"OMP {how}: {said}" if said else f"OMP {how}"

    def _ended_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._status() is None:
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        return True

    def _status(self) -> int | None:
        """The exit status, negative for a signal, None while it runs. Leaves it unreaped, so that its group's number stays."""
        if self._process.returncode is not None or not hasattr(os, "waitid"):
            return self._process.poll()
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return self._process.poll()
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:  # else the number may belong to somebody else by now
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)


def _folders(access: omp_setup.Access) -> omp_setup.Folders:
    try:
        return omp_setup.make_folders(access)
    except OSError as error:
        raise ChoiceError(f"no private folders can be made for OMP: {error.strerror or error}") from None
