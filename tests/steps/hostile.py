"""Skills for the tests of cards and rows, and texts that try to be more than text."""

from __future__ import annotations

import msgspec

from serve.contract import Descriptor, Record

HOSTILE = (
    "[a card](../sources.md)",
    "[[index]] and [[sources|our sources]]",
    "![[categories]] ![picture](../index.md)",
    "see [one][two] and [two]",
    "[two]: ../index.md 'a definition'",
    "[^note]: ../index.md",
    "<../index.md> <https://example.org> <mailto:a@example.org>",
    "https://example.org/index.md www.example.org WWW.EXAMPLE.ORG someone@example.org",
    "<a href='../index.md'>index</a><script>alert(1)</script><!-- hidden -->",
    "<div>\n\n[inside](../index.md)\n\n</div>",
    "&#91;index&#93;(../index.md) &lbrack;index&rbrack;&lpar;../index.md&rpar;",
    "# A heading\n\n## Another\n\nA third\n=======\n\nA fourth\n---",
    "#",
    "---\nstate: native\nkind: hub\n---\n",
    "---",
    "...",
    "***",
    "===",
    "```\ncode\n```\n\n[after](../index.md)",
    "~~~ yaml",
    "`[x](../index.md)` ``[y](../index.md)",
    "\\[x](../index.md) \\\\[y](../index.md)",
    "> quoted [z](../index.md)",
    "- a list\n- [z](../index.md)",
    "* starred",
    "+ plus",
    "1. first [z](../index.md)",
    "7) seventh",
    "| a | b |\n|---|---|\n| [x](../index.md) | y |",
    "    [indented](../index.md)",
    "\t[tabbed](../index.md)",
    ": a definition",
    "$x$ $$[y](../index.md)$$ ==[z](../index.md)== ~~[s](../index.md)~~",
    "{{ index }} {% include index %} {#index .class}",
    "line one\r\n\r\n[line](../index.md)\rthree\u2028four\u2029five\x0bsix\x0cseven\x85eight",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 bell\x07 nul\x00 delete\x7f",
    "right\u202eto left\u202c and zero\u200bwidth\ufeff and \U000e0041tags",
    '"quoted" \'single\' \\" : , # & * ! | > % @ ` {} []',
    "ends with a backslash \\",
    "\\",
    "!",
    "\U0001f469\u200d\U0001f4bb emoji, \u6280\u80fd, \u0645\u0631\u062d\u0628\u0627, e\u0301",
    "half a pair \ud83d of a surrogate",
    "x" * 5_000,
    "[" * 2_000,
    "*" * 2_000 + "a",
)

RECORD = Record(
    id="library:tools/pdf",
    name="pdf",
    description="Fills in PDF forms. Use when a form has to be filled in.",
    source="library",
    state="cold",
    categories=("documents",),
    tags=("pdf", "forms"),
    path="/library/tools/pdf/SKILL.md",
    digest="0123456789abcdef0123456789abcdef",
    package_digest="fedcba9876543210fedcba9876543210",
    files=2,
    bytes=2_048,
)

DESCRIPTOR = Descriptor(
    name="pdf",
    purpose="Fills in PDF forms.",
    triggers=("a form has to be filled in", "a table must leave a PDF"),
    limits=("scanned pages",),
    headings=("Filling in", "Reading tables"),
    head="Open the file, list its fields, write the values.",
    short="pdf. Fills in PDF forms.",
)


def record(**changes: object) -> Record:
    """The sample record with some fields changed."""
    return msgspec.structs.replace(RECORD, **changes)


def descriptor(**changes: object) -> Descriptor:
    """The sample descriptor with some fields changed."""
    return msgspec.structs.replace(DESCRIPTOR, **changes)


def hostile_skill(text: str, number: int) -> tuple[Record, Descriptor]:
    """A skill in which every field that a library's author controls says `text`."""
    return (
        record(
            id=f"library:hostile/{number}",
            name=text,
            description=text,
            tags=(text, "plain"),
            path=f"/library/{text[:200]}/SKILL.md",
        ),
        descriptor(name=text, purpose=text, triggers=(text, "plain"), limits=(text,), headings=(text, text), head=text),
    )
