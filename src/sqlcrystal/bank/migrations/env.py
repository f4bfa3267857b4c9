"""What Alembic runs: the steps, in the transaction of whoever opens the store."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
