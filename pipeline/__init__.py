"""The building side of Retrieval: turns configured sources into a published snapshot."""
