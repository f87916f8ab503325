"""The words for a foreign or misspelt value, as `serve.config.suggest` has them."""

from __future__ import annotations

from serve.config.suggest import LONGEST, did_you_mean, shown, suggest

__all__ = ["LONGEST", "did_you_mean", "shown", "suggest"]
