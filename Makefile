# make book   builds the book, from nothing but Python >= 3.11, make and git
# make test   runs every check there is; `make help` lists the rest

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,\
  $(shell command -v $(p) >/dev/null && $(p) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1)' 2>/dev/null && echo $(p))))
VENV ?= .venv
PORT ?= 8000
N ?= 1
WORKERS ?= 2
# Who reads notebooks waits for kernels to start, a third of the time.
READERS ?= $(shell expr $(WORKERS) + 1)
RUN := $(VENV)/bin/python
PIP := -m pip install -qq --no-input --disable-pip-version-check --no-compile
STAMP := $(VENV)/.installed
COLAB := .venv-colab
NOTEBOOKS ?= chapters/*.ipynb
# The emulator of CUDA compiles the kernels of chapters 34 and 35.
EMULATED := $(shell command -v $(firstword $(CXX)) 2>/dev/null)
COLAB_PYTHON ?= $(shell python3.13 -c 'import sys; print(sys.executable)' 2>/dev/null)
ORACLE := .venv-oracle
BENCH := .venv-bench
BROWSER := .venv-browser
MPI := .venv-mpi
CHROMIUM ?= $(firstword $(foreach b,chromium chromium-browser google-chrome,$(shell command -v $(b))))
SECONDS ?= 60
HUNT := $(if $(LLVMLITE),.venv-llvmlite-$(LLVMLITE),$(if $(wildcard $(ORACLE)/.installed),$(ORACLE),$(VENV)))
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
KERNEL := PYTHONPATH=$(CURDIR) PYTHONWARNINGS=default PYTHONHASHSEED=0 OMP_NUM_THREADS=1 PYDEVD_DISABLE_FILE_VALIDATION=1
# Cells that measure aren't compared: the check of all pages measures for a moment only.
HURRIED := MINIJAX_PATIENCE=0
# Where JAX is installed, all else comes from $(VENV), which has it already.
export BELOW := import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))
# Each of hundreds of processes would compile what it imports again, where this is set.
unexport PYTHONDONTWRITEBYTECODE
title = @printf '── %s ──\n' "$(1)"

.PHONY: help book pages serve test lint types made unit notebooks chapter chapters elsewhere \
  gpu-part gpu-check gpu \
  test-mpi oracle oracle-record conformance hunt bench experiments colab browser printable release-check card counts owner clean together
ifndef TOGETHER
.NOTPARALLEL:
endif

help:
	@sed -n 's/^## //p' Makefile

## make book            build the book into _build/html
book: $(STAMP) pages
	$(call title,book)
	@$(RUN) -m book.tools.pages --check
	@rm -rf _build/html && mkdir -p _build
	@$(VENV)/bin/jupyter-book build . -W -n --keep-going --all -q >_build/log 2>&1 \
	  || { cat _build/log; exit 1; }
	@$(RUN) -m book.tools.in_page
	@$(RUN) -m book.tools.printable
	@$(RUN) -m book.tools.pages --built

pages: $(STAMP)
	@$(RUN) -m book.tools.pages
	@$(RUN) -m book.tools.landing
	@$(RUN) -m book.tools.one_function
	@$(RUN) -m book.tools.mistakes

## make serve PORT=8000 show the built book on this machine
serve:
	$(call title,http://127.0.0.1:$(PORT))
	@$(PYTHON) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

## make test            lint, types, made files, tests, notebooks, book; LONG=1: all cases, more random programs
test: $(STAMP) together notebooks unit

# What keeps one core busy, two at a time.
together: $(STAMP)
	@+$(MAKE) -k -j$(WORKERS) $(if $(filter output-sync,$(.FEATURES)),-Otarget) \
	  --no-print-directory TOGETHER=1 book lint types elsewhere gpu-part

lint: $(STAMP)
	$(call title,lint)
	@$(RUN) -m ruff check -q . && echo clean

types: $(STAMP)
	$(call title,types)
	@$(RUN) -m mypy

# Part of the tests already (tests/laws/test_source.py), and quicker alone.
made: $(STAMP)
	$(call title,modules and notebooks agree with the chapters)
	@$(RUN) -m book.tools.export --check; modules=$$?; \
	  $(RUN) -m book.tools.notebook --check && exit $$modules

# A function with eight cases or more is asked for a third of them, which the commit chooses.
BY_TURNS = MINIJAX_TEST_TURNS=$(if $(LONG),1,3)

unit: $(STAMP)
	$(call title,tests)
	@$(BY_TURNS) $(RUN) -m pytest -q -n $(WORKERS) --dist worksteal --durations=15 \
	  --ignore=tests/browser tests

notebooks: $(STAMP)
	$(call title,notebooks)
	@$(if $(EMULATED),,echo "without chapters 34 and 35: no C++ compiler here")
	@$(KERNEL) $(HURRIED) $(RUN) -m pytest -q --nbval --nbval-current-env \
	  --nbval-sanitize-with nbval.cfg -n $(READERS) --dist loadfile -W default \
	  -p book.tools.forked_kernels -p no:cacheprovider $(if $(EMULATED),,--ignore-glob='chapters/34_gpu*.ipynb' --ignore-glob='chapters/35_*.ipynb') chapters

## make chapter N=3     export, run and check one chapter
chapter: $(STAMP)
	@$(RUN) -m book.tools.chapter $(N)

## make chapters        export and run all chapters
chapters: $(STAMP)
	$(call title,export)
	@$(RUN) -m book.tools.export
	$(call title,notebooks)
	@$(RUN) -m book.tools.notebook
	@$(RUN) -m book.tools.pages --toc

## make elsewhere       with all arrays on a second device; ELSEWHERE=tests: all tests; COMMITTED=1
ELSEWHERE ?= $(addprefix tests/test_,$(addsuffix .py,arrays_array arrays_devices_placement \
  jitting_api_functions jitting_arguments_placing scans_loops control_flow_while_loops reverse_mode_backward_pass_gradients))
elsewhere: $(STAMP)
	$(call title,tests on a second device)
	@MINIJAX_TEST_DEVICE=1 MINIJAX_TEST_COMMITTED=$(COMMITTED) $(RUN) -m pytest -q \
	  --ignore=tests/browser --ignore=tests/laws $(ELSEWHERE)

## make gpu-check       with all arrays on a GPU that is emulated (g++; no GPU needed)
GPU_PART := $(addprefix tests/test_,$(addsuffix .py,scans_loops control_flow_while_loops \
  reverse_mode_backward_pass_gradients callbacks_callback_primitives))
# A share of the tests of Python's level, one of GPU_EVERY; GPU_EVERY=1: all of them.
GPU_EVERY ?= 11
GPU_CHECK := $(addprefix tests/test_,$(addsuffix .py,arrays_array arrays_numerics_complex_numbers \
  lax_elementwise lax_reductions lax_shapes_cutting lax_shapes_shaping lax_elementwise_selection lax_arithmetic_conversion \
  lax_reductions_contraction lax_reductions_promotion numpy_array_methods_syntax numpy_array_methods_indexing numpy batching_vmap_trace \
  forward_mode_jvp_trace linearization_linearize reverse_mode_backward_pass_gradients reverse_mode_backward_pass scans_loops \
  scans_loops_mapping scans_loops_associative scans_scan_rules scans_evaluation_whole_scans control_flow_conditionals \
  control_flow_conditionals_rules control_flow_while_loops control_flow_while_loops_rules custom_derivatives_rules \
  custom_derivatives_rest rematerialization_jaxpr_transforms_programs callbacks_callback_primitives jitting_api_functions jitting_api \
  indexing_gather_scatter_brackets numpy_indexing_takes numpy_indexing_updates indexing_scatter_variants_scatters indexing_gather_scatter_primitives \
  sorting_sort_primitive sorting_top_k sorting_sort_rules windows numpy_fft \
  linear_algebra_primitives linear_algebra_numpy_linalg_systems prng_keys distributions_inversion_sampling \
  nn_functions_activations nn_functions_attention nn_functions_normalisation \
  numpy_setops numpy_histograms scipy_special numpy_selection \
  numpy_rearrangements numpy_statistics_measures training promises special_values \
  several_outputs computed_places small_stacks newcomer_programs))
gpu-part: $(STAMP)
	$(call title,tests on an emulated GPU)
	@$(if $(EMULATED),MINIJAX_TEST_DEVICE=card $(RUN) -m pytest -q $(GPU_PART),echo "skipped: no C++ compiler here")

# The sources that the batteries meet are compiled by NVRTC, where that is installed.
gpu-check: $(STAMP)
	$(call title,all tests of GPUs on an emulated one)
	@rm -rf _build/cuda
	@$(RUN) -m pytest -q tests/test_cuda_*.py tests/test_gpu_*.py tests/test_emulator.py
	@CUDA_SOURCES=_build/cuda $(RUN) -m tests.cuda_programs
	@$(RUN) -m tests.cuda_programs --cublas --every 3
	@CUDA_SOURCES=_build/cuda $(RUN) -m tests.cuda_primitives
	@CUDA_SOURCES=_build/cuda $(RUN) -m tests.cuda_cases --programs --every 97
	@CUDA_SOURCES=_build/cuda $(RUN) -m tests.cuda_cases --card --count 40
	@MINIJAX_TEST_DEVICE=card $(RUN) -m pytest -q $(GPU_PART)
	@CUDA_SOURCES=_build/cuda MINIJAX_TEST_DEVICE=card MINIJAX_TEST_EVERY=$(GPU_EVERY) \
	  $(RUN) -m pytest -q $(GPU_CHECK)
	@$(RUN) -m tests.cuda_compiles --met _build/cuda

## make gpu             on the GPU of this machine: tests, kernels, programs, the table
GPU_PYTHON ?= $(RUN)
GPU_WORKERS ?= 4
gpu: $(if $(filter $(RUN),$(GPU_PYTHON)),$(STAMP))
	$(call title,on a GPU)
	@$(GPU_PYTHON) -c "import minijax; print(minijax.devices('gpu'))"
	@$(GPU_PYTHON) -m tests.cuda_programs --gpu
	@$(GPU_PYTHON) -m tests.cuda_primitives --gpu
	@for kind in "--seed 1" --rows --places --card "--programs --every 40"; do \
	  $(GPU_PYTHON) -m tests.cuda_cases --gpu $$kind || exit 1; done
	@MINIJAX_TEST_DEVICE=gpu $(GPU_PYTHON) -m pytest -q -n $(GPU_WORKERS) $(GPU_CHECK)
	@$(GPU_PYTHON) benchmarks/gpu.py

## make test-mpi        programs of several processes, with the wheels of MPI
test-mpi: $(MPI)/.installed
	$(call title,tests with several processes)
	@$(MPI)/bin/python -m pytest -q tests/test_distributed_processes.py

# What is not of MPI comes from $(VENV), which has it already.
$(MPI)/.installed: $(STAMP)
	$(call title,environment with MPI)
	@rm -rf $(MPI) && $(PYTHON) -m venv $(MPI)
	@$(RUN) -c "$$BELOW" > $$(echo $(MPI)/lib/python*/site-packages)/below.pth
	@$(MPI)/bin/python $(PIP) "mpi4py>=4.1,<5" "mpich>=5"
	@touch $@

