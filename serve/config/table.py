"""The table of every environment variable: one row drives reading, errors and the reference page alike."""

from __future__ import annotations

from serve.config.variables import Variable

HARNESSES = ("hermes", "omp", "claude", "codex", "opencode", "gemini")

FILES = (
    Variable(
        "RETRIEVAL_HOME",
        "path",
        "Folder of everything Retrieval generates.",
        otherwise="`retrieval` below the data folder",
    ),
    Variable("RETRIEVAL_CONFIG", "path", "The `sources.toml` to read.", otherwise="see above"),
    Variable(
        "RETRIEVAL_TAXONOMY",
        "path",
        "The category vocabulary.",
        otherwise="`taxonomy.toml` beside `sources.toml`, else the bundled one",
    ),
    Variable(
        "RETRIEVAL_CATEGORY_OVERRIDES",
        "path",
        "Your own category assignments.",
        otherwise="`category-overrides.toml` beside `sources.toml`",
    ),
)

VECTORS = (
    Variable(
        "RETRIEVAL_CHROMA_MODE",
        "choice",
        "`embedded` keeps Chroma's files on this machine; `server` and `cloud` reach one over HTTP.",
        "embedded",
        choices=("embedded", "server", "cloud"),
    ),
    Variable("RETRIEVAL_CHROMA_PATH", "path", "Folder of the embedded store.", otherwise="`chroma` in the data folder"),
    Variable(
        "RETRIEVAL_CHROMA_HOST",
        "text",
        "Host name of the server.",
        otherwise="`127.0.0.1`; in the cloud `api.trychroma.com`",
    ),
    Variable(
        "RETRIEVAL_CHROMA_PORT", "int", "Port of the server.", otherwise="`8000`; in the cloud `443`", low=1, high=65535
    ),
    Variable("RETRIEVAL_CHROMA_SSL", "bool", "Speak HTTPS to the server.", otherwise="`false`; in the cloud `true`"),
    Variable("RETRIEVAL_CHROMA_TOKEN", "secret", "Token of the server; the cloud needs one."),
    Variable("RETRIEVAL_CHROMA_TENANT", "text", "Tenant to use.", "", otherwise="the server's own default"),
    Variable("RETRIEVAL_CHROMA_DATABASE", "text", "Database to use.", "", otherwise="the server's own default"),
    Variable(
        "RETRIEVAL_NAMESPACE",
        "word",
        "First part of the collections' names, to tell them apart on a server.",
        "retrieval",
    ),
)

EMBEDDING = (
    Variable(
        "RETRIEVAL_EMBEDDER",
        "choice",
        "`builtin` is all-MiniLM-L6-v2, which comes with the installation; `fastembed` loads any of its models by "
        "name; `endpoint` asks an OpenAI-compatible server.",
        "builtin",
        choices=("builtin", "fastembed", "endpoint"),
    ),
    Variable(
        "RETRIEVAL_EMBEDDING_MODEL",
        "text",
        "Model of `fastembed` or of the endpoint, which needs it.",
        otherwise="for `fastembed` `sentence-transformers/all-MiniLM-L6-v2`",
        aliases=("EMBEDDING_MODEL",),
    ),
    Variable(
        "RETRIEVAL_EMBEDDING_URL",
        "url",
        "Address of the endpoint, such as `http://127.0.0.1:8080/v1` or the same with `/embeddings`.",
        aliases=("EMBEDDING_URL",),
    ),
    Variable("RETRIEVAL_EMBEDDING_API_KEY", "secret", "Key for the endpoint.", aliases=("EMBEDDING_API_KEY",)),
    Variable("RETRIEVAL_EMBEDDING_BATCH", "int", "Texts embedded at once.", 32, low=1, high=2048),
    Variable(
        "RETRIEVAL_EMBEDDING_TIMEOUT",
        "float",
        "Seconds until a request to the endpoint is given up.",
        60.0,
        low=0.1,
        high=3600,
    ),
    Variable("RETRIEVAL_EMBEDDING_RETRIES", "int", "Further attempts after a failed request.", 3, low=0, high=20),
    Variable(
        "RETRIEVAL_EMBEDDING_QUERY_PREFIX",
        "raw",
        "Text put before each query. White space counts: quote it in `.env`.",
        "",
    ),
    Variable("RETRIEVAL_EMBEDDING_PASSAGE_PREFIX", "raw", "Text put before each skill's text. White space counts.", ""),
    Variable(
        "RETRIEVAL_FASTEMBED_CACHE", "path", "Where fastembed keeps its models.", otherwise="fastembed's own choice"
    ),
)

LIMITS = (
    Variable("RETRIEVAL_LOCK_TIMEOUT", "float", "Seconds to wait for another run to end.", 30.0, low=0, high=86400),
    Variable(
        "RETRIEVAL_MAX_SKILL_BYTES",
        "int",
        "Largest `SKILL.md`, in bytes; a larger one is reported.",
        4 << 20,
        low=1024,
        high=1 << 28,
    ),
)

