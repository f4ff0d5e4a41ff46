# The front door. Every target is one step of CMake or CTest in build/; .ci/setup brings what they need.
BUILD  := build
JOBS   ?= $(shell nproc)
ARGS   ?=
REPORT ?=
PREFIX ?= /usr/local
MACHINE ?= $(shell uname -m)
CUDA   ?= 13

.PHONY: help setup configure lib install ci package-test by-hand run run-on-gpu run-simulated examples test \
        test-h100 test-gpu mutation soak fuzz cube bench first-hour first-hour-pack calibrate plot host-time \
        bench-sim ptx instances sass pages doxygen docs docs-test contest contest-test accuracy exchange torch \
        test-torch torch-host-time torch-linear torch-experts bench-model wheels wheels-test aarch64-test release \
        release-test abi format format-check clean
help:                 ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*##/ {printf "make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "JOBS=$(JOBS)                  processes at once"
	@echo "ARGS=\"...\"             what make bench hands to the benchmark"
	@echo "PREFIX=/usr/local      where make install puts the library; DESTDIR=... before that"
	@echo "MACHINE=x86_64 CUDA=13 of wheels: aarch64 and 12, too"
	@echo "DUALGEMM_NVCC=PATH     this compiler; DUALGEMM_NVCC=wheels: none that is installed (environment)"
	@echo "SIM_MACHINE=h200       another simulated GPU than b200 (environment)"

setup:                ## packages, and where there is none the CUDA compiler: all the others do this first
	@.ci/setup $(WANTED)

configure: setup      ## CMake in build/
	@NVCC=$$(sed -n 's/^NVCC := //p' $(BUILD)/cuda.mk) && \
	  cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DDUALGEMM_NVCC="$$NVCC" >$(BUILD)/configure.log || \
	  { cat $(BUILD)/configure.log; exit 1; }

# The library as it ships has a build folder of its own: its device code is compressed and names no lines of the source.
configure_lib = NVCC=$$(sed -n 's/^NVCC := //p' $(BUILD)/cuda.mk) && \
  cmake -S . -B $(BUILD)/lib -G Ninja -DCMAKE_BUILD_TYPE=Release -DDUALGEMM_NVCC="$$NVCC" -DDUALGEMM_DEVELOP=OFF \
        -DDUALGEMM_BUILD_TESTS=OFF -DDUALGEMM_BUILD_BENCH=OFF -DDUALGEMM_BUILD_SIM=$(1) -DDUALGEMM_BUILD_TUNE=$(1) \
        -DCMAKE_INSTALL_PREFIX="$(PREFIX)" $(2) >$(BUILD)/configure_lib.log || \
  { cat $(BUILD)/configure_lib.log; exit 1; }

lib:                  ## build/lib/libdualgemm.a and .so, with nothing but nvcc, a C++ compiler, CMake and Ninja
	@.ci/setup lib
	@$(call configure_lib,OFF)
	@cmake --build $(BUILD)/lib -j $(JOBS)

install:              ## library, CMake package, dualgemm.pc, dualgemm-sim, -report and -tune, into PREFIX
	@.ci/setup install
	@$(call configure_lib,ON)
	@cmake --build $(BUILD)/lib -j $(JOBS)
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD)/lib

# The operators for PyTorch, with the Python that .ci/setup has found, and the library beside them.
torch_python = $$(sed -n 's/^TORCH_PYTHON := //p' $(BUILD)/torch.mk)
torch: lib            ## build/lib/libdualgemm_torch.so, the operators for PyTorch, of which one is installed if need be
	@.ci/setup torch
	@cmake -S . -B $(BUILD)/lib -DDUALGEMM_TORCH=ON -DDUALGEMM_PYTHON="$(torch_python)" >$(BUILD)/configure_lib.log || \
	  { cat $(BUILD)/configure_lib.log; exit 1; }
	@cmake --build $(BUILD)/lib -j $(JOBS) --target dualgemm_torch dualgemm_shared

