"""A settings document to `Settings`, or all its mistakes at once; and back to YAML."""

import re
from typing import Any, Final

from policy import convert, documents, keys, names, settings_rules
from policy.documents import Plain
from policy.mistakes import InvalidSettings, Mistake, at
from policy.settings import API_VERSION, KIND, Settings

# Arguments written for a scheduler plugin keep working: they stand in that plugin's entry, under this name.
PLUGIN: Final = "Rescheduler"
PLUGIN_KIND: Final = "KubeSchedulerConfiguration"
# The whole object instead of the document in it is what `kubectl get -o yaml` gives.
HOLDER: Final = "ConfigMap"
TAKEN_OUT: Final = (
    f"kubectl -n {names.NAMESPACE} get configmap {names.SETTINGS} "
    "-o go-template='{{index .data \"" + names.SETTINGS_KEY + "\"}}' prints it"
)
_ENVELOPE: Final = ("apiVersion", "kind")
_PREFIX: Final = "labelPrefix"
_SAID: Final = re.compile(rf"^[^#\n]*{_PREFIX}", re.MULTILINE)
"""In a text that cannot be read as settings: whether it says something of the prefix, comments aside."""


def load(text: str) -> Settings:
    """The settings a document asks for; raises one `InvalidSettings` that carries every mistake."""
    document, malformed = documents.read(text)
    mistakes = list(malformed)
    if document is None and mistakes:
        raise InvalidSettings(mistakes)
    path, body = _body(document, mistakes)
    settings: Settings | None = convert.from_plain(Settings, body, path, mistakes)
    if settings is not None:
        wrong = [mistake.path.removeprefix(path).lstrip(".") for mistake in mistakes]
        mistakes.extend(_under(path, settings_rules.check(settings, wrong)))
    if mistakes or settings is None:
        raise InvalidSettings(mistakes)
    return settings


def standing_in(text: str) -> Settings:
    """The defaults under the prefix that a document with mistakes asks for, by which our marks are found whatever
    else is wrong with it. Raises `InvalidSettings` where that cannot be told: nobody may mark or sweep by a guess.
    """
    document, malformed = documents.read(text)
    mistakes = list(malformed)
    path, body = _body(document, mistakes)
    wrong = [it for it in mistakes if it.path == at(path, _PREFIX)]  # a second one
    plain = body if isinstance(body, dict) else {}
    if not plain and _SAID.search(text):
        wrong.append(Mistake(_PREFIX, "a value in a document that cannot be read", keys.PREFIX_FORMAT))
    given = {_PREFIX: plain[_PREFIX]} if _PREFIX in plain else {}
    found: Settings = convert.from_plain(Settings, given, path, wrong)
    if wrong:
        raise InvalidSettings(wrong)
    return found


def dump(settings: Settings) -> str:
    """The settings in effect as a document that `load` reads back to an equal value."""
    return documents.write({"apiVersion": API_VERSION, "kind": KIND, **convert.to_plain(settings)})


def _body(document: Plain, mistakes: list[Mistake]) -> tuple[str, Plain]:
    """Where the settings stand in the document, and they themselves."""
    if not isinstance(document, dict):
        shown = "an empty document" if document is None else convert.shown(document)
        mistakes.append(Mistake("", shown, f"a mapping with kind: {KIND}"))
        return "", {}
    if document.get("kind") == HOLDER:
        accepted = f"the text that stands in it under {names.SETTINGS_KEY}, which has kind: {KIND}"
        mistakes.append(Mistake("kind", f"'{HOLDER}'", accepted, TAKEN_OUT))
        return "", {}
    if document.get("kind") == PLUGIN_KIND:
        return _plugin_arguments(document, mistakes)
    if "pluginConfig" in document:
        mistakes.extend(_beside_plugin(document))
        return _plugin_arguments(document, mistakes)
    for key, wanted in zip(_ENVELOPE, (API_VERSION, KIND), strict=True):
        given = document.get(key)
        if given != wanted:
            shown = "nothing" if given is None else convert.shown(given)
            mistakes.append(Mistake(key, shown, f"'{wanted}'"))
    return "", _without_envelope(document)


def _plugin_arguments(document: dict[str, Plain], mistakes: list[Mistake]) -> tuple[str, Plain]:
    found = [*_entries("", document)]
    profiles = document.get("profiles")
    for number, profile in enumerate(profiles if isinstance(profiles, list) else []):
        found += _entries(at("profiles", number), profile)
    if len(found) != 1:
        value = f"{len(found)} entries named {PLUGIN}"
        mistakes.append(Mistake("pluginConfig", value, f"exactly one, with name: {PLUGIN}"))
        return "", {}
    path, arguments = found[0]
    return path, _without_envelope(arguments) if isinstance(arguments, dict) else arguments


def _beside_plugin(document: dict[str, Plain]) -> list[Mistake]:
    """Outside a scheduler's own file nothing else may stand beside the plugin: it would be passed over."""
    kind = document.get("kind", KIND)
    mistakes = [] if kind == KIND else [Mistake("kind", convert.shown(kind), f"'{KIND}' or '{PLUGIN_KIND}'")]
    beside = [key for key in document if key not in {*_ENVELOPE, "pluginConfig"}]
    return mistakes + [Mistake(key, "a key beside pluginConfig", "only one of the two") for key in beside]


def _entries(path: str, holder: Plain) -> list[tuple[str, Plain]]:
    entries: Any = holder.get("pluginConfig") if isinstance(holder, dict) else None
    return [
        (at(at(at(path, "pluginConfig"), number), "args"), entry.get("args"))
        for number, entry in enumerate(entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and entry.get("name") == PLUGIN
    ]


def _without_envelope(mapping: dict[str, Plain]) -> dict[str, Plain]:
    return {key: value for key, value in mapping.items() if key not in _ENVELOPE}


def _under(path: str, mistakes: tuple[Mistake, ...]) -> tuple[Mistake, ...]:
    if not path:
        return mistakes
    return tuple(Mistake(at(path, it.path), it.value, it.accepted, it.hint) for it in mistakes)