## make oracle          compare with real JAX, in an environment of its own; LONG=1 as well
oracle: $(ORACLE)/.installed
	$(call title,oracle)
	@$(BY_TURNS) MINIJAX_ORACLE=1 $(ORACLE)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal tests/oracle

## make bench           measure side by side with JAX and others; replicas, on all cores
bench: $(BENCH)/.installed
	$(call title,bench)
	@$(BENCH)/bin/python benchmarks/eager.py
	@$(BENCH)/bin/python benchmarks/compiled.py
	@$(BENCH)/bin/python benchmarks/growth.py
	@$(BENCH)/bin/python benchmarks/device_rows.py
	@$(RUN) -m book.tools.suites --table  # as recorded

## make experiments     the paper's experiments beside JAX and Autograd; NOTE="a busy machine"
experiments: $(ORACLE)/.installed
	$(call title,experiments)
	@$(ORACLE)/bin/python $(PIP) -c constraints.txt autograd \
	  || echo "Autograd cannot be installed here"
	@$(ORACLE)/bin/python benchmarks/experiments.py --note "$(NOTE)"

## make conformance     test-suites of other packages under the name jax; SUITES="optax jmp", WHOLE=1
conformance: $(STAMP)
	$(call title,conformance)
	@$(RUN) -m tests.conformance $(SUITES) $(if $(WHOLE),--whole)

