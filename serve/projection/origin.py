"""Whether a skill's folder still lies where it was indexed, rather than behind a link that was put in its place since."""

from __future__ import annotations

import os

from serve.contract import Record
from serve.projection.errors import ProjectionError


def check(record: Record, descriptor: int = -1) -> None:
    """Raises ProjectionError when a link has taken the place of the skill's folder, or of one between it and its source's.

    The build enters no link below a source's folder, so that no path in the index leads through one; the source's own
    folder may be a link. descriptor: of the folder as it was opened, which must be the one that lies there, -1 for none.
    """
    folder = os.path.dirname(record.path).replace("/", os.sep)
    parts = [part for part in record.id.partition(":")[2].split("/") if part != os.curdir]
    within = os.sep.join(parts)
    if within and not folder.endswith(f"{os.sep}{within}"):
        within = os.path.basename(folder)  # no path of a build; then nothing is known of what is above
    top = folder[: len(folder) - len(within) - 1] if within else folder
    try:
        expected = os.path.join(os.path.realpath(top or os.sep, strict=True), within).rstrip(os.sep) or os.sep
        real = os.path.realpath(folder, strict=True)
        same = descriptor < 0 or os.path.samestat(os.fstat(descriptor), os.lstat(real))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ProjectionError(
            f"the package cannot be read: {reason}", where=record.path, next_step="run `retrieval build`"
        ) from error
    if not same or os.path.normcase(real) != os.path.normcase(expected):
        raise ProjectionError(
            "a link has taken the place of the skill's folder, or of one above it, since the index was built",
            where=folder,
            next_step="run `retrieval build`, and look at the folder",
        )
