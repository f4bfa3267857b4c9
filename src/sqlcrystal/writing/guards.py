"""When a repair applies: a fixed sentence for each failure mode, never written by a model."""

GUARDS = {
    "value-literal": (
        "Apply only when filtering on this column; verify the literal actually exists in the column first."
    ),
    "column-ref": "Apply only when the question means the same attribute; verify which column holds it.",
    "table-ref": "Apply only when the question is about the same entity; verify which table holds it.",
    "join": "Join only the tables whose columns the answer needs; verify that the join keeps every wanted row.",
    "join-condition": "Apply only when joining the same tables; verify the key columns on both sides.",
    "aggregate": "Apply only when the question asks for the same kind of total, count, average or extreme.",
    "group-by": "Add GROUP BY only when the answer is per entity/category.",
    "order-by": "Add ORDER BY only when the question asks for a ranking or an order; verify its direction.",
    "limit": "Add LIMIT only when the question asks for a fixed number of rows.",
    "distinct": "Use DISTINCT only when the question counts or lists different things and rows repeat.",
    "subquery": "Nest a query only when a value must be computed before the rows can be chosen.",
    "set-operation": "Combine queries only when the question asks for one set with, without, or within another.",
    "function-cast": "Apply only when the column is stored in the same form; verify its type and format first.",
    "predicate-logic": "Apply only when the question states the same condition; verify how its parts combine.",
}


def guard(modes: tuple[str, ...]) -> str:
    """The guard of the first mode; empty when the repair has none."""
    return GUARDS[modes[0]] if modes else ""
