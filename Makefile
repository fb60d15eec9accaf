# Thin front for people; CMake and Ninja do the work. `make demo` and `make test` need nothing but a Debian machine.
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: help build demo test bench check install clean setup
help:
	@echo "make demo     install what is missing, build, train the default model in FP32 and mixed precision"
	@echo "make test     install what is missing, build, run all tests (10 minutes on 2 cores)"
	@echo "make build    build/mixt, the library, examples and tests"
	@echo "make bench    speed of conversions and of each benchmark model on this machine"
	@echo "make check    formatting, include order, static analysis"
	@echo "make install  library, headers, command, man pages, completion (PREFIX=/usr/local)"

setup:
	@tools/setup.sh

$(BUILD)/build.ninja:
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_INSTALL_PREFIX=$(or $(PREFIX),/usr/local)

build: setup $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

test: build
	ctest --test-dir $(BUILD) --output-on-failure

check:
	tools/check.sh

clean:
	rm -rf $(BUILD) build-*
