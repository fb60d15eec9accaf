# Thin front for people; CMake and Ninja do the work. `make demo` and `make test` need nothing but a Debian machine.
BUILD ?= build
JOBS ?= $(shell nproc)
# Tests at once: two more than cores, because some wait (for ranks, for signals, for a disk).
TESTS ?= $(shell expr $(JOBS) + 2)
PREFIX ?= /usr/local
# Seconds that `make test` gives each fuzz target.
SMOKE ?= 1
SECONDS ?= 600
# Of test-torture: one case of so many.
EVERY ?= 1
# Updates of healthy runs that test-steer makes in all.
UPDATES ?= 100000
# Of test-peers: with numpy, torch, safetensors, transformers, torchvision, librosa, pandas and scikit-learn.
PYTHON ?= python3

.PHONY: help setup setup-test build build-test demo test test-slow test-torture test-steer test-compare test-truth test-faults test-gpu test-page test-peers test-ranks test-package fuzz bench check abi install package wheel clean
help:
	@echo "make demo       install what is missing, build, train the default model in FP32 and mixed precision"
	@echo "make test       install what is missing, build, run all tests, also under the sanitizers"
	@echo "make build      build/mixt, the library, examples and tests"
	@echo "make test-slow  conversions over all 2^32 inputs, and training to full accuracy (much longer)"
	@echo "make test-steer a controlled run killed 20 times, what controllers do in UPDATES=$(UPDATES) healthy updates of every model, and learning rates up to 1000 times too high"
	@echo "make test-page  pages of runs in a real browser (installs Chromium)"
	@echo "make test-ranks every model and format on 2 and 4 ranks with every dist.zero: the bits of one process; ranks killed, stopped and overflowing alone, 50 and 100 times; faults of one rank diagnosed, 100 times; compressed gradients (many minutes)"
	@echo "make test-torture  random sequences of C calls; each command with its n-th allocation and its n-th system call failing, for every n (hours; EVERY=$(EVERY): one case of so many)"
	@echo "make test-gpu   op tests and whole runs on the GPU (SANITIZE=1: also under compute-sanitizer)"
	@echo "make test-compare  verdicts on MNIST and tiny Shakespeare, 10 A/A experiments of each; error rates over 10000 simulated ones"
	@echo "make test-truth  cases with known answers (models, data, formats, planted faults) through all tools that judge: wrong verdicts and contradictions fail (half an hour)"
	@echo "make test-faults 140 faults at random places in whole runs that look after themselves, in models and data that detectors were not built on (half an hour)"
	@echo "make test-peers exports loaded by transformers and torchvision, steps of Llama, families of decoders, statistics next to SciPy's, tables next to scikit-learn (PYTHON=… that has them; says what it leaves out)"
	@echo "make fuzz       every file reader under libFuzzer, SECONDS=600 each (needs clang and its runtime, libclang-rt-14-dev)"
	@echo "make bench      speed of conversions, kernels and of each benchmark model on this machine"
	@echo "make check      formatting, include order, static analysis"
	@echo "make abi        renews the record of the binary interface (tests/abi), where a change of it is meant"
	@echo "make package    $(BUILD)-package/dist: an archive to unpack anywhere, and Debian packages (the CUDA backend in both where nvcc is; PACKAGE=-DMIXT_CUDA=OFF leaves it out)"
	@echo "make wheel      dist/mixt-*.whl for pip, and mixt_cuda-*.whl where nvcc is (WHEEL=-DMIXT_CUDA=OFF leaves it out)"
	@echo "make test-package  both on a bare Debian 12, made by debootstrap (needs root)"
	@echo "make install    library, headers, command, man pages, completion (PREFIX=$(PREFIX))"

setup:
	@tools/setup.sh

CONFIGURE = cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(PREFIX)
# Where there is no GPU the CUDA backend can only be compiled and loaded: for a test it is built for the newest of its
# architectures, whose kernels are the most, quickly. `make build`, and whatever runs or installs it, builds it for all, optimized.
FEW = $(BUILD)/few-architectures
$(BUILD)/build.ninja:
	@if [ -e /dev/nvidiactl ]; then $(CONFIGURE); \
	else $(CONFIGURE) -DMIXT_CUDA_ARCHITECTURES=90a-real -DMIXT_CUDA_QUICK=ON && touch $(FEW); fi

# Programs that no test runs are no part of it: benches, slow_tests, gpu_tests, peers are built where they are needed.
BUILD_TARGET = cmake --build $(BUILD) -j $(JOBS) --target
build: setup $(BUILD)/build.ninja
	@[ ! -e $(FEW) ] || { cmake -S . -B $(BUILD) -DMIXT_CUDA_ARCHITECTURES= -DMIXT_CUDA_QUICK=OFF > /dev/null && rm $(FEW); }
	$(BUILD_TARGET) all

setup-test:
	@tools/setup.sh test
build-test: setup-test $(BUILD)/build.ninja
	@grep -q libmixt_mpi $(BUILD)/build.ninja || cmake -S . -B $(BUILD) > /dev/null # Open MPI may be new
	$(BUILD_TARGET) all

