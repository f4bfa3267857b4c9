"""The documents of `serving` as Pydantic models, from which OpenAPI and the tools of MCP are described."""

import types
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, create_model

LEFT_OUT = frozenset({"trace"})
"""Parts that documents hold only where they are asked for."""


@cache
def model_of(struct: type[Struct]) -> type[BaseModel]:
    """Describe a struct field by field; JSON holds every field, so that each is required."""
    hints = get_type_hints(struct)
    fields: dict[str, Any] = {
        field.name: (_described(hints[field.name]), Field(alias=field.encode_name))
        for field in msgspec.structs.fields(struct)
        if field.name not in LEFT_OUT
    }
    settings = ConfigDict(populate_by_name=True, title=struct.__name__)
    made: type[BaseModel] = create_model(struct.__name__, __config__=settings, __doc__=struct.__doc__, **fields)
    return made


def _described(kind: Any) -> Any:
    """Replace every struct within a type by its model."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        return model_of(kind)
    origin, parts = get_origin(kind), tuple(_described(part) if part is not ... else ... for part in get_args(kind))
    if origin is None:
        return kind
    if origin in (Union, types.UnionType):
        return Union[parts]  # noqa: UP007  (the parts are known only now)
    return origin[parts]


def listed(struct: type[Struct]) -> Any:
    """Describe a list of structs."""
    return list[model_of(struct)]  # type: ignore[misc]
