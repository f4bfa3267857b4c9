"""What a PostgreSQL server counted: read behind the guard, by an account that may only read."""

import pytest

from engines import READER, Absent, postgres
from sqlcrystal.databases import open_database
from sqlcrystal.errors import UserError
from sqlcrystal.protocols import Database
from sqlcrystal.querylog.readers import LoggedQuery, Reason, Refused, read_server
from sqlcrystal.querylog.shapes import shapes_of, with_values

# The wheel of the tests has no contrib modules: a view of the same name and columns stands in for the extension's.
COUNTED = f"""
CREATE TABLE counted (dbid oid, query text, calls bigint);
INSERT INTO counted SELECT oid, 'SELECT name FROM player WHERE team_id = $1 LIMIT $2', 70
  FROM pg_database WHERE datname = current_database();
INSERT INTO counted SELECT oid, '<insufficient privilege>', 9 FROM pg_database WHERE datname = current_database();
INSERT INTO counted VALUES (0, 'SELECT elsewhere FROM another_database', 500);
CREATE VIEW pg_stat_statements AS SELECT dbid, query, calls FROM counted;
GRANT SELECT ON pg_stat_statements TO {READER}
"""


def test_the_counts_of_this_database_are_read_and_bound_parameters_get_values_of_their_columns() -> None:
    import psycopg

    try:
        with postgres() as server:
            with psycopg.connect(server.owner, autocommit=True) as connection:
                connection.execute(COUNTED.encode())
            database = open_database(server.reader, name="league", inspect=False)
            try:
                found = list(read_server(database))
                (shape,) = shapes_of(found, "postgres").shapes
                assert found == [
                    LoggedQuery("SELECT name FROM player WHERE team_id = $1 LIMIT $2", 70, "pg_stat_statements"),
                    Refused(Reason.HIDDEN, "pg_stat_statements", 9),
                ]
                assert (shape.bound, shape.uses) == (True, 70)
                assert with_values(shape.sql, database) == "SELECT name FROM player WHERE team_id = 1 LIMIT 10"
            finally:
                database.close()
    except Absent as absent:
        pytest.skip(str(absent))


def test_a_server_without_the_counts_and_another_engine_are_one_line(shop: Database) -> None:
    with pytest.raises(UserError, match="only PostgreSQL keeps it, and shop is sqlite"):
        list(read_server(shop))
