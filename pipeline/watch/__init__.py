"""Follows the files: turns events into builds of the sources they concern. Events are hints, the scan decides."""