$(BENCH)/.installed: constraints.txt pyproject.toml
	$(call title,environment to measure in)
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python $(PIP) -c constraints.txt setuptools numpy ml_dtypes jax==0.10.2 llvmlite
	@$(BENCH)/bin/python $(PIP) -c constraints.txt numba || echo "Numba cannot be installed here"
	@$(BENCH)/bin/python $(PIP) -q --extra-index-url $(TORCH_INDEX) torch==2.13.0 \
	  || echo "PyTorch cannot be installed here"
	@$(BENCH)/bin/python $(PIP) --no-build-isolation --no-deps -e .
	@touch $@

## make oracle-record   write the recorded tables anew from real JAX
oracle-record: $(ORACLE)/.installed
	$(call title,record)
	@MINIJAX_ORACLE=record $(ORACLE)/bin/python -m pytest -q tests/oracle

$(ORACLE)/.installed: $(STAMP)
	$(call title,environment with JAX)
	@rm -rf $(ORACLE) && $(PYTHON) -m venv $(ORACLE)
	@$(RUN) -c "$$BELOW" > $$(echo $(ORACLE)/lib/python*/site-packages)/below.pth
	@$(ORACLE)/bin/python $(PIP) -c constraints.txt jax==0.10.2
	@touch $@

## make hunt SECONDS=600  new random programs until the time is over; LLVMLITE=0.44.0: with another LLVM
hunt: $(HUNT)/.installed
	$(call title,hunt)
	@$(HUNT)/bin/python -m tests.hunt --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

