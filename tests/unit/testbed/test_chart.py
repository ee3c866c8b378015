"""From kustomize's objects to a chart: conditions of switches, values in their places, braces that are not Helm's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import chart, chart_files, templating
from testbed.api import Object


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def workload(kind: str, component: str, **pod: Any) -> Object:
    container = {
        "name": "main",
        "image": "spotshift:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "1m"}},
    }
    template = {
        "metadata": {"labels": {templating.COMPONENT: component}},
        "spec": {"containers": [container], **pod},
    }
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": f"spotshift-{component}"},
        "spec": {"replicas": 2, "template": template},
    }


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    for name in ("delete", "cert-manager", "more"):
        folder = tmp_path / "components" / name
        folder.mkdir(parents=True)
        (folder / "kustomization.yaml").write_text(f"# About {name}.\n# More.\nkind: Component\n")
    return tmp_path


def rendered(resources: Sequence[Path], components: Sequence[Path]) -> list[Object]:
    """Two components change `shared`; one adds an object, which a third one changes; nothing touches `plain`."""
    on = {path.name for path in components}
    if resources[0].name == chart.CLEANUP:
        return [workload("Job", "cleanup")]
    found = [
        {"kind": "Namespace", "metadata": {"name": "spotshift-system"}},
        workload("Deployment", "webhook", priorityClassName="high"),
        config_map("plain", text="{{ $value }}"),
        config_map("shared", on=" ".join(sorted(on - {"more"}))),
    ]
    return [*found, *([config_map("added", more=str("more" in on))] if "delete" in on else [])]


@pytest.fixture
def made(manifests: Path) -> dict[str, str]:
    return chart.files(manifests, "1.2.3", rendered)


def test_conditions_of_switches(made: dict[str, str]) -> None:
    text = made["templates/configmap.yaml"]
    assert [line for line in text.splitlines() if "if" in line] == [
        "{{- if and .Values.components.delete (not .Values.components.more) }}",
        "{{- if and .Values.components.delete .Values.components.more }}",
        "{{- if and (not .Values.components.certManager) (not .Values.components.delete) }}",
        "{{- if and .Values.components.certManager (not .Values.components.delete) }}",
        "{{- if and (not .Values.components.certManager) .Values.components.delete }}",
        "{{- if and .Values.components.certManager .Values.components.delete }}",
    ]
    assert text.count("{{- end }}") == 6
    assert not any("namespace" in path for path in made), "Helm needs the namespace before the chart"


def test_braces_of_an_object_are_not_helms(made: dict[str, str]) -> None:
    assert """text: '{{ "{{" }} $value {{ "}}" }}'""" in made["templates/configmap.yaml"]


def test_values_stand_where_they_belong(made: dict[str, str]) -> None:
    text = made["templates/deployment.yaml"]
    assert "\n  replicas: {{ .Values.webhook.replicas }}\n" in text
    assert (
        "\n      {{- with .Values.priorityClassName }}\n      priorityClassName: {{ . }}\n      {{- end }}\n" in text
    )
    assert "\n        resources:\n          {{- toYaml .Values.webhook.resources | nindent 10 }}\n" in text
    assert "HELM" not in text
    hook = made["templates/cleanup.yaml"]
    assert hook.startswith("{{- if .Values.cleanup.enabled }}\n")
    assert "helm.sh/hook: pre-delete" in hook
    assert "replicas: 2" in hook, "only a Deployment has a value for them"


def test_values_and_what_they_accept(made: dict[str, str]) -> None:
    text = made["values.yaml"]
    assert "  # About cert-manager.\n  # More.\n  certManager: false\n" in text
    values, schema = yaml.safe_load(text), yaml.safe_load(made["values.schema.json"])
    assert values["webhook"] == {"replicas": 2, "resources": {"requests": {"cpu": "1m"}}}
    assert (values["image"]["repository"], values["priorityClassName"]) == ("spotshift", "high")
    assert schema["additionalProperties"] is False
    assert schema["properties"]["components"]["properties"] == {
        "certManager": {"type": "boolean"},
        "delete": {"type": "boolean"},
        "more": {"type": "boolean"},
    }
    assert schema["properties"]["settings"] == {"type": "object"}
    assert yaml.safe_load(made["Chart.yaml"])["appVersion"] == "1.2.3"


def test_settings_can_be_added_to() -> None:
    text = templating.template(config_map(templating.SETTINGS, **{"settings.yaml": "kind: Policy\n"}))
    assert text.endswith(
        "  settings.yaml: |\n    kind: Policy\n    {{- with .Values.settings }}\n"
        "    {{- toYaml . | nindent 4 }}\n    {{- end }}\n"
    )


def test_a_workload_with_two_containers_is_refused() -> None:
    made = workload("Deployment", "webhook")
    made["spec"]["template"]["spec"]["containers"] *= 2
    with pytest.raises(templating.Unsuited, match="Deployment spotshift-webhook has 2 containers"):
        templating.template(made)


def test_the_folder_holds_what_was_written(tmp_path: Path) -> None:
    for name in ("old.yaml", *chart.BY_HAND):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    chart.write(tmp_path, {"templates/new.yaml": "x"})
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"templates/new.yaml", *chart.BY_HAND}


def test_generated_files_say_so(made: dict[str, str]) -> None:
    assert all(made[name].startswith(chart_files.GENERATED) for name in ("Chart.yaml", "values.yaml"))
