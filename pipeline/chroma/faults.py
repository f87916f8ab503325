"""Chroma's failures in the project's words. Recognised by name and text, so that nothing of Chroma is imported for it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from serve.errors import ExitCode, OperatorError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

REBUILD = "run `retrieval build --rebuild-store`: it writes the rows again, and no vector is computed twice"

# SQLite's primary result codes as Chroma's messages carry them; extended codes hold the primary one in their low byte.
_SQLITE_CODE = re.compile(r"\(code: (\d+)\)")
_BUSY, _LOCKED, _READ_ONLY, _IO, _MALFORMED, _FULL, _CANNOT_OPEN, _NOT_A_DATABASE = 5, 6, 8, 10, 11, 13, 14, 26
# The vector index cannot be loaded, or lacks vectors of rows that SQLite has.
_BROKEN_INDEX = re.compile(r"hnsw|pickle|finding id|getting embedding|seems to be corrupted", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_DEAD_SERVER = (
    "ConnectError",
    "ConnectTimeout",
    "ReadError",
    "WriteError",
    "CloseError",
    "RemoteProtocolError",
    "ProxyError",
)
_SLOW_SERVER = ("ReadTimeout", "WriteTimeout", "PoolTimeout")
_REFUSED = ("ChromaAuthError", "AuthorizationError")


class StoreError(OperatorError):
    """The vector store could not do what it was asked."""


class StoreDamagedError(StoreError):
    """The store's files are broken: what it holds must be written again."""


class StoreUnfitError(StoreDamagedError):
    """The files are sound, but the collection is no place for our vectors: another length, or another distance."""


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn whatever Chroma raises inside the block into an OperatorError that names `where`."""
    try:
        yield
    except (OperatorError, KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:  # a panic in Chroma's Rust code is no Exception
        raise translate(error, where) from error


def translate(error: BaseException, where: str) -> OperatorError:
    """The OperatorError for an exception out of Chroma, its HTTP client or SQLite below it."""
    kind, text = type(error).__name__, _text(error)
    if kind in _DEAD_SERVER or "Could not connect to a Chroma server" in text:
        return unreachable("the Chroma server does not answer", where)
    if kind in _SLOW_SERVER:
        return unreachable("the Chroma server took too long to answer", where)
    if kind in _REFUSED or text in ("Unauthorized", "Forbidden"):
        return StoreError(
            "the Chroma server refuses the credentials", where=where, next_step="set RETRIEVAL_CHROMA_TOKEN"
        )
    if isinstance(error, ImportError):
        return StoreError(
            f"Chroma cannot be imported: {text}", where=where, next_step="install the `build` extra of this package"
        )
    if "dimension" in text and kind == "InvalidArgumentError":
        return StoreUnfitError(
            f"the collection holds vectors of another length: {text}", where=where, next_step=REBUILD
        )
    if kind == "NotFoundError":
        return StoreError(
            "the collection, its tenant or its database has gone away",
            where=where,
            next_step="run `retrieval build` again; check RETRIEVAL_CHROMA_TENANT and RETRIEVAL_CHROMA_DATABASE",
        )
    if kind == "PanicException":
        return StoreDamagedError(f"Chroma failed on the store's files: {text}", where=where, next_step=REBUILD)
    return _sqlite(text, where) or _other(text, where)


def unreachable(what: str, where: str) -> UnreachableError:
    """The error for a server that is down."""
    return UnreachableError(
        what,
        where=where,
        next_step="start it (`chroma run` for one of your own), or set RETRIEVAL_CHROMA_MODE=embedded",
    )


def _sqlite(text: str, where: str) -> OperatorError | None:
    found = _SQLITE_CODE.search(text)
    code = int(found.group(1)) & 0xFF if found else 0
    if code in (_MALFORMED, _NOT_A_DATABASE):
        return StoreDamagedError("the store's database is damaged", where=where, next_step=REBUILD)
    if code in (_BUSY, _LOCKED):
        return StoreError(
            "another process is writing to the store",
            where=where,
            next_step="end that process: an embedded store has one writer",
            code=ExitCode.LOCKED,
        )
    if code in (_READ_ONLY, _CANNOT_OPEN, _IO, _FULL):
        return StoreError(
            f"the store's files cannot be written: {text}",
            where=where,
            next_step="check the folder's rights and free space",
        )
    return None


def _other(text: str, where: str) -> OperatorError:
    if "os error" in text or "Permission denied" in text:
        return StoreError(
            f"the store's folder cannot be used: {text}", where=where, next_step="check the folder and its rights"
        )
    if _BROKEN_INDEX.search(text):
        return StoreDamagedError(f"the store's vector index is damaged: {text}", where=where, next_step=REBUILD)
    return StoreError(f"Chroma could not do it: {text}", where=where, next_step="run `retrieval doctor`")


def _text(error: BaseException) -> str:
    """The exception's text on one short line: it may come from a foreign server."""
    return _CONTROL.sub(" ", str(error)).strip()[:300] or type(error).__name__
