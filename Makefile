# Every target works in a fresh clone: tools/stages.py makes .venv and builds what is needed.
PYTHON ?= python3
STAGES := $(PYTHON) tools/stages.py
VENV ?= .venv
VENV_PYTHON := $(VENV)/bin/python

.PHONY: help demo test test-all bench bench-quick lint docs wheel clean

help:
	@echo 'make demo      flights through a collector and Spark, killed on the way, in a live view (installs what it needs)'
	@echo 'make test      everything that CI runs'
	@echo 'make test-all  that, the slow tests and the release wheel'
	@echo 'make bench     side by side with pyzmq; make bench-quick: the same, shorter'
	@echo 'make lint      formatters, linters, types'
	@echo 'make docs      the documentation site in build/site'
	@echo 'make wheel     a release wheel in dist/, tried in a clean environment'
	@echo 'make clean     removes what the targets made'

demo:
	$(STAGES) install
	$(VENV_PYTHON) -m examples.demo

test:
	$(STAGES) test

test-all:
	$(STAGES) test-all

bench:
	$(STAGES) install-release
	cargo bench --bench "*"
	$(VENV_PYTHON) benches/python/bench.py --out build/bench
	$(VENV_PYTHON) -m pytest benches/python --results build/bench/results.json

bench-quick:
	$(STAGES) install-release
	$(VENV_PYTHON) benches/python/bench.py --quick --out build/bench

lint:
	$(STAGES) lint

docs:
	$(STAGES) docs

wheel:
	$(STAGES) wheel

clean:
	rm -rf .venv build dist target .pytest_cache .mypy_cache .ruff_cache
