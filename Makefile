# The commands of the project; `make help` lists them. CMake and Ninja do the work in build/<preset>.
# SETUP=skip: install nothing (the libraries are there in another way). VERBOSE=1: show what apt, CMake and Ninja say.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
SETUP ?= tools/setup.sh
export VERBOSE
setup = $(if $(filter skip,$(SETUP)),@true,@$(SETUP) $(1))
# The tests' targets leave their JUnit report there, for .ci/run. SLICE=2,,4: every fourth test, from the second on.
comma := ,
test = ctest --preset $(1) -j $(JOBS) $(if $(SLICE),-I $(SLICE)) \
       --output-junit $(CURDIR)/build/$(1)/tests$(firstword $(subst $(comma), ,$(SLICE))).xml

.PHONY: help build quickstart test test-asan test-tsan test-fuzz chaos bench docs docs-site format lint tidy clean
help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build:  ## the program, build/release/bin/tokamak
	$(call setup,build test)
	@tools/build.sh release tokamak

quickstart:  ## train on real text, sample, show the speed ladder (TEXT=path: on your own text)
	$(call setup,build test $(if $(TEXT),,quickstart))
	@$(MAKE) --no-print-directory SETUP=skip build
	@TEXT="$(TEXT)" runs/quickstart.sh

test:  ## build and run all tests
	$(call setup,build test perfetto tensorboard)
	@tools/build.sh release
	@$(call test,release)

test-asan:  ## the fast tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory sanitized-asan

test-tsan:  ## the tests with threads under ThreadSanitizer
	@$(MAKE) --no-print-directory sanitized-tsan

# Without clang there is nothing to run; that is said, not hidden.
test-fuzz:  ## each parser of files on random input for some seconds (libFuzzer, with AddressSanitizer)
	$(call setup,build test fuzz)
	@if command -v clang++ >/dev/null 2>&1; then $(MAKE) --no-print-directory sanitized-fuzz; \
	 else echo "fuzz: SKIPPED, clang++ is not installed (apt-get install clang)"; fi

sanitized-%:
	$(call setup,build test)
	@tools/build.sh $*
	@$(call test,$*)

chaos: build  ## kill, starve and damage prepare and train on purpose (CASES=100 of each kind)
	@python3 tests/chaos/chaos.py build/release/bin/tokamak --cases=$(or $(CASES),100)

bench:  ## the speed measurements of bench/
	$(call setup,build test)
	@tools/build.sh release
	@for program in build/release/bin/bench_*; do echo "== $$program"; $$program || exit 1; done

docs: build  ## write docs/cli.md from the program
	@build/release/bin/tokamak docs > build/cli.md && cp build/cli.md docs/cli.md

docs-site:  ## the documents as a site with search, build/docs-site/site (mkdocs-material from PyPI)
	@tools/docs_site.sh

format:  ## format all C++ files
	@tools/check_format.py --write

lint:  ## layers, sizes, test folders, links of the docs, format
	$(call setup,lint)
	@tools/lint.sh

tidy: build  ## clang-tidy on all sources (slow)
	$(call setup,tidy)
	@find src cli -name '*.cpp' | xargs -P $(JOBS) -n 4 clang-tidy -p build/release --quiet

clean:  ## remove the build folder
	rm -rf build
