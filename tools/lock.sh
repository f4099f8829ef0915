#!/bin/sh
# Regenerates the lock files, and checks that every pin has a wheel for every platform we claim.
#
#     make lock
set -eu

scratch=build/lock
uv="$scratch/bin/uv"
[ -x "$uv" ] || { sh tools/venv.sh "$scratch" && "$scratch/bin/pip" install --quiet uv; }

compile() {
    target=$1
    shift
    "$uv" pip compile --quiet --upgrade --universal --fork-strategy fewest --python-version 3.11 --group build \
        --no-emit-index-url --custom-compile-command 'make lock' --output-file "$target" pyproject.toml "$@"
}

# real runtimes are pinned by hand in requirements/runtimes.txt, which says why
compile requirements/dev.txt --extra calibrate --extra parquet --extra zstd --extra notebook --extra docs --extra test --extra lint --extra mutants
compile requirements/runtime.txt --constraint requirements/dev.txt

for python in 3.11 3.12 3.13 3.14; do
    for platform in x86_64-manylinux_2_28 aarch64-manylinux_2_28 x86_64-apple-darwin aarch64-apple-darwin; do
        "$uv" pip compile --quiet --only-binary :all: --no-header --python-version "$python" \
            --python-platform "$platform" --output-file "$scratch/checked.txt" requirements/dev.txt
        echo "wheels for Python $python on $platform: all there"
    done
done
