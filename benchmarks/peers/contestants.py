"""The tools that are compared: their packages, their scripts, their settings, and an environment for each."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TOOLS = Path(__file__).resolve().parent / "tools"


class Contestant(NamedTuple):
    """One row of the table."""

    title: str
    script: str
    environment: str
    packages: tuple[str, ...] = ()
    """Asked of the package index by name; the first is the one whose version stands in the table."""
    arguments: tuple[str, ...] = ()
    settings: str = ""
    remembers: bool = False


LANGCHAIN = ("langchain-classic", "langchain-community", "langchain-openai", "langchain")
CONTESTANTS = {
    "bare-openai": Contestant(
        "bare prompt, columns listed",
        "bare.py",
        "bare",
        ("openai",),
        ("openai",),
        "OpenAI's demonstration prompt as evaluations on Spider use it, temperature 0",
    ),
    "bare-ddl": Contestant(
        "bare prompt, CREATE TABLE",
        "bare.py",
        "bare",
        ("openai",),
        ("ddl",),
        "the prompt with CREATE TABLE statements, temperature 0",
    ),
    "vanna": Contestant(
        "Vanna",
        "vanna_trained.py",
        "vanna",
        ("vanna[chromadb,openai]",),
        (),
        "`vanna.legacy`, OpenAI_Chat with ChromaDB; trained on every DDL statement and the pairs; up to 10 of each; "
        "`allow_llm_to_see_data=True`, temperature 0",
        True,
    ),
    "langchain-chain": Contestant(
        "LangChain, SQL chain",
        "langchain_sql.py",
        "langchain",
        LANGCHAIN,
        ("chain",),
        "`create_sql_query_chain` with the guide's few-shot prompt: 5 examples by likeness, in-memory vectors; "
        "3 sample rows a table; at most 10,000 rows instead of 5; code fence and `SQLQuery:` taken off, temperature 0",
        True,
    ),
    "langchain-agent": Contestant(
        "LangChain, SQL agent",
        "langchain_sql.py",
        "langchain",
        LANGCHAIN,
        ("agent",),
        "`create_sql_agent`, zero-shot-react-description (the endpoint calls no tools), up to 15 steps, parsing errors "
        "handed back; its answer is the last statement it ran, temperature 0",
    ),
    "llamaindex": Contestant(
        "LlamaIndex, NLSQLTableQueryEngine",
        "llamaindex_sql.py",
        "llamaindex",
        ("llama-index-core", "llama-index-llms-openai-like", "llama-index-embeddings-openai-like"),
        (),
        "every table, `sql_only=True`, `synthesize_response=False`, temperature 0",
    ),
    "ours": Contestant(
        "sqlcrystal",
        "ours.py",
        "",
        ("sqlcrystal",),
        (),
        "`Crystal.ask` with every setting as it ships: the profile of the columns, up to 5 cards, the choice by "
        "agreement, misspelt values mended",
        True,
    ),
}


def python_of(contestant: Contestant, folder: Path) -> Path:
    """Make the tool's environment if it is not there, from the ordinary index by package names, and give its Python."""
    if not contestant.environment:
        return Path(sys.executable)
    place = folder / contestant.environment
    python = place / "bin" / "python"
    asked = place / "packages.json"
    if not asked.is_file() or json.loads(asked.read_text()) != list(contestant.packages):
        print(f"{contestant.environment}: installing {' '.join(contestant.packages)}", file=sys.stderr, flush=True)
        if not python.is_file():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *contestant.packages], check=True)
        asked.write_text(json.dumps(contestant.packages))
    return python


def versions(contestant: Contestant, python: Path) -> dict[str, str]:
    """Tell the version of each package as it is installed."""
    names = [re.sub(r"\[.*\]", "", package) for package in contestant.packages]
    ask = "import json, sys; from importlib.metadata import version; "
    ask += "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    done = subprocess.run([str(python), "-c", ask, *names], check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def newest(contestant: Contestant) -> str:
    """Look up the newest version of the first package on the index; empty where the index cannot be asked."""
    name = re.sub(r"\[.*\]", "", contestant.packages[0])
    if not contestant.environment:
        return ""
    ask = [sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", name]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    found = re.match(r"\S+ \((\S+)\)", done.stdout)
    return found[1] if found else ""
