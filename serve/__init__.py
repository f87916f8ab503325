"""The answering side of Retrieval: reads a published snapshot, never builds one."""