test-torch: torch configure ## the tests of these operators: on the CPU, the simulated GPU, and a GPU if there is one
	@cmake --build $(BUILD) -j $(JOBS) --target cudart_sim cuda_sim
	@export DUALGEMM_LIBRARY=$(BUILD)/lib/libdualgemm.so.0 DUALGEMM_TORCH_LIBRARY=$(BUILD)/lib/libdualgemm_torch.so && \
	  $(torch_python) test/python/torch_test.py host/python && \
	  $(torch_python) test/python/torch_operators_test.py host/python && \
	  $(torch_python) test/python/torch_direct_test.py host/python && \
	  $(torch_python) test/python/torch_nn_test.py host/python && \
	  $(torch_python) test/python/torch_nn_mxfp4_test.py host/python && \
	  $(torch_python) test/python/torch_nn_loading_test.py host/python && \
	  $(torch_python) test/python/torch_nn_running_test.py host/python && \
	  $(torch_python) test/python/torch_nn_ranks_test.py host/python && \
	  $(torch_python) test/python/torch_shared_test.py host/python && \
	  $(torch_python) test/python/torch_contender_test.py host/python $(CC) && \
	  $(torch_python) test/python/torch_experts_test.py host/python && \
	  { $(torch_python) test/python/torch_simulated_test.py host/python $(BUILD)/sim $(CC) b200 h100 || \
	    [ $$? = 77 ]; } && \
	  for name in torch_transformers_test torch_transformers_float_test torch_transformers_shared_test; do \
	    $(torch_python) test/python/$$name.py host/python || [ $$? = 77 ] || exit 1; done  # 77: no transformers

torch-host-time: torch ## what a call of every operator costs the CPU, beside PyTorch's own, on this machine's GPU
	@PYTHONPATH=host/python $(torch_python) bench/torch/host_time.py

torch-linear: torch   ## on a Hopper GPU: linear layers in PyTorch, beside torch.mm and kernels of others
	@PYTHONPATH=host/python $(torch_python) bench/torch/linear.py $(ARGS)

torch-experts: torch  ## on a Hopper GPU: layers of experts in PyTorch, beside torch._grouped_mm and kernels of others
	@PYTHONPATH=host/python PYTHONDONTWRITEBYTECODE=1 $(torch_python) bench/torch/experts.py $(ARGS)

bench-model: torch    ## on a Hopper GPU: a model of the package transformers in bf16 and in NVFP4, and errors
	@export PYTHONPATH=host/python PYTHONDONTWRITEBYTECODE=1 && $(torch_python) bench/torch/errors.py && \
	  $(torch_python) bench/torch/parallel.py && $(torch_python) bench/torch/model.py $(ARGS) && \
	  $(torch_python) bench/torch/model.py --models qwen3-8b --layers 6 --prefill 0 --contenders "bf16;dualgemm" --compile

package-test: WANTED := test
package-test: configure ## the library as it ships: built as a subproject, installed, linked in every way
	@cmake --build $(BUILD) -j $(JOBS)
	@python3 test/package/package.py . $(BUILD) $$(sed -n 's/^NVCC := //p' $(BUILD)/cuda.mk) --whole

# Files for every Linux with glibc 2.28, whatever this machine is. host/package/setup brings their compilers.
wheels:               ## build/wheels/: dualgemm-cu13 and dualgemm-sim-cu13 for pip, with the operators for PyTorch
	@.ci/setup torch
	@TORCH_PYTHON="$(torch_python)" host/package/build $(MACHINE) $(CUDA) $(JOBS)
	@python3 host/package/wheels.py $(MACHINE) $(CUDA) $(BUILD)/wheels
	@ls -l $(BUILD)/wheels

wheels-test:          ## these wheels in a bare Debian 12 without network, and their example in the simulator
	@host/package/setup $(MACHINE) $(CUDA)
	@python3 test/package/wheels_test.py . $(CUDA)