# The command alone; where there is a GPU, its backend too.
demo: setup $(BUILD)/build.ninja
	@if [ -e /dev/nvidiactl ]; then $(MAKE) -s build; else $(BUILD_TARGET) mixt; fi
	$(BUILD)/mixt demo

test: build-test
	cmake -S . -B $(BUILD)-sanitize -G Ninja -DMIXT_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo > /dev/null
	cmake --build $(BUILD)-sanitize -j $(JOBS) --target sanitized
	ctest --test-dir $(BUILD)-sanitize -j $(TESTS) --output-on-failure -L sanitize
	MIXT_FUZZ_SECONDS=$(SMOKE) ctest --test-dir $(BUILD)-sanitize -j $(JOBS) --output-on-failure -L fuzz
	ctest --test-dir $(BUILD) -j $(TESTS) --output-on-failure -LE once

test-slow: build
	$(BUILD_TARGET) slow_tests
	tests/slow/run.sh $(BUILD) || [ $$? = 77 ]
	bash tests/slow/finetune.sh $(BUILD)/mixt || [ $$? = 77 ]
	MIXT_DEVICE=cpu $(BUILD)/tests/test_search 3

test-steer: build
	bash tests/slow/decisions.sh $(BUILD)/mixt 20
	bash tests/slow/calm.sh $(BUILD)/mixt $(UPDATES)
	bash tests/slow/rates.sh $(BUILD)/mixt

test-ranks: build
	bash tests/slow/rank_overflows.sh $(BUILD)/mixt 100
	bash tests/slow/rank_kills.sh $(BUILD)/mixt 50
	bash tests/slow/rank_faults.sh $(BUILD)/mixt 100
	bash tests/slow/decisions.sh $(BUILD)/mixt 20 4000 cpu 2 dist.zero=1
	bash tests/slow/rank_compress.sh $(BUILD)/mixt
	bash tests/slow/ranks_bits.sh $(BUILD)/mixt

test-torture: build
	$(BUILD)/tests/torture_calls 20000
	bash tests/torture/run.sh $(BUILD)/mixt $(BUILD)/tests/libtest_faults.so $(EVERY) || [ $$? = 77 ]

test-compare: build
	bash tests/slow/compare.sh $(BUILD)/mixt
	$(BUILD)/tests/test_stats_calibration 10000

test-truth: build
	bash tests/truth/run.sh $(BUILD)/mixt

test-faults: build
	bash tests/truth/faulty.sh $(BUILD)/mixt
	bash tests/truth/resumed.sh $(BUILD)/mixt

test-gpu: build
	$(BUILD_TARGET) gpu_tests
	SANITIZE=$(SANITIZE) tests/gpu/run.sh $(BUILD)

test-peers: build
	$(BUILD_TARGET) peers
	$(PYTHON) tests/peers/compare_exports.py $(BUILD)/mixt $(BUILD)/tests/logits || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_gguf.py $(BUILD)/mixt || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_onnx_export.py $(BUILD)/mixt $(BUILD)/tests || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_llama.py $(BUILD)/tests/steps --layers 2 || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_families.py $(BUILD)/mixt $(BUILD)/tests/logits || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_stats.py $(BUILD)/tests/stats || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_bleu.py $(BUILD)/tests/bleu || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_ctc.py $(BUILD)/tests/ctc || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_audio.py $(BUILD)/tests/features || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_chat.py $(BUILD)/tests/chat ../shared/data || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_cells.py $(BUILD)/tests/cells || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_tables.py $(BUILD)/mixt || [ $$? = 77 ]
	$(PYTHON) tests/peers/compare_python.py $(BUILD)/python || [ $$? = 77 ]

test-page: build
	tests/page/run.sh $(BUILD)

fuzz: setup
	cmake -S tests/fuzz -B $(BUILD)-fuzz -G Ninja -DCMAKE_C_COMPILER=clang > /dev/null
	cmake --build $(BUILD)-fuzz -j $(JOBS)
	tests/fuzz/run.sh $(BUILD)-fuzz $(SECONDS)

bench: build
	$(BUILD_TARGET) benches
	tools/bench.sh $(BUILD)

check:
	tools/check.sh

abi: build
	bash tests/abi/record.sh $(BUILD)/libmixt.so --renew

install: build
	cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) > /dev/null
	cmake --install $(BUILD)

package: setup
	tools/package.sh $(BUILD)-package $(PACKAGE)

wheel: setup
	tools/wheel.sh $(BUILD)-wheel $(WHEEL)

test-package: package wheel
	bash tests/package/bare.sh $(BUILD)-package/dist || [ $$? = 77 ]
	bash tests/package/wheel.sh dist || [ $$? = 77 ]

clean:
	rm -rf $(BUILD) $(BUILD)-sanitize $(BUILD)-fuzz $(BUILD)-package $(BUILD)-wheel
