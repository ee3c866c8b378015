from pathlib import Path

import pytest

from policy.reload import Loaded, Rejected, SettingsFile, Unchanged
from policy.settings import Mode, Settings

HEAD = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n"
OBSERVE = HEAD + "mode: observe\n"
OTHER_PREFIX = OBSERVE + "labelPrefix: example.com/\n"
WORSE = HEAD + "mode: maybe\n"


class Mount:
    """A folder as the kubelet mounts a ConfigMap: file -> ..data/file, ..data -> the newest folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.version = 0
        self.path = root / "policy.yaml"

    def publish(self, text: str) -> None:
        self.version += 1
        folder = self.root / f"..2026_01_07_{self.version}"
        folder.mkdir()
        (folder / "policy.yaml").write_text(text)
        link = self.root / "..data_tmp"
        link.symlink_to(folder.name)
        link.replace(self.root / "..data")
        if not self.path.is_symlink():
            self.path.symlink_to("..data/policy.yaml")


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path)


def test_first_poll_loads_and_the_second_is_quiet(mount: Mount) -> None:
    mount.publish(HEAD)
    file = SettingsFile(mount.path)
    assert file.settings is None
    assert file.poll() == Loaded(Settings())
    assert file.poll() == Unchanged()
    assert file.settings == Settings()


def test_a_swapped_link_is_taken_at_once(mount: Mount) -> None:
    mount.publish(HEAD)
    file = SettingsFile(mount.path)
    file.poll()
    mount.publish(OBSERVE)
    assert file.poll() == Loaded(Settings(mode=Mode.OBSERVE))
    assert file.poll() == Unchanged()


def test_a_swap_to_the_same_content_is_no_change(mount: Mount) -> None:
    mount.publish(HEAD)
    file = SettingsFile(mount.path)
    file.poll()
    mount.publish(HEAD)
    assert file.poll() == Unchanged()


def test_a_bad_version_keeps_the_old_one_and_is_told_once(mount: Mount) -> None:
    mount.publish(OBSERVE)
    file = SettingsFile(mount.path)
    file.poll()
    mount.publish(WORSE)
    rejected = file.poll()
    assert isinstance(rejected, Rejected)
    assert [mistake.path for mistake in rejected.mistakes] == ["mode"]
    assert file.settings == Settings(mode=Mode.OBSERVE)
    assert file.mistakes == rejected.mistakes
    assert file.poll() == Unchanged()
    mount.publish(HEAD)
    assert file.poll() == Loaded(Settings())
    assert file.mistakes == ()


def test_another_prefix_takes_a_restart(mount: Mount) -> None:
    """What is marked under the one in force has to be found and taken back under it."""
    mount.publish(HEAD)
    file = SettingsFile(mount.path)
    file.poll()
    mount.publish(OTHER_PREFIX)
    rejected = file.poll()
    assert isinstance(rejected, Rejected)
    (mistake,) = rejected.mistakes
    assert str(mistake).startswith(
        "labelPrefix: 'example.com/' is not accepted, use 'scheduler.alpha.kubernetes.io/'"
    )
    assert "restart" in mistake.hint
    assert file.settings == Settings(), "nothing of that version is in force"
    mount.publish(OBSERVE)
    assert file.poll() == Loaded(Settings(mode=Mode.OBSERVE))
    mount.publish(OTHER_PREFIX)
    again = SettingsFile(mount.path)
    assert again.poll() == Loaded(Settings(mode=Mode.OBSERVE, label_prefix="example.com/"))


def test_going_back_after_a_bad_version_clears_the_mistakes(mount: Mount) -> None:
    mount.publish(OBSERVE)
    file = SettingsFile(mount.path)
    file.poll()
    mount.publish(WORSE)
    file.poll()
    mount.publish(OBSERVE)
    assert file.poll() == Loaded(Settings(mode=Mode.OBSERVE))
    assert file.mistakes == ()


def test_a_file_written_in_place_is_taken_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD)
    file = SettingsFile(path)
    file.poll()
    half, rest = OBSERVE + "max", "ReschedulePods: 3\n"
    with path.open("w") as writing:
        writing.write(half)
        writing.flush()
        assert file.poll() == Unchanged()
        writing.write(rest)
        writing.flush()
        assert file.poll() == Unchanged()
    assert file.poll() == Loaded(Settings(mode=Mode.OBSERVE, max_reschedule_pods=3))


def test_half_a_document_that_is_valid_by_itself_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "maxReschedulePods: 5\n")
    file = SettingsFile(path)
    file.poll()
    path.write_text(HEAD)
    assert file.poll() == Unchanged()
    path.write_text(OBSERVE)
    assert file.poll() == Unchanged()
    assert file.poll() == Loaded(Settings(mode=Mode.OBSERVE))


def test_a_file_made_anew_and_then_filled_is_taken_when_it_is_complete(tmp_path: Path) -> None:
    """As some editors do: the old file removed, a new one made, written in two steps; each half is a document."""
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "maxReschedulePods: 5\n")
    file = SettingsFile(path)
    file.poll()
    held = path.rename(tmp_path / "policy.yaml~")  # keeps its inode from being used again
    assert file.poll() == Unchanged(), "gone, but perhaps only for a moment"
    with path.open("w") as writing:
        writing.write(HEAD)
        writing.flush()
        assert file.poll() == Unchanged()
        writing.write("mode: observe\n")
        writing.flush()
        assert file.poll() == Unchanged()
    assert file.settings == Settings(max_reschedule_pods=5)
    assert file.poll() == Loaded(Settings(mode=Mode.OBSERVE))
    held.unlink()


def test_another_file_with_the_same_bytes_is_looked_at_twice(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD)
    file = SettingsFile(path)
    file.poll()
    path.write_text(OBSERVE)
    assert file.poll() == Unchanged()
    other = tmp_path / "other"
    other.write_text(OBSERVE)
    other.replace(path)
    assert file.poll() == Unchanged()
    assert file.poll() == Loaded(Settings(mode=Mode.OBSERVE))


def test_a_file_replaced_by_rename_is_taken_with_the_second_look(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD)
    file = SettingsFile(path)
    file.poll()
    other = tmp_path / "policy.yaml.new"
    other.write_text(OBSERVE)
    other.replace(path)
    assert file.poll() == Unchanged()
    assert file.poll() == Loaded(Settings(mode=Mode.OBSERVE))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param(b"\xff\xfe", "UTF-8", id="not UTF-8"),
        pytest.param(b"a" * 300_000, "at most 262144 bytes", id="too large"),
        pytest.param(b"", "a mapping", id="empty"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "policy.yaml"
    if content is not None:
        path.write_bytes(content)
    file = SettingsFile(path)
    rejected = file.poll()
    assert isinstance(rejected, Rejected)
    assert told in str(rejected.mistakes[0])
    assert file.settings is None


def test_a_file_that_goes_away_and_comes_back(mount: Mount) -> None:
    mount.publish(OBSERVE)
    file = SettingsFile(mount.path)
    file.poll()
    mount.path.unlink()
    assert file.poll() == Unchanged()
    assert isinstance(file.poll(), Rejected)
    assert file.settings == Settings(mode=Mode.OBSERVE)
    assert file.poll() == Unchanged()
    mount.publish(HEAD)
    assert file.poll() == Unchanged()
    assert file.poll() == Loaded(Settings())
