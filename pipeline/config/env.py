"""The environment over `.env` files, as `serve.config.env` reads them."""

from __future__ import annotations

from serve.config.env import EnvFile, Environment, read_env_file

__all__ = ["EnvFile", "Environment", "read_env_file"]
