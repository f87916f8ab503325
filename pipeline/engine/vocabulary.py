"""Digests of the category vocabulary, remembered by the bytes they were read from: a build with nothing to do need not parse it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import code, files
from pipeline.steps import USES

if TYPE_CHECKING:
    from pipeline.engine.build import Build


class Vocabulary(msgspec.Struct, frozen=True):
    """key: what it was read from. taxonomy: digest of its meaning. overrides: digest of the assignments of each source."""

    key: str
    taxonomy: str
    overrides: dict[str, str]


def digests(build: Build) -> Vocabulary:
    """The digests of taxonomy and overrides as they are on disk now. Raises ConfigError for a mistake in either file."""
    settings = build.settings
    own = settings.overrides_path.read_bytes() if settings.overrides_path.is_file() else b""
    names = [source.name for source in build.sources]
    key = files.key(code.digest(USES["categorize"]), settings.taxonomy_path.read_bytes(), own, *names)
    path = build.paths.build / "vocabulary.json"
    try:
        held = msgspec.json.decode(path.read_bytes(), type=Vocabulary)
        if held.key == key:
            return held
    except (OSError, msgspec.MsgspecError):
        pass  # none yet, or damaged: it is worked out below
    fresh = Vocabulary(key, build.taxonomy.digest, {name: build.overrides.digest_of(name) for name in names})
    files.write(path, msgspec.json.encode(fresh))
    return fresh