PROGRAMS = (Variable("RETRIEVAL_IWE_COMMAND", "text", "The `iwe` program.", otherwise="the one on `PATH`"),)

ANSWERING = (
    Variable(
        "RETRIEVAL_HARNESS",
        "choice",
        "The harness that this process answers for; set it where the harness registers the server.",
        otherwise="none: nothing is projected",
        choices=HARNESSES,
    ),
    Variable(
        "RETRIEVAL_SELECTOR",
        "choice",
        "Who chooses among the candidates: a scout in OMP, a chat model at an endpoint, or the ranking alone. `auto` is "
        "`omp` where it is set up, else `rank`.",
        "auto",
        choices=("auto", "omp", "endpoint", "rank"),
    ),
    Variable("RETRIEVAL_SCOUT_TIMEOUT", "float", "Seconds that choosing may take.", 25.0, low=1, high=600),
    Variable("RETRIEVAL_OMP_COMMAND", "text", "The `omp` program.", otherwise="the one on `PATH`"),
    Variable(
        "RETRIEVAL_SCOUT_MODEL",
        "text",
        "The model that chooses: `provider/model` for OMP, its plain name for an endpoint.",
        otherwise="OMP's own default",
    ),
    Variable("RETRIEVAL_SCOUT_MODELS", "path", "A `models.yml` of OMP that tells the scout how to reach its model."),
    Variable(
        "RETRIEVAL_SCOUT_URL",
        "url",
        "Address of an OpenAI-compatible chat endpoint, such as `http://127.0.0.1:8080/v1`.",
    ),
    Variable("RETRIEVAL_SCOUT_API_KEY", "secret", "Key for that endpoint."),
    Variable(
        "RETRIEVAL_SCOUT_VARIABLES",
        "names",
        "Variables that the scout may see beside the few it needs, such as the one that holds its model's key.",
        "",
    ),
    Variable(
        "RETRIEVAL_SCOUT_STANDBY", "bool", "Keep one started scout ready for the next query.", True, otherwise="`true`"
    ),
    Variable(
        "RETRIEVAL_IWEC_COMMAND",
        "text",
        "The `iwec` program; `off` for no IWE lane.",
        otherwise="the one on `PATH`, where a search fits the budget",
    ),
    Variable("RETRIEVAL_IWE_BUDGET", "float", "Seconds that the IWE lane may take.", 0.03, low=0.001, high=10),
    Variable(
        "RETRIEVAL_MAX_ANSWER_CHARS",
        "int",
        "Longest text of a `SKILL.md` in an answer, in characters; a longer one is cut, and the answer says so.",
        200_000,
        low=1_000,
        high=10_000_000,
    ),
    Variable(
        "RETRIEVAL_PROJECT_MAX_FILES", "int", "Most files of a package that is copied.", 1_000, low=1, high=100_000
    ),
    Variable(
        "RETRIEVAL_PROJECT_MAX_BYTES",
        "int",
        "Largest package that is copied, in bytes.",
        64 << 20,
        low=1024,
        high=1 << 36,
    ),
    Variable(
        "RETRIEVAL_USAGE",
        "bool",
        "Keep a record of queries in the data folder; it never leaves the machine.",
        True,
        otherwise="`true`",
    ),
    Variable(
        "RETRIEVAL_USAGE_ROWS", "int", "Queries that the record keeps, the newest.", 20_000, low=1, high=10_000_000
    ),
    Variable(
        "RETRIEVAL_HTTP_TOKEN",
        "secret",
        "What clients of `--http` send as bearer token, at least 16 characters. Without it nothing is served over HTTP.",
    ),
)

SCRIPTS = (
    Variable(
        "RETRIEVAL_PYTHON", "text", "The Python that `setup.sh` and `test.sh` use.", otherwise="the newest that fits"
    ),
    Variable("RETRIEVAL_KILL_AT", "text", "For crash tests: `point:n` kills a build at that point.", otherwise="never"),
)

OTHERS = (
    Variable(
        "HERMES_HOME",
        "path",
        "The Hermes home, or one of its profiles.",
        otherwise="`~/.hermes`; on Windows `%LOCALAPPDATA%\\hermes`",
    ),
    Variable("XDG_DATA_HOME", "path", "Folder for programs' data.", otherwise="`~/.local/share`"),
    Variable("XDG_CONFIG_HOME", "path", "Folder for programs' settings.", otherwise="`~/.config`"),
)

GROUPS: tuple[tuple[str, tuple[Variable, ...]], ...] = (
    ("Files and folders", FILES),
    ("Vector store", VECTORS),
    ("Embedding", EMBEDDING),
    ("Limits", LIMITS),
    ("Programs", PROGRAMS),
    ("Answering agents", ANSWERING),
    ("Scripts and tests", SCRIPTS),
    ("Read from the system", OTHERS),
)
BY_NAME: dict[str, Variable] = {row.name: row for _, rows in GROUPS for row in rows}
