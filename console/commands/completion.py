"""`completion`: a script that lets bash or zsh complete commands, flags, and names from the cluster."""

from __future__ import annotations

from typing import Final

from console.ending import Ending
from console.session import Session

BASH: Final = """\
# Completion of kubectl-spotshift for bash. `kubectl spotshift` is completed by kubectl's own completion, which asks
# kubectl_complete-spotshift if that is on the PATH.
_kubectl_spotshift() {
    local line found
    COMPREPLY=()
    found=$(kubectl-spotshift __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return 0
    while IFS= read -r line; do
        case "$line" in
            :0) compopt -o default 2>/dev/null ;;
            :*) ;;
            *) COMPREPLY+=("${line%%$'\\t'*}") ;;
        esac
    done <<< "$found"
}
complete -F _kubectl_spotshift kubectl-spotshift
"""
ZSH: Final = """\
#compdef kubectl-spotshift
# Completion of kubectl-spotshift for zsh. `kubectl spotshift` is completed by kubectl's own completion, which asks
# kubectl_complete-spotshift if that is on the PATH.
_kubectl_spotshift() {
    local line
    local -a found
    for line in "${(@f)$(kubectl-spotshift __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case "$line" in
            :0) _files ;;
            :*|'') ;;
            *$'\\t'*) found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}") ;;
            *) found+=("${line//:/\\\\:}") ;;
        esac
    done
    (( $#found )) && _describe -V kubectl-spotshift found
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _kubectl_spotshift kubectl-spotshift
"""
SCRIPTS: Final = {"bash": BASH, "zsh": ZSH}


def run(session: Session) -> Ending:
    """Print it."""
    session.out.write(SCRIPTS[session.options.shell])
    return Ending.DONE
