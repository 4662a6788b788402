"""Consistency check of a SQLite store, by SQL alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

NOTHING_WRONG: list[str] = []


def audit(path: Path) -> list[str]:
    """Everything that is wrong with the file."""
    with closing(sqlite3.connect(path)) as connection:
        return [problem for problem, sql in _QUESTIONS.items() if connection.execute(sql).fetchone()[0]]


_QUESTIONS = {
    "the file is damaged": "SELECT integrity_check <> 'ok' FROM pragma_integrity_check",
    "the journal has gaps": "SELECT count(*) <> ifnull(max(revision) - min(revision) + 1, 0) FROM journal",
    "a resource is not as the journal last showed it": """
        SELECT count(*) FROM resources r WHERE r.revision >= (SELECT min(revision) FROM journal) AND NOT EXISTS (
            SELECT 1 FROM journal j WHERE j.revision = r.revision AND j.change <> 'deleted' AND j.uid = r.uid
            AND j.metadata = r.metadata AND j.status = r.status AND j.body = r.body)""",
    "the journal shows a resource that is not there": """
        SELECT count(*) FROM journal j WHERE j.change <> 'deleted'
        AND NOT EXISTS (SELECT 1 FROM journal k WHERE k.uid = j.uid AND k.revision > j.revision)
        AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.uid = j.uid AND r.revision = j.revision)""",
    "a resource outlived its deletion": """
        SELECT count(*) FROM journal j JOIN resources r ON r.uid = j.uid WHERE j.change = 'deleted'""",
    "something points to a body that is not there": """
        SELECT count(*) FROM (SELECT body FROM resources UNION SELECT body FROM journal
            UNION SELECT was_body FROM journal WHERE was_body IS NOT NULL)
        WHERE body NOT IN (SELECT id FROM bodies)""",
    "a body stayed behind that nothing points to": """
        SELECT count(*) FROM bodies WHERE ifnull(superseded, 0) < (SELECT min(revision) FROM journal) AND id NOT IN (
            SELECT body FROM resources UNION SELECT body FROM journal
            UNION SELECT was_body FROM journal WHERE was_body IS NOT NULL)""",
    "a body in use counts as superseded": """
        SELECT count(*) FROM resources r JOIN bodies b ON b.id = r.body WHERE b.superseded IS NOT NULL""",
}
