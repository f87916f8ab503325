"""The bundled example library is well-formed, its scripts work, and the labelled requests fit it."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from tests.support import ROOT, needs, run

if TYPE_CHECKING:
    from subprocess import CompletedProcess

LIBRARY = ROOT / "examples" / "library"
REQUESTS = ROOT / "examples" / "requests.jsonl"
KINDS = {"concrete", "vague", "synonym", "noisy", "none"}
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```", flags=re.DOTALL | re.MULTILINE)

SKILLS = sorted(LIBRARY.rglob("SKILL.md"))
PYTHON = sorted(LIBRARY.rglob("scripts/*.py"))
SHELL = sorted(LIBRARY.rglob("scripts/*.sh"))


class Example(NamedTuple):
    """One run of a bundled script on its sample: relative to the skill's folder; `says` must stand in its output."""

    skill: str
    command: str
    code: int
    says: tuple[str, ...]


EXAMPLES = [
    Example(
        "security/kubernetes-pod-audit",
        "scripts/audit_pods.py samples/pods.json --min-severity high",
        1,
        (
            "critical ops/Pod/debug-shell  sh: privileged",
            "high     shop/Deployment/worker  tune: adds capability SYS_ADMIN",
        ),
    ),
    Example(
        "security/phishing-email-analysis",
        "scripts/inspect_email.py samples/invoice.eml",
        1,
        ("! dmarc fail", "! text shows portal.company.example but the target is login.example.org", "5 warnings"),
    ),
    Example(
        "security/log-threat-hunt",
        "scripts/hunt_auth_log.py samples/auth.log",
        1,
        ("guessed   203.0.113.45 backup: login at line 9 after 7 failures", "sprayed   198.51.100.9: 5 user names"),
    ),
    Example(
        "infrastructure/terraform-plan-review",
        "scripts/summarise_plan.py samples/plan.json",
        1,
        ("replace aws_db_instance.orders [HOLDS DATA]  (storage_encrypted)", "1 replace, 1 update, 1 create"),
    ),
    Example(
        "development/flaky-test-hunt",
        "scripts/mixed_outcomes.py samples/run1.xml samples/run2.xml samples/run3.xml",
        1,
        (
            "flaky   1/3 failed  tests.test_mail::test_queue_is_drained",
            "broken  3/3 failed  tests.test_legacy::test_old_import",
        ),
    ),
    Example(
        "development/python/performance-profiling",
        "scripts/profile_top.py --limit 1 samples/slow_join.py",
        0,
        ("280 of 3000 orders without a customer", "slow_join.py:6 find_customer"),
    ),
    Example(
        "data/csv-cleaning",
        "scripts/clean_csv.py samples/messy.csv OUT --date ordered=%d.%m.%Y --decimal-comma price --drop-repeats",
        1,
        ("encoding cp1252, separator ';'", "line 7: 6 fields instead of 5", "1 repeated rows dropped"),
    ),
    Example(
        "data/data-quality-checks",
        "scripts/check_table.py samples/orders.csv samples/rules.json",
        1,
        ("error order_id: unique broken in 1 of 6 rows (lines 5)", "warn  discount: max broken"),
    ),
    Example(
        "office/spreadsheet-audit",
        "scripts/audit_xlsx.py samples/model.xlsx",
        1,
        ("Model!E4: constant 1.19", "Model!column D: typed numbers among 6 formulas: D5", "Inputs: sheet is hidden"),
    ),
    Example(
        "writing/release-notes",
        "scripts/group_commits.py samples/subjects.txt --version 2.0.0",
        0,
        ("## 2.0.0\n\n### Breaking\n\n- **api**: List endpoints return a cursor", "3 internal commits left out"),
    ),
    Example(
        "writing/plain-language-rewrite",
        "scripts/readability.py samples/notice.txt",
        0,
        ("sentences            3", "[52 words] Please be advised"),
    ),
    Example(
        "research/experiment-design",
        "scripts/sample_size.py proportion --base 0.10 --effect 0.02",
        0,
        ("3841 per arm",),
    ),
    Example(
        "media/podcast-transcript-cleanup",
        "scripts/clean_transcript.py samples/episode.vtt",
        0,
        ("**Ines** (00:14) So we had the lab for four weeks and no budget at all.",),
    ),
    Example(
        "finance/invoice-check",
        "scripts/check_invoices.py samples/invoices.csv samples/suppliers.csv",
        1,
        (
            "R-2041 Paper & Co 49.98: pay",
            "same amount as R-2041",
            "12 x 35.00 is 420.00, not 402.00",
            "wrong check digits",
        ),
    ),
    Example(
        "finance/budget-variance",
        "scripts/variance.py samples/march.csv",
        0,
        ("Energy                    60,000      68,400      -8,400    14.0 U", "result against budget -12,900"),
    ),
    Example(
        "web/accessibility-audit",
        "scripts/check_html.py samples/page.html",
        1,
        ("line 9: 1.1.1 img without alt: logo.svg", "line 14: 3.3.2 input has no label: street", "10 findings"),
    ),
    Example(
        "agents/prompt-regression-test",
        "scripts/compare_runs.py samples/cases.jsonl samples/before.jsonl samples/after.jsonl",
        1,
        ("WORSE     extract: is not JSON", "3 of 4 passed before, 3 now"),
    ),
    Example(
        "home/solar-sizing",
        "scripts/size_solar.py samples/cabin.csv --sun-hours 3.5",
        0,
        ("energy      1,105 Wh a day", "battery     2,456 Wh = 102 Ah at 24 V"),
    ),
]


