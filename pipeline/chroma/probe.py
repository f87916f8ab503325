"""Inspects an embedded store in a process of its own, which a damaged index may crash: `python -m pipeline.chroma.probe`."""

from __future__ import annotations

import sys

from pipeline.chroma.config import ChromaConfig
from pipeline.chroma.embedded import DAMAGED, SOUND, UNABLE, EmbeddedBackend
from pipeline.chroma.faults import StoreDamagedError
from pipeline.chroma.store import Store
from serve.errors import OperatorError


def main(path: str, namespace: str, name: str) -> int:
    """Read every vector of a collection. Prints what is wrong; returns SOUND, DAMAGED or UNABLE."""
    store = Store(EmbeddedBackend(ChromaConfig(namespace=namespace, path=path)), namespace, name)
    try:
        store.connect()
        store.inspect(whole=True)
    except StoreDamagedError as error:
        sys.stdout.write(error.what)
        return DAMAGED
    except OperatorError as error:
        sys.stdout.write(error.what)
        return UNABLE
    finally:
        store.close()
    return SOUND


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
