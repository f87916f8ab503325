"""The real stores that the tests of this folder work on."""

from __future__ import annotations

import itertools

import pytest

from tests.chroma.support import Server, folder

_numbers = itertools.count()


@pytest.fixture
def config(tmp_path):
    """An embedded store of its own."""
    return folder(tmp_path / "chroma")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests that leave it running."""
    started = Server(tmp_path_factory.mktemp("server"))
    yield started
    started.kill()


@pytest.fixture
def namespace():
    """A namespace that no other test uses."""
    return f"test{next(_numbers)}"


@pytest.fixture
def own_server(tmp_path):
    """A server that the test may kill."""
    started = Server(tmp_path / "server")
    yield started
    started.kill()
