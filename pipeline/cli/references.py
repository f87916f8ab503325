"""`retrieval references`: sections of the references for a question, and what is indexed of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.cli import output
from pipeline.cli.common import settings
from serve.errors import ExitCode, NoIndexError
from serve.threads import quiet_threads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from serve.references import References

INFO = "info"
_LISTED = 40  # documents that are listed where a person reads
_BEGIN = "run `retrieval init`, then `retrieval build`"


def references(words: Sequence[str], limit: int, max_chars: int, config: str, *, as_json: bool) -> int:
    """Answer a question, or with the one word `info` say what is indexed. Returns the exit code."""
    quiet_threads()
    chosen = settings(config, with_sources=False)
    from pipeline.engine import wiring
    from serve.references import References
    from serve.settings import ServeSettings

    answering = References(ServeSettings(data_dir=chosen.data_dir, embedder=wiring.embedder_config(chosen)))
    try:
        if list(words) == [INFO]:
            return _info(answering, as_json=as_json)
        return _answer(answering, " ".join(words), limit, max_chars, as_json=as_json)
    except NoIndexError as error:
        if chosen.config_file:
            raise
        raise NoIndexError(error.what, where=error.where, next_step=_BEGIN) from None


def _answer(answering: References, query: str, limit: int, max_chars: int, *, as_json: bool) -> int:
    answer = answering.answer(query, limit, max_chars)
    if as_json:
        output.emit(answer)
        return int(ExitCode.OK)
    for name, lane in answer["lanes"].items():
        if not lane["used"]:
            output.say(output.styled(f"without the {name} lane: {output.plain(lane['reason'])}", "yellow"))
    for place, row in enumerate(answer["results"], 1):
        _print(place, row)
    for note in answer["notes"]:
        output.say(output.plain(note))
    if answer["next"]:
        output.say(f"next: {output.plain(answer['next'])}")
    counted = f"{len(answer['results'])} of {output.count(answer['sections'], 'section')}"
    end = f"{counted}, index {answer['generation'][:8]}, {output.age(answer['age_seconds'])} old"
    output.say(output.styled(end, "dim"))
    return int(ExitCode.OK)


def _print(place: int, row: Mapping[str, Any]) -> None:
    section, citation, provenance = row["section"], row["citation"], row["provenance"]
    title = output.styled(output.plain(section["heading"]), "bold")
    output.say(f"{place}. {title}  {provenance['freshness']}, confidence {row['confidence']:.2f}")
    output.say(f"   {output.styled(output.plain(citation['reference']), 'cyan')}")
    for line in row["retrieved"]["data"].split("\n"):
        output.say(f"   | {output.plain(line.replace(chr(9), '    '))}".rstrip())
    version = citation["version"] or "no version control"
    said = f"{version}, {citation['hash'][:23]}…, changed {provenance['last_modified'] or 'at an unknown time'}"
    output.say(output.styled(f"   {output.plain(said)}", "dim"))
    for assumption in row["assumptions"]:
        output.say(output.styled(f"   note: {output.plain(assumption)}", "dim"))


def _info(answering: References, *, as_json: bool) -> int:
    info = answering.info()
    if as_json:
        output.emit(info)
        return int(ExitCode.OK)
    output.say(f"{output.count(info['documents'], 'document')}, {output.count(info['sections'], 'section')}")
    if info["next"]:
        output.say(f"next: {info['next']}")
        return int(ExitCode.OK)
    tokens = f"at most {info['chunk_tokens']} tokens, {info['overlap_tokens']} of overlap"
    output.say(f"sections: {tokens}, counted by {output.plain(info['counted_by'])}")
    model = info["model"]
    digest = f", blake3:{model['digest'][:16]}…" if model["digest"] else ""
    output.say(f"model: {output.plain(model['name'])} ({model['kind']}, {info['dimension']} dimensions{digest})")
    output.say(f"index: {info['generation']}, {output.age(info['age_seconds'])} old")
    columns = ("documents", "sections", "problem", "bytes", "hash")
    rows = [(name, *(_cell(row[key]) for key in columns)) for name, row in info["sources"].items()]
    output.table(rows, ("source", *columns))
    _files(info["files"])
    return int(ExitCode.OK)


def _files(files: Sequence[Mapping[str, Any]]) -> None:
    rows = [(row["id"], row["sections"], _cell(row["hash"]), ", ".join(row["notes"])) for row in files[:_LISTED]]
    if rows:
        output.say()
        output.table(rows, ("document", "sections", "hash", "notes"))
    if len(files) > _LISTED:
        output.say(output.styled(f"and {len(files) - _LISTED} more; --json lists all", "dim"))


def _cell(value: object) -> object:
    return f"{value[:23]}…" if isinstance(value, str) and value.startswith("blake3:") else value
