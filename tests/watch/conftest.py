"""Watchers in processes of their own, and waiting for what they say of themselves instead of for time to pass."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.watch.follower", "tests.build.compare", "tests.world")
