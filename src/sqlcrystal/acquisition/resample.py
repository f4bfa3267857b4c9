"""T1: resample with zero feedback."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from sqlcrystal.acquisition.repair import Repair, clip
from sqlcrystal.solving.extract import extract_sql
from sqlcrystal.types import Attempt, Round

TEMPERATURE = 0.8


class Resample(Repair):
    """Asks the very prompt of the first attempt again, one sample a round."""

    name: ClassVar[str] = "T1"

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """One more sample of the solve prompt; its index tells recordings apart."""
        sampling = replace(attempt.call.sampling, temperature=TEMPERATURE, index=len(past) + 1)
        call = self.ask("sample", attempt.call.messages, sampling)
        sql = extract_sql(call.completion.text)
        return Round(calls=(call,), sql=sql, execution=clip(self.run(sql)))
