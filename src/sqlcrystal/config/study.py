"""Study files as frozen, validated objects: TOML in, one line about what is wrong with it, or a `StudyFile`."""

import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from sqlcrystal.errors import ConfigError, DataError

KEY_VARIABLE = "SQLCRYSTAL_API_KEY"
"""Where the key of a model's endpoint is looked for when its settings name no other variable."""
SEEDS = (42, 7, 13)
VARIABLE = re.compile(r"\$\{([^}]*)\}")
"""A variable of the environment, as settings name it."""
FEWEST_FOLDS = 2
FROZEN_SUFFIX = ".frozen.json"
"""How a frozen design is named beside its study file."""


class BenchmarkEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The questions that a study asks, and the place of their files; relative paths are meant from the study file."""

    name: str
    data: str = ""
    databases: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """The names of the databases to ask; all when empty."""
    limit: int = 0
    """At most so many questions of each database; 0 is all. It changes the splits."""
    skip_missing: bool = False


class ArmEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One arm as written: the one factor in which it differs from its base, and the settings it is measured in."""

    name: str
    base: str = ""
    """The arm it changes; the default arm when empty."""
    source: str | None = None
    admission: str | None = None
    writer: str | None = None
    retriever: str | None = None
    k: int | None = None
    correspondence: str | None = None
    bank: str | None = None
    solver: str | None = None
    passes: int | None = None
    definitions: bool | None = None
    """True where its questions are asked with the study's definitions beside them."""
    settings: tuple[str, ...] = ("transfer",)
    seeds: tuple[int, ...] = ()
    """Its own seeds, or folds by number, for an arm that is only tried out; the study's when empty."""


class ContrastEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A paired comparison b - a; each side is an arm on held-out transfer, or `ARM/SETTING`."""

    a: str
    b: str
    name: str = ""
    confirmatory: bool = False


class Prices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a million tokens, in any currency; for the plan only."""

    prompt: float = 0.0
    completion: float = 0.0


class StudyFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A study as written: a benchmark, a model, seeds, and arms that each change one thing."""

    name: str
    benchmark: BenchmarkEntry | str = "quarry"
    model: str | dict[str, Any] = "qwen2.5-coder-1.5b"
    embedder: str | dict[str, Any] = "wordllama"
    seeds: tuple[int, ...] = SEEDS
    folds: int = 0
    """Hold every question out exactly once, in so many folds drawn by the one seed; 0 is the paper's 70/30 splits."""
    max_tokens: int = 2048
    budget: int = 3
    card_order: Literal["rank", "stable"] = "rank"
    """How retrieved cards stand in the prompt: best first, or by question id so that a prefix cache can reuse them."""
    timeout: float = 30.0
    """Seconds one statement may take; results beyond it are timeouts."""
    check: str = "bird"
    """The rule of the oracle that triggers repair and admits cards; changing it asks the model anew."""
    rule: str = "bird"
    """The rule of the headline figures; changing it only reads the same answers again."""
    equivalence_margin: float | Literal["drift"] = 2.5
    """How many points two arms may differ and still be called equivalent: fixed here, before anything is measured.

    `drift` takes the largest difference between runs of one configuration (setting again), as the paper does.
    """
    reruns: int = 1
    bare_per_seed: bool = False
    """Ask the held-out answers without memory anew for every seed, apart from those that repair starts from."""
    mode: Literal["fill", "replay", "live"] = "fill"
    recordings: tuple[str, ...] = ()
    """Recordings to read beside the run's own; those that are not there are passed over, except in replay."""
    definitions: str = ""
    """A CSV of definitions, for the arms that show them; a relative path is meant from the study file."""
    prices: Prices = Prices()
    default: ArmEntry = ArmEntry(name="W0", settings=("transfer", "replay", "retention", "rerun"))
    arm: tuple[ArmEntry, ...] = ()
    contrast: tuple[ContrastEntry, ...] = ()
    arms: tuple[str, ...] = ()
    """Only these arms and their bases; all when empty."""

    frozen: str = ""
    """The design as `study freeze` kept it; found beside the study file."""

    @property
    def splits(self) -> tuple[int, ...]:
        """Number its splits: the seeds, or the folds from 1 on."""
        return tuple(range(1, self.folds + 1)) if self.folds else self.seeds

    @property
    def asked(self) -> BenchmarkEntry:
        """Read the benchmark, whichever way it was written."""
        return BenchmarkEntry(name=self.benchmark) if isinstance(self.benchmark, str) else self.benchmark


# The keys that leave every answer and figure as it is: the places of files and the prices of tokens.
PLACES = ("mode", "recordings", "prices", "model", "embedder", "benchmark", "frozen", "definitions")


def digest(study: StudyFile, **identities: str) -> str:
    """Name a measurement: digest the study without its paths, with those of its model and its questions."""
    document: dict[str, Any] = msgspec.to_builtins(study)
    for key in PLACES:
        document.pop(key)
    if not study.bare_per_seed:  # runs from before this key have the digest that they had
        document.pop("bare_per_seed")
    for arm in (document["default"], *document["arm"]):
        if arm["definitions"] is None:
            del arm["definitions"]
    return hashlib.sha256(msgspec.json.encode({**document, **identities}, order="sorted")).hexdigest()


