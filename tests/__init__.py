"""The tests. A package, so that `tests.support` is this one and no other package's."""
