"""What every importer has to do: inherit ImporterConformance in a test class and give it `make` and `write`."""

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from hops.diagnose.detect import detect
from hops.importers.base import Imported, Importer
from hops.metrics.audit import audit
from hops.metrics.iterations import Iterations
from hops.metrics.summary import RunFacts
from hops.program.lowering import check
from hops.trace.files import read_events, write_events


class ImporterConformance(ABC):
    """The tests that every importer passes. Name the subclass `Test...` so that pytest finds it."""

    @abstractmethod
    def make(self) -> Importer:
        """The importer."""

    @abstractmethod
    def write(self, folder: Path) -> Path:
        """Write into the folder a sound run of two iterations or more, and give what the importer shall read."""

    def read(self, folder: Path) -> Imported:
        """The run that `write` wrote."""
        return self.make().read(self.write(folder))

    def test_it_recognises_its_own_runs(self, tmp_path: Path) -> None:
        assert self.make().recognises(self.write(tmp_path))

    def test_it_recognises_neither_an_empty_folder_nor_an_empty_file(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "empty.csv").write_text("")
        assert not self.make().recognises(tmp_path / "folder")
        assert not self.make().recognises(tmp_path / "empty.csv")

    def test_nothing_of_a_sound_run_is_dropped(self, tmp_path: Path) -> None:
        path = self.write(tmp_path)
        strict, lenient = (self.make().read(path, lenient=lenient) for lenient in (False, True))
        assert dict(lenient.dropped) == {}
        assert strict.trace == lenient.trace

    def test_setting_clocks_back_keeps_the_order_of_every_rank(self, tmp_path: Path) -> None:
        path = self.write(tmp_path)
        plain, set_back = (self.make().read(path, align_clocks=each).trace for each in (False, True))
        assert detect(set_back).program == detect(plain).program
        np.testing.assert_array_equal(np.sort(set_back.duration_ns), np.sort(plain.duration_ns))

    def test_time_starts_at_zero(self, tmp_path: Path) -> None:
        assert int(self.read(tmp_path).trace.start_ns.min()) == 0

    def test_every_iteration_runs_one_order_that_can_run(self, tmp_path: Path) -> None:
        found = detect(self.read(tmp_path).trace)
        assert found.others == ()
        check(found.program)

    def test_the_trace_can_be_audited_and_its_critical_paths_fill_it(self, tmp_path: Path) -> None:
        run = Iterations.of(self.read(tmp_path).trace, RunFacts())
        spent = audit(run).paths.spent_ns.sum(axis=1)
        np.testing.assert_array_equal(spent, run.end_ns - run.start_ns)

    def test_the_trace_survives_a_file_of_raw_events(self, tmp_path: Path) -> None:
        trace = self.read(tmp_path).trace
        write_events(trace, tmp_path / "events.csv")
        assert read_events(tmp_path / "events.csv") == trace
