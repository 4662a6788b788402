"""What bash and zsh do when a word is to be completed. The scripts of click lose what stands before an equals sign, and
put a space after a word that is to go on.
"""

import os
from typing import ClassVar

from click.shell_completion import BashComplete, ZshComplete, add_completion_class, split_arg_string

# No shell passes it on.
_CURSOR = "\0"
# Bash splits words at `=` and `:`, too: of `state=fai` it completes `fai` alone.
_BASH = r"""%(complete_func)s() {
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
_ZSH = r"""#compdef %(prog_name)s

%(complete_func)s() {
    local type value description
    local -a whole begun described

    (( $+commands[%(prog_name)s] )) || return 1
    env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete %(prog_name)s \
    | while IFS= read -r type && IFS= read -r value && IFS= read -r description; do
        if [[ $type == dir ]]; then
            _path_files -/
        elif [[ $type == file ]]; then
            _path_files -f
        elif [[ $type == plain && $description != _ ]]; then
            described+=("$value:$description")
        elif [[ $type == plain && $value == *[=./] ]]; then
            begun+=("$value")
        elif [[ $type == plain ]]; then
            whole+=("$value")
        fi
    done

    # `--option=` is no part of what is completed.
    compset -P '--[a-z-]##='
    (( $#described )) && _describe -V unsorted described -U
    (( $#whole )) && compadd -U -i "$IPREFIX" -V unsorted -a whole
    # A word that is to go on has no space after it.
    (( $#begun )) && compadd -U -i "$IPREFIX" -S '' -V unsorted -a begun
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


class BashLineComplete(BashComplete):
    """Completes the word that the cursor is in, of the line that bash passes on."""

    source_template: ClassVar[str] = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """See ShellComplete: the words before, and the word that is begun. Its quote may still be open."""
        if "COMP_LINE" not in os.environ:
            # The script of an earlier version is loaded.
            return super().get_completion_args()
        _, *words, last = split_arg_string(os.environ["COMP_LINE"] + _CURSOR)
        return words, last.removesuffix(_CURSOR)


class ZshWordComplete(ZshComplete):
    """Completes the word that the cursor is in, of the words that zsh passes on."""

    source_template: ClassVar[str] = _ZSH


def use_own_scripts() -> None:
    """Has click complete by the scripts here, instead of its own."""
    add_completion_class(BashLineComplete)
    add_completion_class(ZshWordComplete)
