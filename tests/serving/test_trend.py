"""The lift as it stood after so many verdicts."""

from pathlib import Path

from running_service import ASKED, two_shops
from shop import RIGHT, fenced
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.value import trend


def test_the_last_look_is_what_value_says_today(tmp_path: Path) -> None:
    with two_shops(tmp_path, ScriptedModel(lambda *_: fenced(RIGHT)), hold_out=0.5) as crystal:
        for number in range(40):
            answer = crystal.ask(f"{ASKED} Number {number}?", "shop")
            crystal.confirm(answer, by="ada") if number % 3 else crystal.reject(answer, by="ada", repair=False)
        looks = trend(crystal.store, "shop")
        [value] = crystal.value("shop")
    assert looks[-1].verdicts == 40
    assert round(looks[-1].lift_pp, 2) == value.lift_pp
    assert value.lift_ci_pp == (round(looks[-1].low_pp, 2), round(looks[-1].high_pp, 2))
    assert [look.verdicts for look in looks] == sorted({look.verdicts for look in looks})
