# Start with: make demo, make test.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
LOCKING := --universal --python-version 3.10 --generate-hashes --no-header --no-emit-index-url --no-annotate $(NEW)

.DEFAULT_GOAL := help
.PHONY: help install demo test test-fast test-long test-unit test-crash soak test-connect test-cluster test-mysql97 test-tidb check fmt bench bench-load bench-sink bench-sink-flush bench-validate bench-commits bench-memory bench-metadata bench-commands bench-freshness bench-live bench-first bench-long bench-log docs clean fuzz mutation nightly audit lock

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# Only pinned versions with their recorded hashes: pip resolves nothing, and a build fetches nothing else.
$(VENV)/installed: pyproject.toml requirements.lock requirements-build.lock
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --require-hashes -r requirements-build.lock
	$(PY) -m pip install --quiet --require-hashes --no-build-isolation -r requirements.lock
	$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(PY) -m dmdelta.lakehouse.jars
	$(PY) -m dmdelta.lakehouse.cds_archive
	@touch $@

install: $(VENV)/installed ## install dmdelta with Spark, Delta and the development tools into .venv

demo: install ## replicate the shipped binlogs to Delta tables, without a server
	$(PY) examples/quickstart.py

servers: install ## install the real servers and the browser that the tests start
	$(PY) -m tests.support.servers install mysql80 mysql57 mariadb
	$(PY) -m tests.support.browser

# Two processes share the test files: each waits half of its time for processes that it has started.
test: servers ## unit, spark and integration tests against real servers; what CI runs
	$(PY) -m pytest tests -m "not mysql97 and not tidb and not long" -n 2 --dist loadfile --no-loadscope-reorder

# The list begins with what takes longest: unit tests fill up the process that is ready first.
test-fast: servers ## unit tests, and a test of each stage on MySQL 8.0 (tests/fast.txt): at most 4 minutes on 2 cores
	$(PY) -m pytest @tests/fast.txt tests/unit -m "not long" -n 2 --dist loadfile --no-loadscope-reorder

test-connect: servers ## the extra lane: spark and integration tests over Spark Connect, each process against a server of its own on this machine
	$(PY) -m tests.support.connect_server $(PY) -m pytest tests/spark tests/integration -m "not mysql97 and not tidb and not long" -n 2 --dist loadfile

test-cluster: servers ## the same on a standalone cluster of two workers with the wheel
	$(PY) -m tests.support.cluster $(PY) -m pytest tests/spark tests/integration -m "not mysql97 and not tidb and not long" -n 2 --dist loadfile

test-long: servers ## the long lane, hours on 2 cores: DDL suite, shard merge, event matrix, random kills, two machines, pauses, a server switch, full loads of every server, killed loads, table maintenance, most of test-crash, 500 live reads
	$(PY) -m pytest tests -m "long and not mysql97 and not tidb" --timeout 1800 -n 2 --dist worksteal

test-crash: servers ## the fault matrix, one to two hours on 2 cores: each fault at each point and at each moment of a source's stream
	$(PY) -m pytest tests/crash/test_fault_matrix.py tests/crash/test_source_faults.py tests/crash/test_maintenance_kills.py tests/crash/test_sabotage.py -n 2 --dist worksteal

soak: servers ## random load and faults over MySQL and MariaDB for MINUTES (60), every table compared repeatedly; SEED repeats a run
	$(PY) -m tests.soak --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED))

test-unit: install ## the tests without a JVM and without a server
	$(PY) -m pytest tests/unit

test-tidb: servers ## the extra lane: the sink to TiDB, which is built first (Go, minutes)
	nice $(PY) -m tests.support.servers.tidb
	$(PY) -m pytest tests -m "tidb and not long"

test-mysql97: install ## the extra lane: MySQL 9.7
	$(PY) -m tests.support.servers install mysql97
	$(PY) -m pytest tests -m mysql97

fuzz: install build/fuzz/installed ## atheris on the codec for SECONDS (600): recorded transactions, with damage that no checksum detects; failing inputs are in var/fuzz
	mkdir -p var/fuzz
	$(PY) -m tests.fuzz -max_total_time=$(or $(SECONDS),600) -artifact_prefix=var/fuzz/

# Not pinned with the others: atheris has wheels for Linux on x86-64 only.
build/fuzz/installed: $(VENV)/installed
	$(PY) -m pip install --quiet 'atheris>=2.3'
	mkdir -p $(@D) && touch $@

mutation: install build/mutation/installed ## MUTANTS (200) single changes of pure code, each against the unit tests that execute it; SEED repeats a sample
	$(PY) -m tests.mutation --mutants $(or $(MUTANTS),200) $(if $(SEED),--seed $(SEED))

# In a folder of their own behind the pinned packages: cosmic-ray requires many that nothing else does.
build/mutation/installed: $(VENV)/installed
	$(PY) -m pip install --quiet --target $(@D) cosmic-ray==8.7.0 coverage==7.17.4
	@touch $@

