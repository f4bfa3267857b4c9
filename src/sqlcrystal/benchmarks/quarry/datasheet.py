"""The part of Quarry's datasheet that is counted, not written: composition and conventions."""

from collections import Counter
from collections.abc import Iterator

from sqlcrystal.benchmarks.quarry import DIFFICULTIES, build, names
from sqlcrystal.benchmarks.quarry.check import Review, review


def render() -> str:
    """Markdown tables of what every database holds and which conventions its questions need."""
    return "\n".join(_lines([review(name) for name in names()]))


def _lines(reviews: list[Review]) -> Iterator[str]:
    levels = ", ".join(DIFFICULTIES)
    yield f"| database | domain | tables | rows | KB | questions | {levels} | hinted | hidden | empty |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for reviewed in reviews:
        yield _row(reviewed.name, build.blueprint(reviewed.name).domain, [reviewed])
    yield _row("**all**", "", reviews)
    for reviewed in reviews:
        used = Counter(tag for finding in reviewed.findings for tag in finding.entry.conventions)
        yield f"\n**{reviewed.name}**\n"
        for tag, sentence in build.blueprint(reviewed.name).conventions.items():
            yield f"- `{tag}` ({used[tag]} questions): {sentence}"


def _row(name: str, domain: str, reviews: list[Review]) -> str:
    questions = [finding.entry for reviewed in reviews for finding in reviewed.findings]
    levels = Counter(entry.difficulty for entry in questions)
    cells = (
        name,
        domain,
        sum(len(reviewed.tables) for reviewed in reviews),
        f"{sum(sum(reviewed.tables.values()) for reviewed in reviews):,}",
        f"{sum(reviewed.bytes for reviewed in reviews) // 1000:,}",
        len(questions),
        ", ".join(str(levels[level]) for level in DIFFICULTIES),
        sum(bool(entry.evidence) for entry in questions),
        sum(bool(entry.conventions) and not entry.evidence for entry in questions),
        sum(entry.empty for entry in questions),
    )
    return "| " + " | ".join(map(str, cells)) + " |"
