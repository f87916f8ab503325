"""Variables looked up by the table, as `serve.config.lookup` does it."""

from __future__ import annotations

from serve.config.lookup import (
    CONFIG_NAME,
    Lookup,
    config_folder,
    config_places,
    data_folder,
    find_config,
    home_of,
    unknown_variables,
)

__all__ = [
    "CONFIG_NAME",
    "Lookup",
    "config_folder",
    "config_places",
    "data_folder",
    "find_config",
    "home_of",
    "unknown_variables",
]
