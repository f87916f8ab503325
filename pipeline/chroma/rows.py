"""What the store does with rows of its own accord: put them in order, and refuse what Chroma would half accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.chroma.engine import Rows
from serve.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Sequence


def ordered(pages: Sequence[Rows], ids: Sequence[str]) -> Rows:
    """The rows of some pages in the order of `ids`."""
    import numpy as np

    place = {key: (page, row) for page in pages for row, key in enumerate(page.ids)}
    found = [(key, *place[key]) for key in ids if key in place]
    vectors = [page.vectors[row] for _key, page, row in found]
    return Rows(
        [key for key, _page, _row in found],
        np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32),
        [page.metadatas[row] for _key, page, row in found],
        [page.documents[row] for _key, page, row in found],
    )


def check(rows: Rows) -> None:
    """Raises ValueError for rows that do not fit together, EmbedderError for vectors that are none."""
    import numpy as np

    if not len(rows.ids) == len(rows.vectors) == len(rows.metadatas) == len(rows.documents):
        raise ValueError("ids, vectors, metadatas and documents are not equally long")
    if len(set(rows.ids)) != len(rows.ids):
        raise ValueError("an ID stands twice in one write")
    keys = rows.metadatas[0].keys() if rows.metadatas else ()
    for metadata in rows.metadatas:  # of a key that is left out Chroma would keep the old value
        if metadata.keys() != keys or any(value is None or value == [] for value in metadata.values()):
            raise ValueError("every row carries the same metadata keys, none of them empty")
    if not np.isfinite(rows.vectors).all():
        raise EmbedderError(
            "a vector holds infinities or is not a number",
            next_step="check the embedder with `retrieval doctor`",
        )
