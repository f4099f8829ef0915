# Two commands do all set-up: `make demo` shows what HOPS does, `make test` checks that it does.

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet
SELF := $(INSTALL) --no-deps --no-build-isolation --editable . && $(BIN)/python -m compileall -q src

.DEFAULT_GOAL := help
.PHONY: help demo test test-full runtimes lint mutants format pages lock clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1#\2/p' Makefile | column -t -s '#'

demo: .venv/ready-to-run  ## simulate a mixed cluster; pictures, trace and summary go to output/demo/
	@$(BIN)/hops run examples/demo.yaml
	@$(BIN)/hops report examples/demo.yaml --schedules zb_v -o output/demo/report.html --open
	@echo "Look first at output/demo/report.html, in a browser: where the bubble is, why ranks wait, what zb_v changes."
	@echo "Also there: timeline.png, dashboard.png, and trace.json for ui.perfetto.dev."

test: .venv/ready-to-develop  ## run the tests
	@$(BIN)/python -m pytest -q -n auto --dist loadgroup

test-full: .venv/ready-to-develop  ## run the tests, rehearsals, clusters and large pages too
	@$(BIN)/python -m pytest -q -n auto --dist loadgroup -m 'full or not full'

runtimes: .venv/ready-for-runtimes  ## install PyTorch for CPUs and megatron-core, which some tests need

lint: .venv/ready-to-develop  ## check format, style and types
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy

mutants: .venv/ready-to-develop  ## break the core on purpose, and count what no test notices (SAMPLE=200)
	@$(BIN)/python tools/mutants.py --sample $(or $(SAMPLE),200)

format: .venv/ready-to-develop  ## bring the code into form
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

docs: .venv/ready-to-develop  ## build the documentation as a site in build/site
	@$(BIN)/mkdocs build --strict --quiet

pages: .venv/ready-to-run  ## run what README and tutorial show, and update the output in them
	@$(BIN)/python tools/pages.py
	@$(BIN)/hops run examples/demo.yaml --quiet --set simulation.iterations=1 --set simulation.warmup_iterations=0 \
		--set output.timeline=docs/images/demo-timeline.png

package: .venv/made  ## build wheel and sdist, and install them where nothing else is
	@sh tools/package.sh

lock:  ## pin the newest versions of everything (requirements/*.txt)
	@sh tools/lock.sh

clean:  ## remove what make and the tests have made
	@rm -rf .venv build dist output .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/made: tools/venv.sh
	@sh tools/venv.sh .venv
	@touch $@

.venv/ready-to-run: .venv/made requirements/runtime.txt pyproject.toml
	@echo "installing what HOPS needs, pinned by requirements/runtime.txt"
	@$(INSTALL) --requirement requirements/runtime.txt
	@$(SELF)
	@touch $@

.venv/ready-to-develop: .venv/made requirements/dev.txt pyproject.toml
	@echo "installing what tests and linters need, pinned by requirements/dev.txt"
	@$(INSTALL) --requirement requirements/dev.txt
	@$(SELF)
	@touch $@

# The index is one more place to look: without it, the wheel that pip finds elsewhere does as well.
.venv/ready-for-runtimes: .venv/ready-to-develop requirements/runtimes.txt
	@echo "installing real runtimes, pinned by requirements/runtimes.txt"
	@$(INSTALL) --retries 0 --extra-index-url https://download.pytorch.org/whl/cpu \
		--requirement requirements/runtimes.txt 2>/dev/null || $(INSTALL) --requirement requirements/runtimes.txt
	@touch $@