aarch64-test:         ## the wheels for aarch64 under qemu-user, and whether their GPU code is that of those for x86_64
	@.ci/setup aarch64-test
	@python3 test/package/aarch64_test.py . $(CUDA)

# RELEASED=machine/CUDA, of which make wheels has to know nvcc and a cross compiler.
RELEASED ?= x86_64/13 x86_64/12 aarch64/13 aarch64/12
release:              ## build/release/: sources, tarballs and wheels of RELEASED, SHA256SUMS, SPDX; a commit's bytes
	@for one in $(RELEASED); do \
	   $(MAKE) --no-print-directory wheels MACHINE=$${one%/*} CUDA=$${one#*/} || exit 1; done
	@python3 -B host/package/release.py $(BUILD)/release $(RELEASED)

release-test: release ## that release once more, from a clone in another folder: the same bytes, and do they work?
	@rm -rf "$(BUILD)/another folder"
	@git clone -q . "$(BUILD)/another folder"
	@TORCH_PYTHON="$(torch_python)" $(MAKE) -C "$(BUILD)/another folder" --no-print-directory release
	@python3 test/package/release_test.py . $(CUDA) "$(torch_python)" "$(BUILD)/another folder/build/release"

abi:                  ## do programs of 0.2 run with the library that dualgemm.h describes? abidiff's answer
	@.ci/setup abi
	@python3 test/package/abi.py . "$$(dirname $$(sed -n 's/^NVCC := //p' $(BUILD)/cuda.mk))/../include"

by-hand: configure    ## the library by the commands of host/BUILDING.md, without CMake, and a program that uses it
	@cmake --build $(BUILD) -j $(JOBS) --target cudart_sim cuda_sim
	@python3 test/package/package.py . $(BUILD) $$(sed -n 's/^NVCC := //p' $(BUILD)/cuda.mk) --by-hand

run:                  ## build the library and a small C program that uses it, and run that
	@if test/has_gpu.sh >/dev/null; then $(MAKE) --no-print-directory run-on-gpu; \
	  else $(MAKE) --no-print-directory run-simulated; fi

# As a user would: the library as it ships, and the README's line.
run-on-gpu: lib
	@mkdir -p $(BUILD)/example
	@cuda=$$(dirname "$$(dirname "$$(sed -n 's/^NVCC := //p' $(BUILD)/cuda.mk)")") && \
	  gcc -Ihost/include -I$$cuda/include test/example/quickstart.c $(BUILD)/lib/libdualgemm.a -L$$cuda/lib64 -lcudart \
	    -lstdc++ -lm -o $(BUILD)/example/quickstart
	@test/on_gpu.sh $(BUILD) $(BUILD)/example/quickstart

run-simulated: configure
	@cmake --build $(BUILD) -j $(JOBS) --target example_quickstart cudart_sim cuda_sim
	@LD_LIBRARY_PATH=$(BUILD)/sim $(BUILD)/example/quickstart

examples: configure   ## build the examples, a page of code for each way to use the library; list and run them
	@cmake --build $(BUILD) -j $(JOBS) --target examples
	@test/example/run.sh $(BUILD)

test: WANTED := test
test: configure       ## build everything and run every test
	@cmake --build $(BUILD) -j $(JOBS)
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error

ci:                   ## what a change has to pass: make format-check, then make test
	@.ci/run

test-h100: configure  ## the kernels for compute capability 9.0 on the simulated H100: part of it is in make test
	@cmake --build $(BUILD) -j $(JOBS) --target kernel_test
	@DUALGEMM_TEST_ALL=1 SIM_MACHINE=h100 $(BUILD)/kernel_test -f test/kernel/on_h100.txt -d yes

test-gpu: configure   ## the tests of the kernels that need no simulator, on this machine's GPU
	@cmake --build $(BUILD) -j $(JOBS) --target kernel_test_gpu
	@test/on_gpu.sh $(BUILD) $(BUILD)/kernel_test_gpu $(or $(ARGS),"~[.]~[simulated],[.full]")