def relative(path: Path) -> str:
    return path.relative_to(LIBRARY).as_posix()


def parts(skill: Path) -> tuple[dict[str, Any], str]:
    """Frontmatter and body of a SKILL.md that begins with a fence."""
    opening, frontmatter, body = re.split(r"^---\n", skill.read_text(encoding="utf-8"), maxsplit=2, flags=re.MULTILINE)
    assert opening == ""
    return yaml.safe_load(frontmatter), body


def requests() -> list[dict[str, Any]]:
    return [json.loads(line) for line in REQUESTS.read_text(encoding="utf-8").splitlines()]


def python(script: Path, *arguments: str, cwd: Path = ROOT) -> CompletedProcess[str]:
    """Run a bundled script with nothing of this project in reach and without leaving caches in the library."""
    return run([sys.executable, "-I", "-B", "-X", "utf8", script, *arguments], cwd=cwd)


each_skill = pytest.mark.parametrize("skill", SKILLS, ids=relative)


def test_the_library_has_about_forty_skills_in_at_least_ten_areas() -> None:
    assert 40 <= len(SKILLS) <= 50
    assert len({skill.relative_to(LIBRARY).parts[0] for skill in SKILLS}) >= 10


def test_the_library_is_small() -> None:
    assert sum(path.stat().st_size for path in LIBRARY.rglob("*") if path.is_file()) < 400_000


def test_every_folder_belongs_to_a_skill() -> None:
    strays = [relative(path) for path in LIBRARY.rglob("*") if path.is_file() and owner(path) is None]

    assert strays == []


def owner(path: Path) -> Path | None:
    return next((folder for folder in path.parents if (folder / "SKILL.md").is_file()), None)


@each_skill
def test_a_skill_is_named_like_its_folder(skill: Path) -> None:
    frontmatter, _ = parts(skill)

    assert frontmatter["name"] == skill.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", frontmatter["name"])


@each_skill
def test_a_description_says_what_and_when_in_60_to_500_characters(skill: Path) -> None:
    description = " ".join(parts(skill)[0]["description"].split())

    assert 60 <= len(description) <= 500
    assert re.search(r"\bUse (when|for|before|after)\b", description)


@each_skill
def test_a_body_is_worth_reading(skill: Path) -> None:
    lines = parts(skill)[1].strip().splitlines()

    assert 25 <= len(lines) <= 80
    assert lines[0].startswith("# ")
    assert sum(line.startswith("## ") for line in lines) >= 3


@each_skill
def test_relative_links_of_a_body_exist(skill: Path) -> None:
    targets = [target for target in LINK.findall(FENCE.sub("", parts(skill)[1])) if "://" not in target]

    assert [target for target in targets if not (skill.parent / target.partition("#")[0]).is_file()] == []


