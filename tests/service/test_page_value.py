"""The page Value: measuring is switched by one click, by those who manage the database."""

import re

from running_service import Service

WAY = re.compile(r'<li class="panel( chosen)?"><h4>([^<]+?)\s*(?:<|$)', re.M)


def ways(page: str) -> dict[str, bool]:
    return {name.strip(): bool(chosen) for chosen, name in WAY.findall(page)}


def test_one_click_switches_the_comparison_on_and_says_what_it_costs_and_when_it_tells(service: Service) -> None:
    service.ask()
    with service.client("manage", follow_redirects=True) as client:
        before = client.get("/value?database=shop").text
        assert ways(before) == {"Off": True, "Hold out one in five": False, "Ask both ways": False}
        assert "Costs: twice the calls" in before
        assert "after about 590 verdicts" in before
        form = {"database": "shop", "kind": "hold-out"}
        after = client.post("/value/measure", data=form, headers={"Origin": service.url})
    assert after.status_code == 200
    assert ways(after.text) == {"Off": False, "Hold out one in five": True, "Ask both ways": False}
    assert "Chosen by manage" in after.text


def test_who_judges_sees_how_it_is_measured_and_cannot_switch_it(service: Service) -> None:
    service.ask()
    with service.client("judge") as client:
        page = client.get("/value?database=shop").text
        form = {"database": "shop", "kind": "both"}
        refused = client.post("/value/measure", data=form, headers={"Origin": service.url})
    assert "Hold out one in five" in page
    assert "Switch on" not in page
    assert refused.status_code == 403
