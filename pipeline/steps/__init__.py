"""The steps of the build: pure functions from texts to texts (or bytes), a file each. Nothing here opens a file.

USES names for each step the modules whose code decides its results: a change there runs the step again. It stands here, apart
from the steps, so that a build with nothing to do need not import them. A test holds it against the steps' real imports.
"""

from __future__ import annotations

# The rule by which the embedded text is made out of a descriptor: part of every vector's key.
RECIPE = "name-purpose-1"

USES: dict[str, tuple[str, ...]] = {
    "scan": (
        "pipeline.reader",
        "pipeline.reader.fence",
        "pipeline.reader.fields",
        "pipeline.reader.frontmatter",
        "pipeline.reader.markdown",
        "pipeline.reader.reader",
        "pipeline.reader.repair",
        "pipeline.reader.sketch",
        "pipeline.reader.texts",
        "pipeline.reader.tree",
        "serve.decode",
        "serve.headings",
    ),
    "categorize": ("pipeline.steps.categorize", "pipeline.steps.clauses", "pipeline.keywords", "pipeline.taxonomy"),
    "select": ("pipeline.steps.select",),
    "descriptor": ("pipeline.steps.descriptor", "pipeline.steps.clauses", "serve.text"),
    "card": ("pipeline.steps.card", "serve.cards"),
    "hub": ("pipeline.steps.card", "pipeline.steps.hubs", "serve.cards"),
    "terms": ("pipeline.steps.terms", "serve.text", "serve.lanes.postings"),
    "upsert": ("pipeline.steps.upsert",),
    "document": ("serve.decode",),
    "section": (
        "pipeline.reader.texts",
        "pipeline.reader.tree",
        "pipeline.steps.anchors",
        "pipeline.steps.section",
        "serve.decode",
        "serve.headings",
        "serve.references.outline",
    ),
    "passage": (
        "pipeline.steps.clauses",
        "pipeline.steps.descriptor",
        "pipeline.steps.passage",
        "pipeline.steps.terms",
        "serve.lanes.postings",
        "serve.references.contract",
        "serve.text",
    ),
}
