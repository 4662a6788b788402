"""Completion in bash, by the line as it stands. Bash splits words at `=` and `:`, too: of `state=fai` the script of
click sees `fai` alone.
"""

import os
from typing import ClassVar

from click.shell_completion import BashComplete, add_completion_class, split_arg_string

# No shell passes it on.
_CURSOR = "\0"
_SCRIPT = r"""%(complete_func)s() {
    local type value number cut="" word=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:COMP_POINT}
    local last=${line##*[[:space:]]}

    # Unless the word is quoted, bash replaces what follows the last of these characters.
    if [[ $last == *[=:]* && $word != [\'\"]* ]]; then
        cut=${last%%"${last##*[=:]}"}
        # `--option=` is no part of what is completed.
        [[ $cut == --*=* ]] && cut=${cut#*=}
    fi

    while IFS=, read -r type value; do
        if [[ $type == dir ]]; then
            compopt -o dirnames
        elif [[ $type == file ]]; then
            compopt -o default
        elif [[ $type == plain && $word == [\'\"]* ]]; then
            COMPREPLY+=("$value")
        elif [[ $type == plain ]]; then
            printf -v value %%q "${value#"$cut"}"
            COMPREPLY+=("$value")
        fi
    done < <(env COMP_LINE="$line" %(complete_var)s=bash_complete "$1")

    # A word that is to go on has no space after it.
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=./] ]]; then
        compopt -o nospace
    fi
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class BashLineComplete(BashComplete):
    """Completes the word that the cursor is in, of the line that bash passes on."""

    source_template: ClassVar[str] = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """See ShellComplete: the words before, and the word that is begun. Its quote may still be open."""
        _, *words, last = split_arg_string(os.environ["COMP_LINE"] + _CURSOR)
        return words, last.removesuffix(_CURSOR)


def use_own_script() -> None:
    """Has click complete in bash by the script here, instead of its own."""
    add_completion_class(BashLineComplete)
