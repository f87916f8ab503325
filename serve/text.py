"""Words of a text as the lexical lane counts them: one tokenisation for building and for asking.

Both sides must agree to the letter, so everything here is deterministic and free of settings.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from itertools import chain

import Stemmer

MAX_TOKEN = 40  # longer runs without a break are digests and base64: nobody asks for them
MAX_QUERY_CHARS = 20_000  # what lies beyond cannot be about one skill any more
_CACHE_LIMIT = 200_000

_STOPS = """
a about after all also am an and any are aren as at be because been being but by can could couldn d did didn do
    does doesn doing don for from further had has have having he her here him his how i if in into is isn it its just
    let ll m me more most my no nor not of off on once only or other our ours out over own please re s same shall she
    should shouldn so some such t than that the their them then there these they this those through to too until up
    us use used using very was we were what when where which while who whom why will with won would wouldn you your
    ve"""
STOP_WORDS = frozenset(_STOPS.split())

# Names that lose their meaning with their punctuation, in the spelling that slugs use for them.
_SPELLED = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}

# Marks are not word characters for `re`, yet scripts of India and South East Asia and pointed Arabic or Hebrew need them.
_MARKS = "\u0591-\u05bd\u064b-\u0652\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u102b-\u103e"
_CHUNK = r"\.(?:NET|net|Net)\b|\b[a-zA-Z]/[a-zA-Z]\b|{word}+(?:[-.]{word}+)*(?:\+\+|\#)?"
_CHUNK_ASCII = re.compile(_CHUNK.replace("{word}", r"\w"), re.ASCII)  # a third faster, and most text is ASCII
_CHUNK_ANY = re.compile(_CHUNK.replace("{word}", rf"[\w{_MARKS}]"))
_PART = re.compile(rf"[^\W_{_MARKS}](?:[^\W_]|[{_MARKS}])*|[{_MARKS}]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VERSION = re.compile(r"v?[0-9]+(?:\.[0-9]+)+\w*", re.IGNORECASE)
# Scripts written without spaces: Thai, Lao, Burmese, Khmer, kana, bopomofo, Han with its extensions, Hangul.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]+"
)
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|[\r\n]+|(?<=[。！？；])")
_ACCENTS = re.compile("[\u0300-\u036f]+")

_stemmer = Stemmer.Stemmer("english")
_stemmer_lock = threading.Lock()  # a Stemmer must not be entered by two threads
_cache: dict[str, tuple[str, ...]] = {}
_hashes: dict[str, int] = {}
_ids: dict[str, tuple[int, ...]] = {}


def tokens(text: str) -> list[str]:
    """The tokens of a text in their order, repetitions included, stop words left out.

    Words are case-folded and stemmed (English rules; other languages pass mostly unchanged), accents are dropped.
    Compounds (`snake_case`, `kebab-case`, `camelCase`, `next.js`) give their parts and the whole without its
    separators; versions stay whole; scripts without spaces give overlapping pairs of characters.
    """
    chunks = _CHUNK_ASCII.findall(text) if text.isascii() else _CHUNK_ANY.findall(_fold(text))
    out: list[str] = []
    known = _cache
    for chunk in chunks:
        found = known.get(chunk)
        out += _analyse_and_keep(chunk) if found is None else found
    return out


def term_ids(text: str) -> list[int]:
    """`term_hash` of each of the text's tokens, in their order."""
    chunks = _CHUNK_ASCII.findall(text) if text.isascii() else _CHUNK_ANY.findall(_fold(text))
    known = _ids
    for chunk in set(chunks).difference(known):
        if len(known) >= _CACHE_LIMIT:
            known.clear()
            return [term_hash(token) for token in tokens(text)]
        known[chunk] = tuple([term_hash(token) for token in _analyse(chunk)])
    return list(chain.from_iterable(map(known.__getitem__, chunks)))


def name_tokens(name: str) -> frozenset[str]:
    """The distinct tokens of a skill's name."""
    return frozenset(tokens(name))


def sentences(text: str, *, minimum: int = 3) -> list[str]:
    """The sentences and list items of a text that hold at least `minimum` tokens, in order."""
    pieces = (piece.strip(" \t#>*-•") for piece in _SENTENCE_END.split(text))
    return [piece for piece in pieces if len(tokens(piece)) >= minimum]


def _fold(text: str) -> str:
    """Compatibility forms unified and accents dropped, kana and Hangul left composed."""
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _analyse_and_keep(chunk: str) -> tuple[str, ...]:
    found = tuple(_analyse(chunk))
    if len(_cache) >= _CACHE_LIMIT:  # hostile text could otherwise fill the memory
        _cache.clear()
    _cache[chunk] = found
    return found


def _analyse(chunk: str) -> list[str]:
    spelled = _SPELLED.get(chunk.casefold())
    if spelled:
        return [spelled]
    chunk = chunk.rstrip("+#")
    if len(chunk) == 3 and chunk[1] == "/":
        return [(chunk[0] + chunk[2]).casefold()]
    parts = [token for piece in chunk.split("-") for token in _piece_tokens(piece)]
    bare = re.sub(r"[-._]+", "", chunk)
    if (
        parts
        and bare != chunk
        and len(bare) <= MAX_TOKEN
        and not _UNSPACED.search(bare)
        and not _VERSION.fullmatch(chunk)
    ):
        whole = _stem(bare.casefold())
        if whole not in parts:
            parts.append(whole)
    return parts


def _piece_tokens(piece: str) -> list[str]:
    if _VERSION.fullmatch(piece):
        return [piece.casefold()] if len(piece) <= MAX_TOKEN else []
    return [token for part in _PART.findall(piece) for token in _part_tokens(part)]


def _part_tokens(part: str) -> list[str]:
    """Tokens of a piece without separators: pairs, humps, or one word."""
    if not part.isascii() and _UNSPACED.search(part):
        return _mixed(part)
    folded = part.casefold()
    if len(folded) > MAX_TOKEN:
        return []
    out = [] if folded in STOP_WORDS else [_stem(folded)]
    if part.isascii() and not part.islower() and not part.isupper():
        humps = _HUMP.findall(part)
        if len(humps) > 1 and (len(humps) > 2 or part[0].islower()):
            # Two capitals are as a rule a product (JavaScript is not Java), more are an identifier.
            out += [_stem(hump.casefold()) for hump in humps if hump.casefold() not in STOP_WORDS]
    return out


def _mixed(part: str) -> list[str]:
    """Pairs of characters for runs without spaces, words for what stands between them."""
    out: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(part):
        if run.start() > at:
            out += _part_tokens(part[at : run.start()])
        word = run.group()
        out += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        at = run.end()
    if at < len(part):
        out += _part_tokens(part[at:])
    return out


def _stem(word: str) -> str:
    with _stemmer_lock:
        return str(_stemmer.stemWord(word))


def term_hash(token: str) -> int:
    """The 64-bit number that stands for a token in the index."""
    found = _hashes.get(token)
    if found is None:
        found = int.from_bytes(
            hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
        if len(_hashes) >= _CACHE_LIMIT:
            _hashes.clear()
        _hashes[token] = found
    return found
