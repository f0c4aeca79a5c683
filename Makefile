# The README's two commands are `make test` and `make figures`; each first sets up what is missing.
PRESET ?= default
JOBS ?= $(shell nproc)
RESULTS ?= bench/results
KEEL = build/keel
TARGET = keel
SOURCES = $(shell find core kernels nn ntk experiments tests bench keel.h -name '.?*' -prune -o \
            \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print 2>/dev/null)

.PHONY: help setup build test figures table1 bench gpu-check gpu-pack rtx3090 format format-check asan tsan clean

help:
	@echo "make test          set up, build, run every test"
	@echo "make figures       set up, build, reproduce the figures into figures/"
	@echo "make table1 DATA=PATH  set up, build, the protein experiment into table1/ (an hour; goes on where it was)"
	@echo "make setup         install what is missing (Debian, Ubuntu)"
	@echo "make build         the command at build/keel"
	@echo "make bench         verify, then time, beside other libraries: DEVICE-DATE.json in RESULTS=bench/results (ARGS=--quick: in minutes)"
	@echo "make gpu-check     on a machine with a GPU: tests, compute-sanitizer, CPU against GPU (ARGS='--only tests,compare')"
	@echo "make gpu-pack      build that, and the benchmarks, for a machine where nothing can be installed (ARGS='--arch 90')"
	@echo "make rtx3090       what an RTX 3090 should do, predicted from a CUDA build: bench/RTX3090.md"
	@echo "make asan          tests under the address and undefined-behaviour sanitizers"
	@echo "make tsan          every kernel run by 32 threads under the thread sanitizer"
	@echo "make format        lay out the sources; format-check only looks"
	@echo "make clean         remove build/"
	@echo "PRESET=cpu|cuda|clang|ci builds into build/<preset> instead; JOBS=N compilers at a time"

setup:
	@cmake/setup.sh

build: setup
	@cmake --preset $(PRESET) --log-level=NOTICE
	@cmake --build --preset $(PRESET) -j $(JOBS) --target $(TARGET)

test:
	@$(MAKE) --no-print-directory build TARGET=all
	@ctest --preset $(PRESET)

figures:
	@cmake/setup.sh --plot
	@$(MAKE) --no-print-directory build PRESET=default
	$(KEEL) reproduce figures --out figures

# The protein data of the UCI archive (DOI 10.24432/C5QW3H): make table1 DATA=folder-of-CASP.csv
table1:
	@[ -f "$(DATA)" ] || [ -f "$(DATA)/CASP.csv" ] || [ -f "$(DATA)/CASP.txt" ] || { \
	  echo "make table1 DATA=PATH: got '$(DATA)', wanted CASP.csv or CASP.txt, or the folder that holds it" >&2; exit 2; }
	@cmake/setup.sh --plot --table1
	@$(MAKE) --no-print-directory build PRESET=default
	$(KEEL) reproduce table1 --data "$(DATA)" --out table1 --resume

bench:
	@$(MAKE) --no-print-directory build PRESET=default TARGET=keel_bench
	build/keel_bench --results $(RESULTS) $(ARGS)

gpu-check: setup
	@tests/gpu_check.sh $(ARGS)

asan:
	@$(MAKE) --no-print-directory test PRESET=asan

# The thread sanitizer of older compilers wants addresses where they always were.
tsan:
	@$(MAKE) --no-print-directory build PRESET=tsan TARGET=test_threaded
	@if setarch -R true 2>/dev/null; then setarch -R ctest --preset tsan; else ctest --preset tsan; fi

gpu-pack: setup
	@tests/gpu_pack.sh $(ARGS)

# A fresh folder, as only compiling a kernel makes ptxas report on it. No GPU is needed.
rtx3090: setup
	@rm -rf build/rtx3090 && mkdir -p build/rtx3090
	@cmake --preset cuda -B build/rtx3090 --log-level=NOTICE -DCMAKE_CUDA_FLAGS=-Xptxas=-v -DCMAKE_CUDA_ARCHITECTURES=86
	@cmake --build build/rtx3090 --target keel_library -j $(JOBS) >build/rtx3090/build.log 2>&1 || \
	  { grep -v 'ptxas info\|bytes stack' build/rtx3090/build.log | tail -60; exit 1; }
	@python3 bench/rtx3090.py build/rtx3090/build.log

format:
	@clang-format -i $(SOURCES)

format-check:
	@clang-format --dry-run --Werror $(SOURCES)

clean:
	rm -rf build
