"""The upsert step: which keys a row has, what changes its digest and what does not."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.steps import upsert
from tests.steps.hostile import HOSTILE, RECORD, descriptor, hostile_skill, record

texts = st.text(st.characters(codec=None), max_size=40)


def key(changed=RECORD, described=None, vector="v1"):
    return upsert.row(changed, described or descriptor(), vector)[0]["row_key"]


@pytest.mark.requirement("R223")
def test_a_row_has_exactly_the_fixed_keys_and_its_document_is_the_embedded_text():
    metadata, document = upsert.row(RECORD, descriptor(), "v1")
    assert tuple(metadata) == upsert.KEYS
    assert document == "pdf. Fills in PDF forms."
    assert metadata["categories"] == ["documents"]
    assert metadata["name"] == "pdf"
    assert metadata["state"] == "cold"


@pytest.mark.parametrize("field", ["categories", "tags", "native_in", "hidden_in"])
def test_an_empty_list_becomes_a_list_of_one_empty_text(field):
    metadata, _ = upsert.row(record(**{field: ()}), descriptor(), "v1")
    assert metadata[field] == [""]


@given(name=texts, tags=st.lists(texts, max_size=3).map(tuple), path=texts)
def test_whatever_a_skill_says_its_row_can_be_written_as_utf8_with_the_same_keys(name, tags, path):
    metadata, document = upsert.row(record(name=name, tags=tags, path=path), descriptor(short=name), "v1")
    assert tuple(metadata) == upsert.KEYS
    assert all(value != [] for value in metadata.values())
    msgspec.json.encode((metadata, document))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_keeps_its_place(text):
    metadata, _ = upsert.row(*hostile_skill(text, 1), "v1")
    assert tuple(metadata) == upsert.KEYS
    assert len(metadata["description"]) <= upsert.MAX_DESCRIPTION


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"description": "other"},
        {"state": "archived"},
        {"harness": "omp"},
        {"categories": ("documents", "office")},
        {"tags": ()},
        {"native_in": ("omp",)},
        {"hidden_in": ("hermes",)},
        {"path": "/elsewhere/SKILL.md"},
        {"digest": "ff"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_change_of_a_stored_field_changes_the_row_key(changes):
    assert key(record(**changes)) != key()


def test_another_document_or_another_vector_changes_the_row_key():
    assert key(described=descriptor(short="other")) != key()
    assert key(vector="v2") != key()


def test_fields_that_the_store_does_not_keep_leave_the_row_key_alone():
    kept = record(package_digest="00", files=9, bytes=9, duplicates=("a:b",), aliases=("/c",), diagnostics=("d",))
    assert key(kept) == key()
    assert key(described=descriptor(head="other", headings=())) == key()


def test_a_name_in_another_encoding_is_stored_with_its_odd_bytes_replaced():
    metadata, _ = upsert.row(record(path="/library/caf\udce9/SKILL.md"), descriptor(), "v1")
    assert metadata["path"] == "/library/caf?/SKILL.md"
