"""What the operator's commands find out and do, apart from building. Plain values in and out; `pipeline.cli` prints them."""
