"""Progress is one table on standard error, silent unless asked for, and loses no last line."""

import io
import sys
import types

import pytest

from convexkernels.clock import Clock
from convexkernels.progress import Line, Silent, Table, as_progress
from convexkernels.solution import Record

RECORDS = [Record(k, 2.0 + 2.0**-k, 2.0 - 2.0**-k, 0.25 * k) for k in range(4)]


def run(progress):
    progress.start("learning")
    for record in RECORDS:
        progress.record(record)
    progress.finish("done")


def test_table_shows_every_number_of_every_record():
    stream = io.StringIO()
    run(Table(stream))
    title, header, *rows, end = stream.getvalue().splitlines()
    assert (title, end) == ("learning", "done")
    assert header.split() == ["iter", "upper", "lower", "rel.", "gap", "time", "left"]
    assert len(rows) == len(RECORDS)
    for row, record in zip(rows, RECORDS, strict=True):
        iteration, upper, lower, gap, seconds = row.split()
        assert int(iteration) == record.iteration
        assert float(upper) == pytest.approx(record.upper)
        assert float(lower) == pytest.approx(record.lower)
        assert float(gap) == pytest.approx(record.relative_gap, rel=1e-2)
        assert float(seconds.removesuffix("s")) == pytest.approx(record.seconds)


def test_columns_line_up():
    stream = io.StringIO()
    table = Table(stream)
    run(table)
    table.record(Record(123456, -1.23456789e-100, float("-inf"), 1234.5))
    widths = {len(line) for line in stream.getvalue().splitlines()[1:-2]}
    assert len(widths) == 1


def test_seldom_lines_keep_the_first_and_the_last():
    stream = io.StringIO()
    run(Table(stream, every=3600.0))
    rows = stream.getvalue().splitlines()[2:-1]
    assert [int(row.split()[0]) for row in rows] == [0, 3]


def test_a_table_can_be_used_again():
    stream = io.StringIO()
    table = Table(stream, every=3600.0)
    run(table)
    once = stream.getvalue()
    run(table)
    assert stream.getvalue() == 2 * once


def test_notes_appear_in_their_place():
    stream = io.StringIO()
    table = Table(stream)
    table.start("learning")
    table.note("compiling")
    table.record(RECORDS[0])
    lines = stream.getvalue().splitlines()
    assert lines.index("compiling") == 1, "and the head of the table comes with its first line"


def test_a_search_without_bounds_has_no_head_of_a_table():
    stream = io.StringIO()
    table = Table(stream)
    table.start("searching")
    table.note("50 %")
    table.finish("done")
    assert stream.getvalue().splitlines() == ["searching", "50 %", "done"]


def test_the_time_that_is_left_follows_from_how_fast_the_gap_closes():
    stream = io.StringIO()
    table = Table(stream)
    table.tol = 1e-6
    table.start("learning")
    for k in range(3):  # a digit in two seconds
        table.record(Record(k, 1.0, 1.0 - 10.0**-k / 10, 2.0 * k))
    left = [line.split()[5:] for line in stream.getvalue().splitlines()[2:]]
    assert left == [[], ["~8.0s"], ["~6.0s"]]


def test_a_notebook_gets_one_line_and_a_file_few(monkeypatch, capsys):
    table = as_progress(True)
    assert table.every > 0.0  # standard error is captured here: nobody watches
    stream = io.StringIO()
    line = Line(stream)
    run(line)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("\rdone" + " " * (line._width - 4) + "\n")
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    assert isinstance(as_progress(True), Line)


def test_silence_is_the_default_and_standard_error_the_stream(capsys):
    run(as_progress(False))
    assert capsys.readouterr() == ("", "")
    run(as_progress(True))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("learning\n")


def test_an_object_passes_through():
    for progress in (Silent(), Table(io.StringIO())):
        assert as_progress(progress) is progress


def test_work_beyond_its_limit_has_no_time_left():
    said = []

    class Listener(Silent):
        def note(self, message):
            said.append(message)

    clock = Clock(1.0, Listener())  # which may have to say that it compiles
    clock.began -= 5.0
    clock.tell(0.4, "step 3", now=True)
    assert said[-1:] == ["100.0 %, step 3, 5 s so far, about 0 s left"]
