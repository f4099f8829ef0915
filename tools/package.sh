#!/bin/sh
# Builds wheel and sdist, installs each in an environment of its own, without and with extras, and runs a spec there.
#
#     sh tools/package.sh          (make package)
set -eu

work=build/package
rm -rf "$work"
sh tools/venv.sh "$work/builder"
"$work/builder/bin/pip" install --quiet --disable-pip-version-check build
"$work/builder/bin/python" -m build --outdir "$work/dist" . >"$work/build.log" 2>&1 || { tail -20 "$work/build.log" >&2; exit 1; }

check() { # name, requirement
    sh tools/venv.sh "$work/$1"
    "$work/$1/bin/pip" install --quiet --disable-pip-version-check "$2"
    (
        cd "$work/$1"
        ./bin/hops --version
        ./bin/hops init spec.yaml --quiet 2>/dev/null || ./bin/hops init spec.yaml >/dev/null
        ./bin/hops run spec.yaml --quiet --output out
        test -s out/report.html
    )
    echo "$1: installed, ran a spec, wrote a report"
}

wheel=$(ls "$PWD/$work"/dist/*.whl)
sdist=$(ls "$PWD/$work"/dist/*.tar.gz)
check wheel "$wheel"
check sdist "$sdist"
check extras "$wheel[calibrate,parquet,zstd,notebook]"
"$work/extras/bin/python" -c "import hops, pandas; print('extras: to_pandas', callable(hops.Trace.to_pandas))"
