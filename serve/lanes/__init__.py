"""The lanes: each finds rows of the snapshot for a query in its own way and says nothing about the others."""
