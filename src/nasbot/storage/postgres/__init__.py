"""Studies in a PostgreSQL database, for drivers on several machines; needs psycopg (``nasbot[postgres]``)."""
