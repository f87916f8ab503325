"""What drives the build: the memo, manifests, the lock, lineage and the bridge to doit. Steps know nothing of it."""