@each_skill
def test_every_bundled_file_is_named_in_its_skill(skill: Path) -> None:
    body = parts(skill)[1]
    bundled = [
        path for path in skill.parent.rglob("*") if path.is_file() and path != skill and owner(path) == skill.parent
    ]

    assert [relative(path) for path in bundled if path.relative_to(skill.parent).as_posix() not in body] == []


def test_a_name_in_a_not_for_clause_is_a_skill_of_the_library() -> None:
    names = {skill.parent.name for skill in SKILLS}
    named = {
        name
        for skill in SKILLS
        for clause in re.findall(r"\bNot for .*", " ".join(parts(skill)[0]["description"].split()))
        for name in re.findall(r"\(([a-z]+(?:-[a-z]+)+)\)", clause)
    }

    assert named
    assert named - names == set()


def test_forms_of_frontmatter_vary() -> None:
    texts = [skill.read_text(encoding="utf-8").split("\n---\n")[0] for skill in SKILLS]

    for form in (
        r"^description: >-$",
        r"^description: >$",
        r"^description: \|$",
        r'^description: "',
        r"^tags: \[",
        r"^tags:$",
        r"^  tags: ",
    ):
        assert any(re.search(form, text, flags=re.MULTILINE) for text in texts), form
    assert [parts(skill)[0]["name"] for skill in SKILLS if parts(skill)[0].get("disable-model-invocation")] == [
        "weekly-review"
    ]
    assert any(len(skill.relative_to(LIBRARY).parts) == 4 for skill in SKILLS)


def test_declared_categories_stand_in_the_taxonomy() -> None:
    taxonomy = tomllib.loads((ROOT / "taxonomy.toml").read_text(encoding="utf-8"))
    declared = {name for skill in SKILLS for name in parts(skill)[0].get("retrieval_categories", [])}

    assert declared
    assert declared - {category["id"] for category in taxonomy["categories"]} == set()


@pytest.mark.parametrize("script", PYTHON, ids=relative)
def test_a_bundled_script_needs_the_standard_library_alone(script: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])

    assert imported - sys.stdlib_module_names == set()


@pytest.mark.parametrize("script", PYTHON, ids=relative)
def test_a_bundled_script_explains_itself(script: Path) -> None:
    shown = python(script, "--help")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) is not None
    assert shown.stdout.startswith(f"usage: {script.name}")


@pytest.mark.parametrize("script", SHELL, ids=relative)
def test_a_bundled_shell_script_explains_itself(script: Path) -> None:
    shown = run([needs("bash"), script, "--help"])

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.skill)
def test_a_bundled_script_finds_what_its_sample_hides(example: Example, tmp_path: Path) -> None:
    script, *arguments = example.command.split()
    folder = LIBRARY / example.skill
    arguments = [str(tmp_path / "out") if argument == "OUT" else argument for argument in arguments]
    result = python(folder / script, *arguments, cwd=folder)

    assert result.returncode == example.code, result.stderr
    assert [text for text in example.says if text not in result.stdout + result.stderr] == []


def test_every_python_script_is_tried_on_its_sample_but_one_that_has_a_test_of_its_own() -> None:
    tried = {f"{example.skill}/{example.command.split()[0]}" for example in EXAMPLES}

    assert {relative(script) for script in PYTHON} - tried == {
        "infrastructure/backup-restore-drill/scripts/compare_tree.py"
    }


def test_cleaned_csv_keeps_the_rows_and_leaves_the_original(tmp_path: Path) -> None:
    folder = LIBRARY / "data" / "csv-cleaning"
    before = (folder / "samples/messy.csv").read_bytes()
    out = tmp_path / "clean.csv"
    python(folder / "scripts/clean_csv.py", str(folder / "samples/messy.csv"), str(out), "--date", "ordered=%d.%m.%Y",
           "--decimal-comma", "price", "--empty", "n/a", "--empty", "-", "--drop-repeats")  # fmt: skip

    assert out.read_text(encoding="utf-8").splitlines() == [
        "order_no,customer,ordered,price,note",
        "1001,Müller,2026-02-03,1250.00,",
        "1002,Åse Holm,2026-02-17,89.90,gift; wrap",
        "1003,García,29.02.2026,12.00,",
    ]
    assert (folder / "samples/messy.csv").read_bytes() == before


