"""Helpers of this folder explain a failed assertion as tests do."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.build.compare", "tests.process.crash", "tests.world")
