"""The whole build on one page: sources → scan → categorize → select → descriptor → card, terms, embed → upsert → publish.

`doit list` shows the tasks, `doit info TASK` one of them, `doit publish` (or just `doit`) runs what is not current; `retrieval build`
runs this same file. One task per source and step; inside a step each skill is looked up in the memo by what makes its result.
"""

from pipeline import tasks as t
from pipeline.engine.graph import Tasks, current_build, doit_config

build = current_build()
task = Tasks(build)
out = build.paths.manifest
names = [source.name for source in build.sources]
references = [source.name for source in build.references]
DOIT_CONFIG = doit_config(build)


def each(step):
    """The manifests of a step, one per source."""
    return [out(step, n) for n in names]


def task_scan():
    """walk a source; read what is new or changed"""
    for n in names:
        yield task(t.scan, n, writes=[out("scan", n), build.paths.problems(n)])


def task_categorize():
    """give each skill its categories, and the evidence"""
    for n in names:
        yield task(t.categorize, n, reads=[out("scan", n)], writes=[out("categorize", n)])


def task_select():
    """decide what becomes of each skill: indexed, duplicate, suppressed, in review"""
    reads = [*each("scan"), *each("categorize")]
    return task(t.select, reads=reads, writes=[*each("select"), t.select.links_path(build)])


def task_descriptor():
    """cut each indexed skill down to what ranking needs"""
    for n in names:
        yield task(t.descriptor, n, reads=[out("select", n)], writes=[out("descriptor", n)])


def task_card():
    """write the IWE catalog: a card per skill"""
    for n in names:
        # After `upsert` has begun: another process writes to the store meanwhile.
        yield task(t.card, n, reads=[out("select", n), out("descriptor", n)], after=["upsert"])


def task_hub():
    """write the catalog's category and source pages"""
    return task(t.hub, reads=[t.select.links_path(build)])


def task_tidy():
    """take out of the catalog what nobody owns"""
    return task(t.tidy, after=["card", "hub"])


def task_document():
    """walk a source of references; read what is new or changed"""
    for n in references:
        yield task(t.references.document, n, writes=[out("document", n), build.paths.problems(n)])


def task_section():
    """cut each document into sections"""
    for n in references:
        yield task(t.references.section, n, reads=[out("document", n)], writes=[out("section", n)])


def task_terms():
    """count each descriptor's or section's terms for the lexical lane"""
    for n in names:
        reads = [out("select", n), out("descriptor", n)]
        yield task(t.terms, n, reads=reads, writes=[out("terms", n)], after=["upsert"])
    for n in references:
        yield task(t.references.terms, n, reads=[out("section", n)], writes=[out("terms", n)])


def task_embed():
    """embed each descriptor's short text, and each section, for the semantic lane"""
    for n in names:
        yield task(t.embed, n, reads=[out("descriptor", n)], writes=[out("embed", n)])
    for n in references:
        yield task(t.references.embed, n, reads=[out("section", n)], writes=[out("embed", n)])


def task_upsert():
    """bring the vector store to what the manifests say"""
    return task(t.upsert, reads=[*each("select"), *each("descriptor"), *each("embed")])


def task_publish():
    """write a snapshot and make it current"""
    reads = [path for step in ("select", "descriptor", "terms", "embed") for path in each(step)]
    reads += [out(step, n) for step in ("document", "section", "terms", "embed") for n in references]
    return task(t.publish, reads=[*reads, *map(build.paths.problems, names + references)], after=["upsert", "tidy"])


def task_verify():
    """hash everything again and compare it with what is published"""
    return task(t.verify, after=["publish"])
