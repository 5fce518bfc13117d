# Every target works in a fresh clone: tools/stages.py makes .venv and builds what is needed.
PYTHON ?= python3
STAGES := $(PYTHON) tools/stages.py
VENV ?= .venv
VENV_PYTHON := $(VENV)/bin/python
BENCH_PYTHON := build/bench-venv/bin/python

.PHONY: help demo test test-all matrix soak faults bench bench-quick bench-pipeline bench-environment lint docs wheel clean

help:
	@echo 'make demo      flights through a collector and Spark, killed on the way, in a live view (installs what it needs)'
	@echo 'make test      everything that CI runs'
	@echo 'make test-all  that, the slow tests and the release wheel'
	@echo 'make matrix    the Spark source on every Spark from 4.0 on that can be installed'
	@echo 'make soak      a million messages while everything is killed: each once at the sink (SOAK="--messages N ...")'
	@echo 'make faults    full disks, flipped bits, lost logs: each is told, none makes a gap'
	@echo 'make bench     side by side with pyzmq, pyomq, libzmq and other systems (BENCH="--quick --only tcp" is a part of it)'
	@echo 'make bench-pipeline  producers, a collector and Spark, and Kafka with Spark beside them (PIPELINE=--quick)'
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

matrix:
	$(STAGES) install
	$(VENV_PYTHON) tools/matrix.py

soak:
	$(STAGES) install
	$(VENV_PYTHON) tests/soak/soak.py $(SOAK)

faults:
	$(STAGES) install
	$(VENV_PYTHON) -m pytest tests/spark/test_faults.py -v

bench: bench-environment
ifndef BENCH
	cargo bench -p zeroxide-benches
	cargo bench --bench sockets
endif
	$(BENCH_PYTHON) benches/python/bench.py --out build/bench $(BENCH)
	$(BENCH_PYTHON) benches/python/native.py --out build/bench $(BENCH)
	$(BENCH_PYTHON) benches/python/dissect.py --out build/bench $(BENCH)
ifndef BENCH
	$(VENV_PYTHON) -m pytest benches/python --results build/bench/results.json
endif

bench-quick:
	$(MAKE) bench BENCH=--quick

# Producer, collector and Spark together, on the disk that build/ is on; PIPELINE=--quick is shorter.
bench-pipeline:
	$(STAGES) install-release
	$(VENV_PYTHON) benches/pipeline/bench.py --dir build/bench-pipeline --out build/bench/pipeline.json $(PIPELINE)

# The rivals are in an environment of their own, and the release wheel with them.
bench-environment:
	$(STAGES) install-release
	$(VENV_PYTHON) benches/python/environment.py

lint:
	$(STAGES) lint

docs:
	$(STAGES) docs

wheel:
	$(STAGES) wheel

clean:
	rm -rf .venv build dist target .pytest_cache .mypy_cache .ruff_cache
