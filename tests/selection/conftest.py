"""A model on loopback for each test, a shelf, and processes that are counted."""

from __future__ import annotations

import os
import tempfile
import threading
import time

import pytest

from serve.selection.endpoint import EndpointSelector
from serve.selection.omp import OmpSelector
from serve.settings import ScoutSettings
from tests.selection.model_server import ModelServer
from tests.selection.shelves import library


@pytest.fixture
def serve_model():
    """Starts a model that plays what the test says."""
    servers = []

    def start(play):
        servers.append(ModelServer(play))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def shelf():
    return library()


@pytest.fixture
def private(tmp_path, monkeypatch):
    """The folder in which the private folders of scouts are made."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def omp_selector(omp, private):
    """Makes `omp` selectors over a model server; at the end nothing of them may be left."""
    made = []

    def make(server=None, **settings):
        given = {"model": "scout", "standby": False, "omp_command": str(omp), **settings}
        if server is not None:
            given["url"] = server.url
        made.append(OmpSelector(ScoutSettings(selector="omp", **given)))
        return made[-1]

    yield make
    for selector in made:
        selector.close()
    assert scouts(private) == []
    assert list(private.iterdir()) == []


@pytest.fixture(params=[pytest.param("omp", marks=pytest.mark.long), "endpoint"])
def modelled(request):
    """Makes a chooser over a model that plays what the test says, for each selector that has a model."""
    return request.getfixturevalue("endpoint" if request.param == "endpoint" else "scouted")


@pytest.fixture
def scouted(omp_selector, serve_model, shelf):
    """Makes a chooser over real OMP whose model plays what the test says."""

    def make(play, **settings):
        server = serve_model(play)
        return Chooser(omp_selector(server, **settings), shelf, server, patience=6.0)

    return make


@pytest.fixture
def endpoint(serve_model, shelf):
    """Makes a chooser over an endpoint whose model plays what the test says."""

    def make(play, **settings):
        server = serve_model(play)
        given = {"url": server.url, "model": "scout", **settings}
        return Chooser(EndpointSelector(ScoutSettings(selector="endpoint", **given)), shelf, server)

    return make


class Chooser:
    """Asks a selector as a server would, and tells how long the answer took.

    patience: seconds after which a model that does not answer is given up.
    """

    def __init__(self, selector, shelf, server=None, patience=1.0):
        self.patience = patience
        self.selector = selector
        self.shelf = shelf
        self.server = server
        self.cancelled = threading.Event()
        self.seconds = 0.0

    def choose(self, query="clean my csv", *, seconds=60.0, candidates=None):
        begun = time.monotonic()
        offered = self.shelf.candidates() if candidates is None else candidates
        choice = self.selector.choose(query, offered, self.shelf, deadline=begun + seconds, cancelled=self.cancelled)
        self.seconds = time.monotonic() - begun
        return choice


def scouts(private):
    """The IDs of living processes that were started with private folders in there."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    told = file.read()
                with open(f"/proc/{name}/stat", "rb") as file:
                    state = file.read().rpartition(b") ")[2][:1]
            except OSError:
                continue
            if os.fsencode(private) in told and state != b"Z":
                found.append(int(name))
    return found


def until(condition, seconds=50.0):
    """What a condition gives when it comes about by another thread or process."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)
    return found
