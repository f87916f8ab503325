"""Paths as people write them, as `serve.config.paths` reads them."""

from __future__ import annotations

from serve.config.paths import LONGEST_PATH, Expander, absolute, flavour, is_foreign

__all__ = ["LONGEST_PATH", "Expander", "absolute", "flavour", "is_foreign"]
