"""The vocabulary that comes with Retrieval: what people rely on in it, and what it makes of plain descriptions."""

from __future__ import annotations

import pytest

from pipeline.steps.categorize import make
from pipeline.taxonomy import Taxonomy, load_taxonomy
from tests.steps.test_categorize import skill
from tests.support import ROOT

# The vocabulary as it was when people began to rely on its IDs.
KEPT = """
    agents application-security cloud-security communications containers-kubernetes cybersecurity data detection-hunting
    endpoint-windows governance-compliance hardening identity-access incident-response-forensics infrastructure malware
    media network-security offensive-security ot-ics productivity research software-development web
"""

EVERYWHERE = """
    a an and are can for how in is it more new not of on or skill the this to use used user when with work you your
"""


@pytest.fixture(scope="module")
def shipped() -> Taxonomy:
    return load_taxonomy((ROOT / "taxonomy.toml").read_text(encoding="utf-8"), "taxonomy.toml")


def categories(
    taxonomy: Taxonomy, name: str, description: str, head: str = "", headings: tuple[str, ...] = ()
) -> tuple[str, ...]:
    return make(skill(name=name, description=description), head, headings, None, taxonomy).categories


@pytest.mark.requirement("R079")
def test_the_ids_that_people_rely_on_are_still_there(shipped: Taxonomy) -> None:
    assert set(KEPT.split()) <= shipped.labels.keys()


def test_the_shipped_vocabulary_is_small_and_each_label_is_its_own(shipped: Taxonomy) -> None:
    assert 40 <= len(shipped.categories) <= 55
    assert len(set(shipped.labels.values())) == len(shipped.categories)


def test_no_shipped_term_is_a_word_that_any_text_has(shipped: Taxonomy) -> None:
    assert {term.text for term in shipped.terms} & set(EVERYWHERE.split()) == set()


@pytest.mark.parametrize(
    ("name", "description", "expected"),
    [
        ("pdf-form-fill", "Fills in PDF forms by program.", "documents"),
        ("pod-audit", "Audits Kubernetes pods for privileged containers.", "containers-kubernetes"),
        ("variant-filter", "Filters VCF files of a genomics run by metrics of each variant.", "bioinformatics"),
        ("loop-tuning", "Reads Modbus registers of a PLC through the SCADA gateway.", "ot-ics"),
        ("apex-trigger", "Writes Apex triggers for Salesforce.", "salesforce"),
        ("page-check", "Checks the SEO of a page: title, schema markup, backlinks.", "marketing"),
        ("flaky-hunt", "Finds flaky unit tests in pytest and Jest.", "testing"),
        ("lora-tuning", "Fine-tunes a model with LoRA in PyTorch.", "machine-learning"),
        ("minutes", "Turns meeting notes into minutes.", "communications"),
        ("ledger-close", "Month-end close: accruals, journal entries, reconciliation.", "finance"),
        ("trip", "Plans a trip with flights and hotels.", "lifestyle"),
        ("resume-tailor", "Tailors your resume and a cover letter to a job posting.", "people"),
        ("clip-cutter", "Cuts video with ffmpeg and adds subtitles.", "media"),
        ("nda-review", "Reviews an NDA clause by clause for a lawyer.", "legal"),
        ("swap", "Swaps tokens on Uniswap from a wallet on Ethereum.", "crypto"),
        ("mem", "Persistent memory for AI agents.", "agents"),
        ("ja", "セキュリティの脆弱性を調べる。", "cybersecurity"),
        ("zh", "用于数据分析和数据可视化。", "data"),
    ],
)
def test_the_shipped_vocabulary_finds_the_subject(
    name: str, description: str, expected: str, shipped: Taxonomy
) -> None:
    assert categories(shipped, name, description)[:1] == (expected,)


@pytest.mark.parametrize(
    "description", ["", "Does the thing.", "Use when relevant to this domain.", "To be described."]
)
@pytest.mark.requirement("R083")
def test_a_skill_that_says_nothing_has_no_category(description: str, shipped: Taxonomy) -> None:
    assert categories(shipped, "my-skill", description, "See below.", ("Usage",)) == ()
