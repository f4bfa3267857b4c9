"""What all arms of a study share: the questions, their databases, and the oracle that judges every SQL once."""

from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.benchmarks.oracle import GoldOracle
from sqlcrystal.databases import open_database
from sqlcrystal.scoring.judge import check_files
from sqlcrystal.single_flight import SingleFlight
from sqlcrystal.study.remembered import RememberedDatabase


class World:
    """The benchmark as a study meets it; gold stays in its oracle and comes out as bits."""

    def __init__(self, benchmark: Benchmark, *, check: str, timeout: float) -> None:
        """Look for the database files; each is opened on first use."""
        check_files({name: benchmark.locations[name] for name in benchmark.databases})
        self.benchmark = benchmark
        self.timeout = timeout
        self.oracle = GoldOracle(benchmark.cases, self.database, check=check)
        self._opened: SingleFlight[str, RememberedDatabase] = SingleFlight()
        self._names: set[str] = set()

    def database(self, name: str) -> RememberedDatabase:
        """A database by name, opened once."""

        def open_one() -> RememberedDatabase:
            opened = open_database(self.benchmark.locations[name], name=name, inspect=False)  # a model writes the SQL
            self._names.add(name)
            return RememberedDatabase(opened, timeout=self.timeout)

        return self._opened.get(name, open_one)

    def close(self) -> None:
        """Close every database."""
        for name in self._names:
            self.database(name).close()
