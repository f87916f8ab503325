"""Copying a chosen package into the lane of the harness that asked."""
