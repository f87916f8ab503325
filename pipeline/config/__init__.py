"""Reads what people configure: environment, `.env` and `sources.toml`. `pipeline.settings` puts it together."""