.venv-llvmlite-%/.installed: pyproject.toml
	$(call title,environment with llvmlite $*)
	@$(PYTHON) -m venv .venv-llvmlite-$*
	@.venv-llvmlite-$*/bin/python $(PIP) numpy ml_dtypes mpmath llvmlite==$*
	@touch $@

# What tests ask for; the package comes from its wheel, in their children as well. What
# the book and releases are made by is tested where the repository is.
BOOKISH := laws oracle browser test_in_page.py test_release_check.py
BESIDE := tests book chapters examples benchmarks pyproject.toml setup.py README.md
## make colab           notebooks and tests on Colab's versions, from a built wheel
colab: $(STAMP)
	$(call title,colab)
ifeq ($(COLAB_PYTHON),)
	@echo "skipped: no python3.13 here"
else
	@rm -rf $(COLAB) build book/helper/build
	@$(COLAB_PYTHON) -m venv $(COLAB)
	@$(COLAB)/bin/python $(PIP) numpy==2.1.3 llvmlite==0.44.0 pytest hypothesis \
	  setuptools nbformat jupytext ipython==7.34.0 ipykernel nbclient \
	  matplotlib mpmath scikit-learn tqdm ml_dtypes
	@$(COLAB)/bin/python -m pip wheel -qq --no-build-isolation --no-deps \
	  -w $(COLAB)/wheels . ./book/helper
	@rm -rf build book/helper/build
	@$(COLAB)/bin/python -P book/tools/colab.py $(COLAB)/wheels $(NOTEBOOKS)
	@$(COLAB)/bin/python $(PIP) --no-deps --force-reinstall $(COLAB)/wheels/*.whl
	@rm -rf $(COLAB)/beside && mkdir $(COLAB)/beside
	@cp -R $(BESIDE) $(COLAB)/beside
	@cd $(COLAB)/beside && ../bin/python -P -m pytest -q -W default -p no:cacheprovider \
	  --import-mode=append $(patsubst %,--ignore=tests/%,$(BOOKISH)) tests
endif

## make browser         the built book in chromium, where there is one
browser: book
	$(call title,browser)
ifeq ($(CHROMIUM),)
	@echo "skipped: no chromium here (make browser CHROMIUM=...)"
else
	@test -e $(BROWSER)/.installed || $(PYTHON) -m venv $(BROWSER)
	@test -e $(BROWSER)/.installed || \
	  $(BROWSER)/bin/python $(PIP) -c constraints.txt pytest playwright axe-playwright-python
	@touch $(BROWSER)/.installed
	@BROWSER_PATH=$(CHROMIUM) $(BROWSER)/bin/python -m pytest -q --noconftest \
	  -c /dev/null --rootdir . -p no:cacheprovider tests/browser
endif

## make printable       the book as one PDF, printed by chromium; FOLDS=closed, solutions or all
FOLDS ?= solutions
printable: $(STAMP)
	@test -e _build/html/index.html || $(MAKE) book
	$(call title,printable)
ifeq ($(CHROMIUM),)
	@$(RUN) -m book.tools.printable
	@echo "no PDF: no chromium here (make printable CHROMIUM=...); any browser prints the page"
else
	@$(RUN) -m book.tools.printable --folds $(FOLDS) --pdf $(CHROMIUM)
endif

## make release-check   wheels on each Python that is found, with an empty home; SMOKE=1: no tests
release-check:
	$(call title,release)
	@$(PYTHON) -m tests.release_check $(if $(SMOKE),--smoke) $(PYTHONS)

## make card            draw the preview of links, book/_static/card.png, in chromium
card: $(STAMP)
	@$(RUN) -m book.tools.card "$(CHROMIUM)"

## make counts          words, lines, cells, figures, exercises, rules
counts: $(STAMP)
	@$(RUN) -m book.tools.counts

## make owner NAME=you  set the account in every address of the repository; AT=v0.1.0: the tag, before a release
owner:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (make PYTHON=...)"; exit 1; }
	@$(PYTHON) -m book.tools.owner $(NAME) $(if $(AT),--at $(AT))

## make clean           remove the environments and all that was built
clean:
	rm -rf $(VENV) $(ORACLE) $(BENCH) $(COLAB) $(BROWSER) .venv-llvmlite-* _build build book/helper/build .pytest_cache .mypy_cache .ruff_cache

$(STAMP): requirements.txt constraints.txt pyproject.toml book/helper/pyproject.toml
	$(call title,environment)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (make PYTHON=...)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(RUN) $(PIP) -c constraints.txt -r requirements.txt
	@$(RUN) $(PIP) --no-build-isolation --no-deps -e . -e book/helper
	@touch $@
