#!/bin/sh
# Makes the virtual environment FOLDER with a Python that the lock files are checked for, or says what is missing.
#
#     tools/venv.sh FOLDER        PYTHON=... chooses another interpreter
set -eu

folder=$1
oldest='3.11'
candidates=${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}
seen=''
unusable=''

version_of() {
    "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

can_make_venvs() {
    "$1" -c 'import venv, ensurepip' 2>/dev/null
}

if is_new_enough "$folder/bin/python" && "$folder/bin/python" -c 'import pip' 2>/dev/null; then
    exit 0 # made before
fi

for python in $candidates; do
    version=$(version_of "$python") || continue
    if ! is_new_enough "$python"; then
        seen="$seen $python (is $version)"
    elif ! can_make_venvs "$python"; then
        unusable="$unusable $python"
    else
        echo "making $folder with $python (Python $version)"
        "$python" -m venv --clear "$folder"
        exit 0
    fi
done

if [ -n "$unusable" ]; then
    echo "error: Python has no venv module here, got:$unusable" >&2
    echo "fix: install it (on Debian and Ubuntu: apt install python3-venv), or name another: make PYTHON=/path/to/python" >&2
else
    echo "error: HOPS needs Python $oldest or newer, got:${seen:- none of $candidates}" >&2
    echo "fix: install Python $oldest or newer, or name it: make PYTHON=/path/to/python" >&2
fi
exit 1