def model_table(text: str) -> dict[str, Any]:
    """Write out the settings that a model's name, file or `http://HOST/v1#NAME` is short for."""
    if is_url(text):
        return endpoint_table(text)
    return {"kind": "local", ("path" if text.endswith(".gguf") else "name"): text}


def embedder_table(text: str) -> dict[str, Any]:
    """Write out the settings that an embedder's kind or `http://HOST/v1#NAME` is short for."""
    return endpoint_table(text) if is_url(text) else {"kind": text}


def is_url(text: str) -> bool:
    """Tell whether a model is named by its address."""
    return text.startswith(("http://", "https://"))


def endpoint_table(url: str) -> dict[str, Any]:
    """Write out the settings of `http://HOST/v1#NAME`."""
    base_url, _, name = url.partition("#")
    return {"kind": "openai", "base_url": base_url, "name": name}


def with_key(model: str | Mapping[str, Any], variable: str) -> dict[str, Any]:
    """Take the model's key from this environment variable; a text that is no variable's name is not repeated."""
    if not re.fullmatch(r"[A-Za-z_]\w*", variable):
        raise ConfigError("--api-key-env: give the name of an environment variable that holds the key, not the key")
    table = model_table(model) if isinstance(model, str) else dict(model)
    if table.get("kind", "local") != "openai":
        raise ConfigError("--api-key-env: a model that runs in this process takes no key")
    return {**table, "api_key": f"${{{variable}}}"}


WRITTEN_SHORT: dict[str, Callable[[str], dict[str, Any]]] = {
    "benchmark": lambda name: {"name": name},
    "model": model_table,
    "embedder": embedder_table,
}
"""Tables that may be written as one text, so that an override of one of their keys keeps what the text said."""


def read_study(
    path: Path, overrides: Sequence[str] = (), *, api_key_env: str | None = None, allow_env: Sequence[str] = ()
) -> StudyFile:
    """Read a study from a TOML file, a bundled name or a run's folder, with overrides; its paths become absolute.

    The file may have come from elsewhere: of the environment it is given what the caller names, and nothing else.
    """
    path = study_path(path)
    placed = _placed(_read(path), path.parent)
    address = _address(placed)
    for override in overrides:
        _override(placed, override)
    allowed = {*allow_env, *filter(None, [api_key_env]), *VARIABLE.findall(" ".join(overrides))}
    _refuse_secrets(placed, allowed, where=f"study {path}", named=_named_databases(overrides))
    if os.environ.get(KEY_VARIABLE) and address and address == _address(placed) and not allowed:
        placed["model"] = {**_table(placed["model"]), "keyless": True}
    if any(override.partition("=")[0].strip() == "seeds" for override in overrides):
        _fit_arms_to_seeds(placed)
    placed.setdefault("name", path.stem)
    if (frozen := path.with_suffix(FROZEN_SUFFIX)).is_file():
        placed.setdefault("frozen", str(frozen.resolve()))
    study = parse_study(placed, where=str(path))
    if api_key_env is None:
        return study
    return msgspec.structs.replace(study, model=with_key(study.model, api_key_env))


def _table(model: Any) -> dict[str, Any]:
    return model_table(model) if isinstance(model, str) else dict(model) if isinstance(model, Mapping) else {}


def _address(document: Mapping[str, Any]) -> str:
    """Tell the address that a document's model is asked at; a model in this process has none."""
    return str(_table(document.get("model", {})).get("base_url", ""))


def _named_databases(overrides: Sequence[str]) -> bool:
    return any(override.partition("=")[0].strip() in ("benchmark", "benchmark.databases") for override in overrides)


def _refuse_secrets(document: Mapping[str, Any], allowed: Container[str], *, where: str, named: bool) -> None:
    """Refuse a variable of the environment that nobody allowed: an address in the file would be told its value."""
    for key in ("model", "embedder", "benchmark"):
        texts = list(_texts(document.get(key)))
        if key == "benchmark" and not named:
            texts += [_mapping(text) for text in texts if text.endswith((".toml", ".json"))]
        for name in VARIABLE.findall("\n".join(texts)):
            if name not in allowed:
                raise ConfigError(
                    f"{where}: {key}: may not read ${{{name}}} from the environment; if you trust the file, say "
                    f"--allow-env {name}"
                )


