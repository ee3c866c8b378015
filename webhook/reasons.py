"""Every result, every reason to leave a pod alone and every remark on a decision: closed sets with sentences.

The member is the code for metrics and audit annotations, the sentence is for people.
"""

from enum import StrEnum
from typing import Self


class Sentence(StrEnum):
    """A code that knows its sentence."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Self:
        """Keep the sentence beside the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member


class Result(Sentence):
    """How a request ended."""

    PATCHED = "PATCHED", "the pod is changed"
    UNCHANGED = "UNCHANGED", "the pod already has what it should get"
    LEFT_ALONE = "LEFT_ALONE", "the pod is not ours to change"
    PATCH_UNAPPLICABLE = "PATCH_UNAPPLICABLE", "our patch did not apply to the pod, so it was not sent"
    INTERNAL_ERROR = "INTERNAL_ERROR", "our own error; the pod is let through unchanged"
    BAD_REQUEST = "BAD_REQUEST", "the request is not an admission review of a pod"


class Skip(Sentence):
    """Why a pod is left alone."""

    NOT_CREATE = "NOT_CREATE", "only the creation of pods is changed"
    SUBRESOURCE = "SUBRESOURCE", "subresources of pods are not changed"
    OWN_NAMESPACE = "OWN_NAMESPACE", "pods of spotshift itself are not changed"
    EXCLUDED_NAMESPACE = "EXCLUDED_NAMESPACE", "the namespace is kube-system or among excludedNamespaces"
    NAMESPACE_UNKNOWN = "NAMESPACE_UNKNOWN", "the namespace has not been seen yet, so its opt-out is not known"
    DAEMONSET = "DAEMONSET", "the pod of a DaemonSet belongs to its node"
    MIRROR = "MIRROR", "a mirror pod only shows what a kubelet runs"
    NODE_NAME = "NODE_NAME", "the pod has its node already"
    FOREIGN_SCHEDULER = "FOREIGN_SCHEDULER", "another scheduler places the pod, and reads other rules"
    WINDOWS = "WINDOWS", "the pod runs on Windows"
    OPTED_OUT = "OPTED_OUT", "rescheduling is disabled for the pod"
    OBSERVE = "OBSERVE", "the mode is observe, which changes nothing"


class Note(Sentence):
    """What a rule did with a pod, or why it did nothing."""

    SPOT_PREFERRED = "SPOT_PREFERRED", "spot nodes are preferred"
    SPOT_REQUIRED = "SPOT_REQUIRED", "spot nodes are required"
    SPOT_AVOIDED = "SPOT_AVOIDED", "spot nodes are avoided"
    SPOT_TOLERATED = "SPOT_TOLERATED", "the taints of spot nodes are tolerated"
    SPOT_IGNORED = "SPOT_IGNORED", "capacity is left to the pod"
    MIX_SPOT = "MIX_SPOT", "the mix of its workload has it on spot"
    MIX_ON_DEMAND = "MIX_ON_DEMAND", "the mix of its workload has it on on-demand"
    PINNED = "PINNED", "the pod's own rules tie it to one node"
    OWN_CAPACITY_RULE = "OWN_CAPACITY_RULE", "the pod has rules on capacity already, and they stand"
    NO_CAPACITY_LABEL = "NO_CAPACITY_LABEL", "no node carries a label that tells its capacity"
    NO_REQUIRED_TERM = "NO_REQUIRED_TERM", "no term of the pod's required affinity can match a node"
    TOO_MANY_TERMS = "TOO_MANY_TERMS", "the pod's required affinity is too large for the rule to join its terms"
    CLASS_SET = "CLASS_SET", "the tier's PriorityClass is set"
    CLASS_OF_USER = "CLASS_OF_USER", "the pod names a PriorityClass of its own"
    CLASS_MISSING = "CLASS_MISSING", "the tier's PriorityClass does not exist"
    WORKLOAD_UNKNOWN = "WORKLOAD_UNKNOWN", "the workload has not been seen yet, so its annotations do not count"
    REPLACEMENT = "REPLACEMENT", "the pod replaces one that is being moved"
    HINTED = "HINTED", "the target of the move is preferred"
    UNGUIDED = "UNGUIDED", "moves are not guided, or this one has no target"
    ANNOTATIONS_FULL = "ANNOTATIONS_FULL", "the pod's annotations leave no room for ours below the API server's limit"
    KEYS_STRIPPED = "KEYS_STRIPPED", "keys of a move that is not this pod's are removed"
