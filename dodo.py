"""The whole build on one page: sources → scan → categorize → select → descriptor → card, terms, embed → upsert → publish.

`doit list` shows the tasks, `doit info TASK` one of them, `doit publish` (or just `doit`) runs what is not current; `retrieval build`
runs this same file. One task per source and step; inside a step each skill is looked up in the memo by what makes its result.
"""

from pipeline import tasks as t
from pipeline.engine.graph import current_build, doit_config, task

build = current_build()
out = build.paths.manifest
names = [source.name for source in build.sources]
DOIT_CONFIG = doit_config(build)


def each(step):
    """The manifests of a step, one per source."""
    return [out(step, name) for name in names]


def task_scan():
    """walk a source; read what is new or changed"""
    for s in build.sources:
        writes = [out("scan", s.name), build.paths.problems(s.name)]
        yield task(
            build,
            t.scan.run,
            s,
            name=s.name,
            writes=writes,
            settings=t.scan.settings(build, s),
            current=t.scan.current(build, s),
        )


def task_categorize():
    """give each skill its categories, and the evidence"""
    for n in names:
        yield task(
            build,
            t.categorize.run,
            n,
            name=n,
            reads=[out("scan", n)],
            writes=[out("categorize", n)],
            settings=t.categorize.settings(build, n),
        )


def task_select():
    """decide what becomes of each skill: indexed, duplicate, suppressed, in review"""
    reads = [*each("scan"), *each("categorize")]
    writes = [*each("select"), t.select.links_path(build)]
    return task(build, t.select.run, reads=reads, writes=writes, settings=t.select.settings(build))


def task_descriptor():
    """cut each indexed skill down to what ranking needs"""
    for n in names:
        yield task(
            build,
            t.descriptor.run,
            n,
            name=n,
            reads=[out("select", n)],
            writes=[out("descriptor", n)],
            settings=t.descriptor.settings(),
        )


def task_card():
    """write the IWE catalog: a card per skill"""
    for n in names:
        reads = [out("select", n), out("descriptor", n)]
        yield task(
            build,
            t.card.run,
            n,
            name=n,
            reads=reads,
            settings=t.card.settings(),
            current=lambda n=n: t.card.intact(build, n),
        )


def task_hub():
    """write the catalog's category and source pages"""
    return task(
        build, t.hub.run, reads=[t.select.links_path(build)], settings=t.hub.settings(build), current=lambda: t.hub.intact(build)
    )


def task_tidy():
    """take out of the catalog what nobody owns"""
    names_now = [repr(names)]
    return {**task(build, t.tidy.run, settings=names_now, current=lambda: t.tidy.intact(build)), "task_dep": ["card", "hub"]}


def task_terms():
    """count each descriptor's terms for the lexical lane"""
    for n in names:
        yield task(
            build,
            t.terms.run,
            n,
            name=n,
            reads=[out("select", n), out("descriptor", n)],
            writes=[out("terms", n)],
            settings=t.terms.settings(),
        )


def task_embed():
    """embed each descriptor's short text for the semantic lane"""
    for n in names:
        yield task(
            build,
            t.embed.run,
            n,
            name=n,
            reads=[out("descriptor", n)],
            writes=[out("embed", n)],
            settings=t.embed.settings(build),
        )


def task_upsert():
    """bring the vector store to what the manifests say"""
    reads = [*each("select"), *each("descriptor"), *each("embed")]
    made = task(build, t.upsert.run, reads=reads, settings=t.upsert.settings(build), current=lambda: t.upsert.intact(build))
    return {**made, "teardown": [build.settle]}


def task_publish():
    """write a snapshot and make it current"""
    reads = [*each("select"), *each("descriptor"), *each("terms"), *each("embed"), *map(build.paths.problems, names)]
    after = ["tidy", "upsert"]
    return {
        **task(
            build,
            t.publish.run,
            reads=reads,
            settings=t.publish.settings(build),
            current=lambda: t.publish.intact(build),
        ),
        "task_dep": after,
    }