def _texts(value: Any) -> Iterator[str]:
    """Walk every text of a table, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def _mapping(path: str) -> str:
    """Read a file of locations that a study names; one that cannot be read is refused where it is used."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _read(path: Path) -> dict[str, Any]:
    """Read the document as it lies there: people write TOML, and a run keeps its study as JSON."""
    try:
        text = path.read_text(encoding="utf-8")
        document = msgspec.json.decode(text, type=dict[str, Any]) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise DataError(f"study {path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise DataError(f"study {path}: not UTF-8 ({error.reason})") from None
    except msgspec.DecodeError as error:
        raise DataError(f"study {path}: not JSON ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"study {path}: not TOML ({error})") from None
    return document


def parse_study(document: Mapping[str, Any], *, where: str = "study") -> StudyFile:
    """Validate a study, or raise one line that names the key and, for an unknown one, the choices."""
    for key in document:
        if key not in StudyFile.__struct_fields__:
            raise ConfigError.unknown(f"{where}: key", key, StudyFile.__struct_fields__)
    for table in [document.get("default", {}), *document.get("arm", ())]:
        for key in table if isinstance(table, dict) else ():
            if key not in ArmEntry.__struct_fields__:
                raise ConfigError.unknown(
                    f"{where}: arm {table.get('name', '')!r}: key", key, ArmEntry.__struct_fields__
                )
    try:
        study = msgspec.convert(document, StudyFile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from None
    for key, value, least in (
        ("max_tokens", study.max_tokens, 1),
        ("budget", study.budget, 1),
        ("seeds", len(study.seeds), 1),
        ("reruns", study.reruns, 1),
    ):
        if value < least:
            raise ConfigError(f"{where}: {key}: needs at least {least}")
    if study.name in {"", ".", ".."} or re.search(r"[/\\\x00-\x1f]", study.name):
        raise ConfigError(f"{where}: name: {study.name!r} holds a path separator or control character")
    if study.equivalence_margin != "drift" and study.equivalence_margin <= 0:
        raise ConfigError(f"{where}: equivalence_margin: must be greater than 0 points")
    _check_splits(study, where)
    return study


def _check_splits(study: StudyFile, where: str) -> None:
    """Refuse a seed named twice, folds with several seeds, and an arm's seed that is not the study's."""
    if len(set(study.seeds)) < len(study.seeds):
        raise ConfigError(f"{where}: seeds: {list(study.seeds)} names a seed twice")
    if study.folds and (study.folds < FEWEST_FOLDS or len(study.seeds) != 1):
        raise ConfigError(f"{where}: folds: at least {FEWEST_FOLDS}, drawn by one seed such as seeds = [42]")
    for arm in (study.default, *study.arm):
        key = f"{where}: arm {arm.name!r}: seeds"
        if len(set(arm.seeds)) < len(arm.seeds):
            raise ConfigError(f"{key}: {list(arm.seeds)} names a seed twice")
        for seed in arm.seeds:
            if seed not in study.splits:
                raise ConfigError.unknown(key, str(seed), map(str, study.splits))


def _placed(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the relative paths of a document absolute."""
    asked = document.get("benchmark")
    if isinstance(asked, dict) and asked.get("data"):
        document["benchmark"] = {**asked, "data": str((folder / asked["data"]).resolve())}
    recordings = document.get("recordings")
    if isinstance(recordings, list):
        document["recordings"] = [str((folder / str(name)).resolve()) for name in recordings]
    if document.get("definitions"):
        document["definitions"] = str((folder / str(document["definitions"])).resolve())
    return document


def _fit_arms_to_seeds(document: dict[str, Any]) -> None:
    """Other seeds for the study are other seeds for its arms; one that keeps none of its own is measured under all."""
    for arm in (document.get("default", {}), *document.get("arm", ())):
        if "seeds" in arm and not document.get("folds"):
            arm["seeds"] = [seed for seed in arm["seeds"] if seed in document["seeds"]]


def _override(document: dict[str, Any], override: str) -> None:
    """Set one dotted key; the value is TOML, or else text."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set: {override!r} is not KEY=VALUE")
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = key.strip().split(".")
    table = document
    for name in parents:
        inner = table.get(name)
        if table is document and name in WRITTEN_SHORT and isinstance(inner, str):
            inner = WRITTEN_SHORT[name](inner)
        elif not isinstance(inner, dict):
            inner = {}
        table[name] = inner
        table = inner
    if key.strip() in ("benchmark.data", "definitions") and value:
        value = str(Path(str(value)).resolve())
    table[last] = value


KEPT_STUDY = "study.json"
"""The name under which a run's folder keeps its study."""
_PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (_PACKAGE / "studies", _PACKAGE.parent.parent / "studies")
"""Where they lie in an installed package, and in a checkout."""


def study_path(study: Path) -> Path:
    """Find the file itself, the study that a run's folder keeps, or the bundled study of a bare name."""
    if (run_copy := study / KEPT_STUDY).is_file():
        return run_copy
    if study.is_file() or study.suffix or len(study.parts) != 1:
        return study
    names = bundled_studies()
    if study.name not in names:
        raise DataError(f"study {study}: no such file, and no bundled study; choose from {', '.join(names)}")
    return names[study.name]


def bundled_studies() -> dict[str, Path]:
    """Name and file of every bundled study."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    return {file.stem: file for file in sorted(folder.glob("*.toml"))} if folder else {}
