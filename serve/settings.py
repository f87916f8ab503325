"""What an answering process is told from outside: which harness asks, who chooses, and the bounds of an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from serve.embedder import EmbedderConfig


@dataclass(frozen=True)
class ScoutSettings:
    """How the model that chooses is reached.

    selector: "auto" (omp where it is set up, else rank), "omp", "endpoint" or "rank". timeout: seconds a choice may take
    from its first to its last step. omp_command: "" for the program on PATH. model: for omp "provider/model", for an
    endpoint its model's name. models_file: an OMP models.yml to give the scout. url, api_key: an OpenAI-compatible
    chat endpoint; with selector "omp" a models.yml is made from them. pass_variables: names of environment variables
    that the scout may see beside the fixed few. standby: keep one started scout ready.
    """

    selector: str = "auto"
    timeout: float = 25.0
    omp_command: str = ""
    model: str = ""
    models_file: Path | None = None
    url: str = ""
    api_key: str = ""
    pass_variables: tuple[str, ...] = ()
    standby: bool = True


@dataclass(frozen=True)
class Bounds:
    """answer_chars: the most characters of a SKILL.md in an answer. project_files, project_bytes: the largest package
    that is projected. usage_rows: the most queries the usage record keeps.
    """

    answer_chars: int = 200_000
    project_files: int = 1_000
    project_bytes: int = 64 << 20
    usage_rows: int = 20_000


@dataclass(frozen=True)
class ServeSettings:
    """harness: one of `serve.harnesses`, or "" for a caller of no known harness, for which nothing is projected.

    chroma_token: for a Chroma server. iwec_command: "" for the program on PATH, "off" for no IWE lane. iwe_budget:
    seconds the IWE lane may take of a query. usage: whether queries are recorded.
    """

    data_dir: Path
    harness: str = ""
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    chroma_token: str = ""
    scout: ScoutSettings = field(default_factory=ScoutSettings)
    bounds: Bounds = field(default_factory=Bounds)
    iwec_command: str = ""
    iwe_budget: float = 0.03
    usage: bool = True
    http_token: str = ""
