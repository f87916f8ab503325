"""Reads one SKILL.md, however malformed, into a `Reading`; every repair made on the way has a diagnostic."""

from __future__ import annotations

from pipeline.reader.reader import read_skill

__all__ = ["read_skill"]
