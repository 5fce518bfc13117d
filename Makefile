# Every target works in a fresh clone: tools/stages.py makes .venv and builds what is needed.
PYTHON ?= python3
FREE_THREADED ?= python3.14t
STAGES := $(PYTHON) tools/stages.py
VENV ?= .venv
VENV_PYTHON := $(VENV)/bin/python
BENCH_PYTHON := build/bench-venv/bin/python

.PHONY: help demo test test-all test-free-threaded matrix soak soak-sockets simulate faults fuzz fuzz-python bench bench-quick bench-pipeline bench-environment lint docs
.PHONY: wheel wheels try-wheel sdist check-release publish-crates clean

help:
	@echo 'make demo      flights through a collector and Spark, killed on the way, in a live view (installs what it needs)'
	@echo 'make test      everything that CI runs'
	@echo 'make test-all  that, the slow tests, the whole fault matrix, the packages of the crates and the release wheel'
	@echo 'make test-free-threaded  the Python tests on python3.14t (or FREE_THREADED=...)'
	@echo 'make matrix    the Spark source on every Spark from 4.0 on that can be installed'
	@echo 'make soak      a million messages while everything is killed: each once at the sink (SOAK="--messages N ...")'
	@echo 'make soak-sockets  an hour of patterns, churn, faults, forks and signals: memory, descriptors and threads stay level'
	@echo 'make simulate  random programs of whole contexts on a simulated network (SIMULATE="--seeds 100000 --pattern pubsub")'
	@echo 'make faults    the fault matrix: peers, networks, machines and programs that do harm, on zeroxide and pyzmq; then disks (FAULTS="--only curve")'
	@echo 'make fuzz      changed bytes into every parser, guided by coverage (FUZZ="--seconds 3600 --target engine" runs one of them for an hour)'
	@echo 'make fuzz-python  changed bytes into the parsers of HTTP, and the same bytes and random programs to zeroxide and libzmq (FUZZ="--seconds 600 --seed 2")'
	@echo 'make bench     side by side with pyzmq, pyomq, libzmq and other systems (BENCH="--quick --only tcp" is a part of it)'
	@echo 'make bench-pipeline  producers, a collector and Spark, and Kafka with Spark beside them (PIPELINE=--quick)'
	@echo 'make lint      formatters, linters, types'
	@echo 'make docs      the documentation site in build/site'
	@echo 'make wheel     a release wheel in dist/, tested in a clean environment'
	@echo 'make wheels    the wheels of a release in dist/, for every target whose standard library is installed'
	@echo 'make sdist     the source distribution in dist/ and the packages of the crates, each built from in a clean environment'
	@echo 'make clean     removes what the targets made'

demo:
	$(STAGES) install
	$(VENV_PYTHON) -m examples.demo

test:
	$(STAGES) test

test-all:
	$(STAGES) test-all

# Its environment is not the one of the other targets.
test-free-threaded:
	ZEROXIDE_VENV=$(CURDIR)/build/free-threaded-venv $(FREE_THREADED) tools/stages.py test-free-threaded

matrix:
	$(STAGES) install
	$(VENV_PYTHON) tools/matrix.py

soak:
	$(STAGES) install
	$(VENV_PYTHON) tests/soak/soak.py $(SOAK)

soak-sockets:
	$(STAGES) install-release
	$(VENV_PYTHON) tests/soak/sockets.py $(SOAK)

simulate:
ifneq (,$(findstring pipeline,$(SIMULATE)))
	RUSTFLAGS="--cfg zeroxide_disk" CARGO_TARGET_DIR=target/disk \
		cargo test --locked --profile quick -p zeroxide-pipeline --test simulation -- $(SIMULATE)
else
	RUSTFLAGS="--cfg zeroxide_shuttle" CARGO_TARGET_DIR=target/shuttle \
		cargo test --locked --profile quick -p zeroxide --test simulation -- $(SIMULATE)
endif

faults:
	$(STAGES) install
	cd tests && $(abspath $(VENV_PYTHON)) -m faults --out ../build/faults $(FAULTS)
	cd tests && $(abspath $(VENV_PYTHON)) -m faults.power --rounds 50
	$(VENV_PYTHON) -m pytest tests/spark/test_faults.py -v

# A stable compiler suffices: the counters come from LLVM. Builds of other targets stay as they are.
fuzz:
	RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/rust/fuzz/instrument cargo run --locked --profile quick -p zeroxide-fuzz -- $(FUZZ)

fuzz-python:
	$(STAGES) install
	$(VENV_PYTHON) tests/fuzz/web.py $(FUZZ)
	$(VENV_PYTHON) tests/fuzz/differential.py $(FUZZ)
	$(VENV_PYTHON) tests/fuzz/programs.py $(FUZZ)

bench: bench-environment
ifneq (,$(findstring ablation,$(BENCH)))
	cargo bench -p zeroxide-benches --features ablation --bench ablation
else
ifndef BENCH
	cargo bench -p zeroxide-benches --features ablation
	cargo bench --bench sockets
endif
	$(BENCH_PYTHON) benches/python/bench.py --out build/bench $(BENCH)
	$(BENCH_PYTHON) benches/python/native.py --out build/bench $(BENCH)
	$(BENCH_PYTHON) benches/python/transports.py --out build/bench $(BENCH)
	$(BENCH_PYTHON) benches/python/dissect.py --out build/bench $(BENCH)
ifndef BENCH
	$(VENV_PYTHON) -m pytest benches/python --results build/bench/results.json
endif
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

# The targets of a release, which the workflows in .github run too.
wheels:
	$(STAGES) wheels

try-wheel:
	$(STAGES) try-wheel

sdist:
	$(STAGES) sdist

# Checks that dist/ holds every file of the release, and that TAG, if it is set, is its version.
check-release:
	$(STAGES) check-release

publish-crates:
	$(STAGES) publish-crates

clean:
	rm -rf .venv build dist target .pytest_cache .mypy_cache .ruff_cache