nightly: servers ## every lane on one commit, in parts of at most 40 minutes; BUDGET=150m stops between two, the next call resumes; writes docs/verification.md
	$(PY) -m tests.nightly $(if $(BUDGET),--budget $(BUDGET)) $(if $(LANES),--lanes $(LANES))

check: install ## ruff, mypy strict and the import contracts
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# --strict: a version that the service cannot report on counts as a failure.
audit: build/tools/installed ## look up every pinned version in the Python Packaging Advisory Database; fails if the service is unreachable
	build/tools/bin/pip-audit --strict --require-hashes --disable-pip -r requirements.lock \
	  || { echo "audit: a version has a known vulnerability, or the service could not be asked: see above"; exit 1; }

# Pinned versions stay unless NEW is given: make lock NEW=--upgrade
lock: build/tools/installed ## pin the dependencies of pyproject.toml again, for Python 3.10 and later (uv: set UV_DEFAULT_INDEX for a mirror)
	build/tools/bin/uv pip compile --quiet $(LOCKING) --all-extras pyproject.toml -o requirements.lock
	sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml \
	  | build/tools/bin/uv pip compile --quiet $(LOCKING) --constraints requirements.lock - -o requirements-build.lock

build/tools/installed:
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet uv pip-audit
	@touch $@

fmt: install ## format
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: servers ## speed of codec, landing and binlog-to-silver, beside mysql-replication; writes benchmarks/RESULTS.md
	$(PY) -m benchmarks.pipeline

bench-sink: servers ## speed of the sink to MariaDB, asynchronous and synchronous flush; writes benchmarks/SINK.md; TARGET=tidb: to TiDB
	$(PY) -m benchmarks.sink --target $(or $(TARGET),mariadb)

bench-sink-flush: servers ## gain of the sink's asynchronous flush by the target's place and distance; writes benchmarks/SINK_FLUSH.md
	$(PY) -m benchmarks.sink_flush

bench-validate: servers ## speed and memory of reconciliation; writes benchmarks/VALIDATE.md
	$(PY) -m benchmarks.validate

bench-freshness: servers ## freshness of silver under a steady load on 20 and on 200 tables; writes benchmarks/FRESHNESS-*.md
	$(PY) -m benchmarks.freshness
	$(PY) -m benchmarks.freshness --tables 200 --rows 400

bench-live: servers ## how soon live reads have a change, and their cost; writes benchmarks/LIVE-*.md
	$(PY) -m benchmarks.live
	$(PY) -m benchmarks.live --part freshness --tables 200

bench-first: servers ## seconds until a first-time user sees loaded tables and the first change; writes benchmarks/FIRST.md
	$(PY) -m benchmarks.first

bench-commits: install ## cost of a Delta commit of 200 rows, by kind and session profile; writes benchmarks/COMMITS.md
	$(PY) -m benchmarks.commits

bench-commands: servers ## time of each command from a cold shell, next to a busy task; writes benchmarks/COMMANDS.md
	$(PY) -m benchmarks.commands

bench-memory: servers ## landing and applying small batches from memory and from bronze; writes benchmarks/MEMORY.md
	$(PY) -m benchmarks.memory

bench-metadata: install ## cost of history look-ups, dm_meta reads and flushes, with delta-rs and Spark; writes benchmarks/METADATA.md
	$(PY) -m benchmarks.metadata

bench-long: servers ## whether a task keeps its speed: 10,000 batches, 200 tables, a schema of 5,000; two hours; writes benchmarks/LONG_RUN.md
	$(PY) -m benchmarks.long_run

bench-log: install ## what an append costs if the log has many old commits; writes benchmarks/LOG_GROWTH.md
	$(PY) -m benchmarks.log_growth

bench-load: servers ## speed and memory of a full load; writes benchmarks/FULL_LOAD.md
	$(PY) -m benchmarks.full_load

docs: install ## regenerate pages and schemas: types, spec, JSON schemas, metrics, commands
	$(PY) -m dmdelta.ddl.types.silver_types > docs/types.md
	$(PY) -m dmdelta.ddl.type_changes > docs/type-changes.md
	$(PY) -m dmdelta.config.schema > schemas/pipeline.schema.json
	$(PY) -m dmdelta.config.schema suite > schemas/suite.schema.json
	$(PY) -m dmdelta.engine.telemetry.task_status > schemas/status.schema.json
	$(PY) -m dmdelta.config.docs > docs/spec.md
	$(PY) -m dmdelta.engine.telemetry.prometheus > docs/metrics.md
	$(PY) -m dmdelta.cli.reference > docs/cli.md

clean: ## remove the output of demo and tests
	rm -rf var .pytest_cache .mypy_cache .ruff_cache
