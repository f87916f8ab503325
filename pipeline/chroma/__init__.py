"""Chroma, the vector store of record: one interface over its three modes. Nothing else imports chromadb."""

from __future__ import annotations

from pipeline.chroma.config import ChromaConfig, collection_name
from pipeline.chroma.engine import Rows
from pipeline.chroma.faults import StoreDamagedError, StoreError
from pipeline.chroma.modes import fingerprint, open_store
from pipeline.chroma.plan import Plan, plan
from pipeline.chroma.reconcile import Outcome, reconcile
from pipeline.chroma.store import Store

__all__ = [
    "ChromaConfig",
    "Outcome",
    "Plan",
    "Rows",
    "Store",
    "StoreDamagedError",
    "StoreError",
    "collection_name",
    "fingerprint",
    "open_store",
    "plan",
    "reconcile",
]
