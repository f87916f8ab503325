"""The table of variables, which `serve.config` has because answering reads it too."""

from __future__ import annotations

from serve.config.table import BY_NAME, GROUPS
from serve.config.variables import FALSE, PREFIX, TRUE, Kind, Value, Variable, bounds, parse

__all__ = ["BY_NAME", "FALSE", "GROUPS", "PREFIX", "TRUE", "Kind", "Value", "Variable", "bounds", "parse"]
