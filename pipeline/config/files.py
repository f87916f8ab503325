"""Looks at the file system that raise nothing but ConfigError, as `serve.config.files` has them."""

from __future__ import annotations

from serve.config.files import folder_fault, is_file, is_folder, names_in, read_text, real

__all__ = ["folder_fault", "is_file", "is_folder", "names_in", "read_text", "real"]
