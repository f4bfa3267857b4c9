"""The common part of all arms: the questions, their databases, and the oracle that judges every SQL once."""

from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.benchmarks.catalogue import load_asked, with_instances
from sqlcrystal.benchmarks.oracle import GoldOracle
from sqlcrystal.benchmarks.query_log import logged
from sqlcrystal.config import StudyFile
from sqlcrystal.databases import open_database
from sqlcrystal.scoring.judge import check_files
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.study.remembered import RememberedDatabase
from sqlcrystal.types import Question


class World:
    """The benchmark as a study meets it; gold stays in its oracle and comes out as bits."""

    def __init__(self, benchmark: Benchmark, *, check: str, timeout: float) -> None:
        """Look for the database files; each is opened on first use."""
        check_files({name: benchmark.locations[name] for name in benchmark.databases})
        self.benchmark = benchmark
        self.timeout = timeout
        further = self._instances if benchmark.instances else None
        self.oracle = GoldOracle(benchmark.cases, self.database, check=check, instances_of=further)
        self._cases = {case.question.key: case for case in benchmark.cases}
        self._opened: SingleFlight[str, RememberedDatabase] = SingleFlight()
        self._open: list[RememberedDatabase] = []

    @classmethod
    def of(cls, study: StudyFile) -> "World":
        """Open the world that a study file describes."""
        benchmark = with_instances(load_asked(study.asked), study.check, study.rule)
        return cls(benchmark, check=study.check, timeout=study.timeout)

    def database(self, name: str) -> RememberedDatabase:
        """A database by name, opened once."""
        return self._at(self.benchmark.locations[name], name)

    def logged(self, question: Question, share: float) -> str:
        """Give the query that a log holds for a question: its gold, or of a share one that is wrong or stale."""
        return logged(self._cases[question.key], self.database(question.database).dialect, share=share)

    def close(self) -> None:
        """Close every database."""
        for database in self._open:
            database.close()

    def _instances(self, name: str) -> list[RememberedDatabase]:
        """The further instances of a database, which only the oracle asks."""
        return [self._at(location, name) for location in self.benchmark.instances[name]]

    def _at(self, location: str, name: str) -> RememberedDatabase:
        def open_one() -> RememberedDatabase:
            opened = open_database(location, name=name, inspect=False)  # a model writes the SQL
            remembered = RememberedDatabase(opened, timeout=self.timeout)
            self._open.append(remembered)
            return remembered

        return self._opened.get(location, open_one)
