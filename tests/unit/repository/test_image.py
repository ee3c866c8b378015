"""The image holds every program and nothing else. It cannot be built where there are no containers; what can be read
is checked here."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
NOT_SHIPPED = {"bench", "testbed", "tests"}
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_every_program_gets_into_the_image() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert lines[lines.index("*") - 1].startswith("#"), "everything is left out first"
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    programs = {path.parent.name for path in ROOT.glob("*/__init__.py")} - NOT_SHIPPED
    assert programs <= kept
    assert not kept & NOT_SHIPPED


def test_the_image_runs_as_who_the_manifests_ask_for() -> None:
    user = re.search(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    assert user is not None
    for path in (ROOT / "manifests").rglob("*.yaml"):
        if "chart" in path.parts:
            continue
        for document in yaml.safe_load_all(path.read_text()):
            if document and document.get("kind") in ("Deployment", "Job") and "examples" not in path.parts:
                asked = document["spec"]["template"]["spec"]["securityContext"]
                assert (asked["runAsUser"], asked["runAsGroup"]) == (int(user[1]), int(user[2])), path


def test_packages_are_pinned_by_hash_and_the_base_by_version() -> None:
    assert "--require-hashes" in DOCKERFILE
    assert re.search(r"^ARG BASE=\S+:\d+\.\d+\.\d+-", DOCKERFILE, re.MULTILINE)
    assert len(re.findall(r"^FROM \$\{BASE\}", DOCKERFILE, re.MULTILINE)) == 2


def test_one_version_everywhere() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    named = {
        image
        for path in (ROOT / "manifests").rglob("*.yaml")
        if not {"chart", "examples"} & set(path.parts)
        for image in re.findall(r"image: (spotshift\S*)", path.read_text())
    }
    assert named == {f"spotshift:{version[1]}"}