def test_a_restored_folder_is_compared_with_its_manifest(tmp_path: Path) -> None:
    script = LIBRARY / "infrastructure/backup-restore-drill/scripts/compare_tree.py"
    live, restored, manifest = tmp_path / "live", tmp_path / "restored", tmp_path / "live.json"
    for name in ("same", "changed", "missing"):
        (live / name).parent.mkdir(exist_ok=True)
        (live / name).write_text(name, encoding="utf-8")
    manifest.write_text(python(script, "manifest", str(live)).stdout, encoding="utf-8")
    shutil.copytree(live, restored)
    equal = python(script, "check", str(restored), str(manifest))
    (restored / "missing").unlink()
    (restored / "changed").write_text("other", encoding="utf-8")
    (restored / "extra").write_text("", encoding="utf-8")
    different = python(script, "check", str(restored), str(manifest))

    assert (equal.returncode, equal.stdout) == (0, "equal: 3 files\n")
    assert (different.returncode, different.stdout) == (1, "missing  missing\nchanged  changed\nextra    extra\n")


def test_the_bisect_probe_finds_the_bad_commit_and_skips_what_cannot_be_built(tmp_path: Path) -> None:
    git, probe = needs("git"), LIBRARY / "development/git-bisect-regression/scripts/bisect_probe.sh"
    needs("bash")
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}

    def call(*arguments: str, **extra: str) -> str:
        result = run(
            [git, "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments],
            cwd=repository,
            environment=environment | extra,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    repository = tmp_path / "repository"
    repository.mkdir()
    call("init", "-q")
    for number in range(1, 10):
        (repository / "bug" if number >= 7 else repository / "number").write_text(str(number), encoding="utf-8")
        (repository / "unbuildable").write_text(str(number == 5), encoding="utf-8")
        call("add", "-A")
        call("commit", "-qm", f"commit {number}")
    call("bisect", "start", "HEAD", "HEAD~8")
    call("bisect", "run", "bash", str(probe), BUILD_CMD="! grep -q True unbuildable", TEST_CMD="test ! -e bug")

    assert call("show", "-s", "--format=%s", "refs/bisect/bad") == "commit 7\n"
    assert re.findall(r"^# skip: \[[0-9a-f]+\] (.*)", call("bisect", "log"), flags=re.MULTILINE) == ["commit 5"]


def test_the_size_of_a_video_decides_its_bitrate() -> None:
    script = LIBRARY / "media/video-clip-ffmpeg/scripts/fit_size.sh"
    shown = run([needs("bash"), script, "--print", "in.mp4", "out.mp4", "25", "120"])
    refused = run([needs("bash"), script, "--print", "in.mp4", "out.mp4", "1", "600"])

    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("-b:v 1487k") == 2  # 25 MB * 8000 * 0.95 / 120 s - 96 kbit/s of sound
    assert (refused.returncode, refused.stdout) == (1, "")


def test_ids_of_requests_are_unique_and_kinds_known() -> None:
    rows = requests()

    assert [row["id"] for row in rows] == [f"ex{number:03d}" for number in range(1, 91)]
    assert {row["kind"] for row in rows} == KINDS
    assert Counter(row["kind"] for row in rows)["none"] == 12
    assert len({row["query"] for row in rows}) == len(rows)


def test_every_accepted_skill_exists_and_none_accepts_none() -> None:
    known = {relative(skill) for skill in SKILLS}

    for row in requests():
        assert set(row) == {"id", "kind", "query", "accept"}
        assert set(row["accept"]) <= known, row["id"]
        assert bool(row["accept"]) == (row["kind"] != "none"), row["id"]


def test_every_skill_is_asked_for() -> None:
    assert {relative(skill) for skill in SKILLS} - {path for row in requests() for path in row["accept"]} == set()


def test_no_query_is_copied_from_a_description() -> None:
    descriptions = [" ".join(parts(skill)[0]["description"].split()).lower() for skill in SKILLS]

    assert [row["id"] for row in requests() if any(row["query"].lower() in text for text in descriptions)] == []
