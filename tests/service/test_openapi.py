"""What the OpenAPI document allows or forbids never breaks the server: schemathesis over every operation."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import response_schema_conformance

from running_service import Service, serving

EXAMPLES = 12
"""Of each operation and kind; `docs/reference/server.md` has the command for more."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("openapi")) as running:
        yield running


def document_of(service: Service) -> dict[str, Any]:
    """The document, in which a database, an answer and a card that are there stand beside what may be anything."""
    answer = service.ask()["id"]
    known = {"database": "shop", "answer_id": answer, "card_id": service.crystal.confirm(answer, by="ada").card}
    with service.client() as client:
        document: dict[str, Any] = client.get("/openapi.json").json()
    for operation in (described for path in document["paths"].values() for described in path.values()):
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in known:
                parameter["schema"] = {"anyOf": [{"enum": [known[parameter["name"]]]}, parameter["schema"]]}
    for shape in document["components"]["schemas"].values():
        if "database" in shape.get("properties", {}):
            shape["properties"]["database"] = {"enum": ["shop"]}
    return document


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.filterwarnings("ignore")
def test_no_request_that_the_document_describes_or_forbids_breaks_the_server(
    service: Service, mode: GenerationMode
) -> None:
    schema = schemathesis.openapi.from_dict(document_of(service))
    headers = {"Authorization": f"Bearer {service.tokens['owner']}"}
    met: set[int] = set()
    for parsed in schema.get_all_operations():
        assert isinstance(parsed, Ok)
        operation = parsed.ok()

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def send(case: Any) -> None:
            reply = case.call(base_url=service.url, headers=headers)
            met.add(reply.status_code)
            assert reply.status_code < 500, (case.as_curl_command(), reply.text)
            if reply.status_code < 300:
                case.validate_response(reply, checks=[response_schema_conformance])

        try:
            send()
        except Exception as error:
            if type(error).__name__ not in {"Unsatisfiable", "SkipTest"}:  # nothing to forbid in this operation
                raise
    assert {200, 404} <= met if mode is GenerationMode.POSITIVE else 422 in met


def test_the_document_names_every_route_but_the_pages(service: Service) -> None:
    with service.client() as client:
        paths = client.get("/openapi.json").json()["paths"]
    assert len(paths) > 20
    assert all(path.startswith(("/api/", "/v1/", "/health", "/ready", "/metrics")) for path in paths)