mutation: configure   ## plant bugs in the shipping kernel: which of them does the simulator catch and name?
	@cmake --build $(BUILD) -j $(JOBS) --target mutation defects_test conformance_test
	@$(BUILD)/mutation --json $(BUILD)/mutation.json
	@SIM_MACHINE=h100 $(BUILD)/mutation --json $(BUILD)/mutation_h100.json
	@$(BUILD)/defects_test '[.many]'
	@$(BUILD)/conformance_test '[.many]'

soak: configure       ## the shipping kernel under thousands of schedules: nothing may be found
	@cmake --build $(BUILD) -j $(JOBS) --target soak
	@$(BUILD)/soak
	@SIM_MACHINE=h100 $(BUILD)/soak

fuzz: configure       ## ten million inputs for the host side, one for the simulator's readers, under sanitizers
	@cmake --build $(BUILD) -j $(JOBS) --target fuzz
	@test/fuzz/run.sh $(BUILD)/fuzz_test $(JOBS) -runs=$$((10000000 / $(JOBS)))
	@test/fuzz/run.sh $(BUILD)/fuzz_readers $(JOBS) -runs=$$((1000000 / $(JOBS))) -max_len=65536 \
	  -seed_inputs=$(BUILD)/test/fuzz/readers/program.fatbin,$$(echo test/fuzz/readers/seeds/*.ptx | tr ' ' ,)

cube: configure       ## every combination of what a launch may ask for, every instance with edges, all test lists
	@cmake --build $(BUILD) -j $(JOBS) --target kernel_test cudart_sim cuda_sim
	@DUALGEMM_TEST_ALL=1 LD_LIBRARY_PATH=$(BUILD)/sim $(BUILD)/kernel_test "[.cube],[.full],~[.]"

bench: configure      ## verify, then measure, beside cuBLASLt; without such a GPU, what the cost model expects
	@cmake --build $(BUILD) -j $(JOBS) --target dualgemm_bench cudart_sim cuda_sim
	@test/run_anywhere.sh $(BUILD) $(BUILD)/dualgemm_bench $(ARGS)

FIRST_HOUR := dualgemm_bench kernel_test_gpu microbenchmarks accuracy dualgemm-tune
first-hour: configure ## on any GPU: verify every instance, measure the cost model's constants, times, tune; a page
	@cmake --build $(BUILD) -j $(JOBS) --target $(FIRST_HOUR) cudart_sim cuda_sim
	@python3 -B bench/first_hour/first_hour.py $(ARGS)

# Programs with the device code of the library as it ships, which is a twentieth of that of the tests' build.
first-hour-pack: configure ## build/first-hour-pack/: the folder to copy to a machine without nvcc, for its first hour
	@$(call configure_lib,ON,-DDUALGEMM_BUILD_TESTS=ON -DDUALGEMM_BUILD_BENCH=ON)
	@cmake --build $(BUILD)/lib -j $(JOBS) --target $(FIRST_HOUR)
	@python3 -B bench/first_hour/first_hour.py --programs $(BUILD)/lib --pack $(BUILD)/first-hour-pack

calibrate: configure  ## the constants as measured, choices that change, predicted and measured: of REPORT, or a run
	@cmake --build $(BUILD) -j $(JOBS) --target dualgemm_bench
	-@$(if $(REPORT),,$(MAKE) --no-print-directory first-hour \
	    ARGS="--steps machine,constants,contest,decode,experts,large,instances")
	@test/run_anywhere.sh $(BUILD) $(BUILD)/dualgemm_bench --calibrate \
	  $(or $(REPORT),$(BUILD)/first-hour/first_hour.json)

plot: configure       ## build/plots/: roofline, times by M, others, parts of a launch; of REPORT=FILE.json or a run
	@.ci/setup plot
	@mkdir -p $(BUILD)/plots
	@$(if $(REPORT),,$(MAKE) --no-print-directory bench ARGS="$(if $(ARGS),$(ARGS),--suite contest,decode,prefill,rows) \
	    --json $(BUILD)/plots/report.json")
	@PYTHONPATH=$(BUILD)/matplotlib python3 bench/plot.py $(or $(REPORT),$(BUILD)/plots/report.json) $(BUILD)/plots

host-time: configure  ## what a call costs the CPU, on a CUDA runtime that does nothing
	@cmake --build $(BUILD) -j $(JOBS) --target host_time host_time_twice
	@$(BUILD)/host_time && echo && $(BUILD)/host_time_twice

bench-sim: configure  ## how fast the simulated GPU runs five kinds of programs, and what its judge costs
	@cmake --build $(BUILD) -j $(JOBS) --target sim_speed
	@$(BUILD)/sim_speed $(ARGS)

ptx: configure        ## the PTX of every kernel instance, into build/ptx/
	@cmake --build $(BUILD) -j $(JOBS) --target ptx

instances: configure  ## every kernel instance: tile, cluster, stages, registers, memory
	@cmake --build $(BUILD) -j $(JOBS) --target dualgemm_bench cudart_sim cuda_sim >/dev/null
	@LD_LIBRARY_PATH=$(BUILD)/sim $(BUILD)/dualgemm_bench --instances | \
	  python3 bench/instances.py $(BUILD)/kernel/*/instances/*.log

pages: configure      ## write the generated tables and drawings of the pages anew (make test compares them)
	@cmake --build $(BUILD) -j $(JOBS) --target dualgemm_bench dualgemm-sim >/dev/null
	@python3 test/tree/tables.py $(BUILD) --write
	@python3 host/drawing/scale_factors.py
	@python3 bench/speed_up.py
	@python3 bench/model_speed_up.py
	@python3 bench/models.py

doxygen:              ## dualgemm.h as HTML, into build/doxygen/; what has no comment is an error
	@.ci/setup doxygen
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) --target doxygen

docs:                 ## build/docs/: all pages, the reference of C and Python, and benchmarks, as a site
	@.ci/setup docs
	@rm -rf $(BUILD)/docs
	@$(BUILD)/sphinx/bin/python -B -m sphinx -q -E -W --keep-going -c host/docs -d $(BUILD)/doctrees . $(BUILD)/docs
	@echo "$(BUILD)/docs/index.html"

docs-test: docs       ## that site in a Chromium: links, errors, pictures, and on a telephone
	@.ci/setup docs-test
	@$(BUILD)/sphinx/bin/python -B test/tree/site.py $(BUILD)/docs

sass: configure       ## the machine code of every instance against its limits; ptxas takes the PTX of every test
	@cmake --build $(BUILD) -j $(JOBS) --target dualgemm instances assembled conformance_record >/dev/null
	@python3 test/sass/check.py $(BUILD)/test/sass/instances.json $(BUILD)/libdualgemm.a

contest: configure    ## the kernel as one file for the public NVFP4 contest, build/contest/submission.py
	@cmake --build $(BUILD) -j $(JOBS) --target contest

contest-test: contest ## that file in the simulator, all of the contest's problems against the library's bits
	@ctest --test-dir $(BUILD) -C contest -R '^contest: (nvcc|.* all problems)' --output-on-failure --no-tests=error

accuracy: configure   ## the accuracy of the activation in its three forms, on the GPU of this machine
	@cmake --build $(BUILD) -j $(JOBS) --target accuracy
	@test/on_gpu.sh $(BUILD) $(BUILD)/accuracy

exchange: configure   ## what CTAs of a cluster take to exchange sums, by two protocols, on a Hopper or Blackwell GPU
	@cmake --build $(BUILD) -j $(JOBS) --target microbenchmarks
	@test/on_gpu.sh $(BUILD) $(BUILD)/microbenchmarks --only exchange

format:               ## clang-format every source file
	@.ci/format

format-check:         ## is every source file as `make format` leaves it?
	@.ci/format --check

clean:                ## remove build/
	@rm -rf $(BUILD)
