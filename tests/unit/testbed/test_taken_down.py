"""A control plane that is taken down by another shell while it starts."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed import bed, binaries, folder, process
from testbed.waiting import eventually


def test_up_says_in_one_sentence_who_ended_it(tmp_path: Path) -> None:
    home, program = tmp_path / "bed", tmp_path / "sleeps"
    program.write_text("#!/bin/sh\necho a line of its log\nexec sleep 60\n")
    program.chmod(0o755)
    found = {component.name: program for component in binaries.COMPONENTS}
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(bed.up, home, found)
        eventually(lambda: "etcd" in dict(process.running(home)), interval=0.01, what="etcd")
        assert bed.down(home) == ["etcd"]
        with pytest.raises(bed.DidNotStart) as failure:
            starting.result(timeout=60)
    assert str(failure.value) == f"somebody else took the control plane in {home} down while it started"
    assert not home.exists()


def test_a_folder_that_is_taken_down_is_ours_until_it_is_gone_and_can_be_claimed_again(tmp_path: Path) -> None:
    home = tmp_path / "bed"
    with folder.claimed(home):
        assert not folder.is_over(home)
        folder.say_over(home)
        assert (folder.is_ours(home), folder.is_over(home)) == (True, True)
    with folder.claimed(home):
        assert not folder.is_over(home)


@pytest.mark.parametrize("marker", [None, "of somebody else"])
def test_nothing_is_said_in_a_folder_that_is_not_ours(tmp_path: Path, marker: str | None) -> None:
    if marker is not None:
        (tmp_path / folder.MARKER).write_text(marker)
    before = {it.name: it.read_text() for it in tmp_path.iterdir()}
    folder.say_over(tmp_path)
    assert {it.name: it.read_text() for it in tmp_path.iterdir()} == before
