#!/usr/bin/env bash
# The check of a whole machine with a GPU: builds for the GPU found, runs every test but those of emulated ones and of threads, the
# tests that use the GPU under compute-sanitizer, and keel's commands on both devices. Goes on after a failure, and ends what hangs;
# exit code 1 where anything failed.
#   gpu_check.sh --out FOLDER              what every stage printed and wrote (default build/gpu-check)
#   gpu_check.sh --only tests,compare      some of: tests, sanitizer, compare; each needs the build, which is made first
#   gpu_check.sh --build FOLDER            an existing build folder, not built again; also of what gpu_pack.sh packed
#   gpu_check.sh --minutes N               for the sanitizer at most (default 15)
#   gpu_check.sh --tools memcheck          some of the sanitizer's: memcheck, racecheck, initcheck
#   gpu_check.sh --data PATH               CASP.csv, or its folder: compares a short table1 too
#   gpu_check.sh --only compare --device emulated   on a machine without a GPU: against an emulated one (minutes)
#   gpu_check.sh --only compare --device cpu        CPU against CPU
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
exec </dev/null

die() { echo "gpu_check: $*" >&2; exit 1; }

out=build/gpu-check only=tests,sanitizer,compare device=cuda build= minutes=15 data=
tools=memcheck,racecheck,initcheck
limit=300  # seconds that a test binary may take, or one of keel's commands: what takes longer hangs
while (($#)); do
  (($# > 1)) || die "$1 needs a value"
  case $1 in
    --out) out=$2 ;;
    --only) only=$2 ;;
    --device) device=$2 ;;
    --build) build=$2 ;;
    --minutes) minutes=$2 ;;
    --tools) tools=$2 ;;
    --data) data=$(realpath "$2") || die "--data $2: no such file" ;;
    *) die "unknown option '$1' (--out, --only, --build, --minutes, --tools, --data, --device)" ;;
  esac
  shift 2
done
IFS=, read -ra wanted <<<"$only"
[[ $only && $tools ]] || die "--only and --tools want a name at least"
for stage in "${wanted[@]}"; do
  [[ $stage =~ ^(tests|sanitizer|compare)$ ]] || die "--only $only: wanted some of tests,sanitizer,compare"
done
IFS=, read -ra chosen_tools <<<"$tools"
for tool in "${chosen_tools[@]}"; do
  [[ $tool =~ ^(memcheck|racecheck|initcheck)$ ]] || die "--tools $tools: wanted some of memcheck,racecheck,initcheck"
done
[[ $device =~ ^(cuda|emulated|cpu)$ ]] || die "--device $device: wanted cuda, or for a rehearsal emulated or cpu"
[[ $minutes =~ ^[1-9][0-9]*$ ]] || die "--minutes $minutes: wanted a whole number from 1"
[[ $device == cuda || $only == compare ]] || die "--device $device rehearses --only compare alone"
[[ $device != emulated ]] || limit=1200  # there one takes two minutes on two cores that are free
export KEEL_SOURCE_DIR=$root OMP_WAIT_POLICY=passive PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
if [[ $device == cuda ]]; then
  gpu=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | head -1)
  [[ $gpu == *,* ]] || die "no GPU here: nvidia-smi names none"
  echo "gpu_check: $gpu"
fi
mkdir -p "$out" || die "cannot make $out"
out=$(realpath "$out")

passed=() failed=()
# show_failure LOG: the first lines that say what failed, and the last ones: some errors stay with a GPU, and then every later
# case fails too. ctest names a test before what it printed.
show_failure() {
  awk '
    { line[NR] = $0 }
    !test && /[*][*][*](Failed|Timeout|Exception|Not Run)/ { test = NR }
    !first && /ERROR: |[Ee]rror: |CMake Error|^FAIL|: exit code |these tests did not use/ { first = NR }
    !first && /^========= / && !/COMPUTE-SANITIZER|SUMMARY/ { first = NR }
    END {
      if (!first) first = test
      from = first ? first - 4 : NR - 19
      if (from < 1) from = 1
      to = from + 16 < NR ? from + 16 : NR
      if (test && test < from) print line[test] "\n..."
      for (i = from; i <= to; ++i) print line[i]
      if (to + 8 < NR) print "..."
      for (i = to + 8 < NR ? NR - 7 : to + 1; i <= NR; ++i) print line[i]
    }' "$1" | sed 's/^/          /'
}

# overtime CODE LIMIT: says so where `timeout` ended a command.
overtime() {
  case $1 in
    124) echo "stopped: not done within $2" ;;
    137) echo "killed: out of memory, or deaf after $2" ;;
  esac
}

# stage NAME COMMAND...: what it prints goes to NAME.log, as it is printed.
stage() {
  local name=$1 start=$SECONDS log
  log=$out/$(tr ' ' _ <<<"${name//,/}").log; shift
  if "$@" >"$log" 2>&1; then
    passed+=("$name"); echo "passed  $name, $((SECONDS - start)) s"
  else
    failed+=("$name"); echo "FAILED  $name, $((SECONDS - start)) s, $log:"
    show_failure "$log"
  fi
}

build_all() {
  local options=(-DKEEL_CUDA=OFF) targets=()
  if [[ $device == cuda ]]; then  # the emulated GPUs are `make test`'s: here they would only take time
    options=(-DKEEL_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$(tr -dc 0-9 <<<"${gpu##*,}")")
    targets=(--target keel keel_bench test_core test_kernels test_nn test_ntk test_experiments)
  fi
  cmake -S "$root" -B "$build" -G Ninja --log-level=NOTICE "${options[@]}" &&
    cmake --build "$build" -j "$(nproc)" "${targets[@]}"
}

# The binaries by themselves, where neither ctest nor what it knows of them need be.
run_binaries() {
  local folder code status=0
  for folder in core kernels nn ntk experiments; do
    timeout -k 10 "$limit" "$build/tests/test_$folder" && continue
    code=$? status=1
    echo "error: test_$folder: exit code $code"
    overtime $code "$limit s"
  done
  return $status
}

# run_tests, a stage: where CUDA sees no GPU, though nvidia-smi names one, all that need it pass and say so.
run_tests() {
  local printed=$log status unused
  if [[ -f $build/CTestTestfile.cmake ]]; then
    printed=$build/Testing/Temporary/LastTest.log
    ctest --test-dir "$build" --output-on-failure --no-tests=error --timeout $limit -E "$no_gpu"
  else
    run_binaries
  fi
  status=$?
  unused=$(grep -E '^SKIPPED|skipped: no GPU' "$printed" | grep -v 'wants two GPUs$') || return $status
  printf 'these tests did not use the GPU:\n%s\n' "$unused"
  return 1
}

# gpu_tests FOLDER: a doctest filter of the cases in tests/FOLDER whose text uses a GPU, but not two; a comma would end a name.
gpu_tests() {
  python3 - "$here/$1" <<'PYTHON'
import pathlib, re, sys
names = []
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.cpp")):
    for case in re.split(r"(?m)^TEST_CASE(?:_TEMPLATE)?\(", path.read_text())[1:]:
        name = re.match(r'\s*"((?:[^"\\]|\\.)*)"', case)
        if name and re.search(r"gpu_here\(|Device::cuda\(|no_gpu\(\)|skip_without_gpu|cuda_device_count\(\)", case) and "two_gpus(" not in case:
            names.append(re.sub(r'[,"\\]', "?", name.group(1)))
print(",".join(names))
PYTHON
}

sanitizer_has() { [[ $(compute-sanitizer --help 2>&1) == *"$1"* ]]; }

# Takes nearly all of a GPU's memory, of which the tools want as much for themselves.
too_large='a GPU*has the memory that was freed before*'

# sanitize TOOL FOLDER FILTER, a stage: races are looked for in keel's own kernels only.
sanitize() {
  local tool=$1 options=(--error-exitcode 99) left=$((sanitizer_end - SECONDS))
  ((left > 0)) || { echo "no time left of $minutes minutes: give --minutes a larger number"; return 1; }
  # The tests ask for memory that is not there, on purpose.
  # initcheck has to see what NVIDIA's own kernels write, or it takes that for never written. It would report copies of bytes that
  # nothing wrote and nobody reads, too: padding, an upper triangle. Their kernels read whole tiles of such a triangle, and drop what
  # is not theirs, and so do two of keel's: the swap of two triangles, and the product with a matrix of which one is kept. What counts
  # is reported in another kernel of keel's. So all reports are printed: the first hundred, as many as the tool prints by itself, may
  # be those libraries' alone; and without the host's side of each, which is the longer one.
  case $tool in
    memcheck) sanitizer_has --report-api-errors && options+=(--report-api-errors no) ;;
    racecheck) sanitizer_has --kernel-name && options+=(--kernel-name kns=keel) ;;
    initcheck)
      options=(--print-limit 0 --show-backtrace device)
      sanitizer_has --check-api-memory-access && options+=(--check-api-memory-access no)
      ;;
  esac
  KEEL_EXACT_BLOCKS=1 timeout -k 10 "$left" compute-sanitizer --tool "$tool" "${options[@]}" "$build/tests/test_$2" -tc="$3" -tce="$too_large"
  local status=$?
  overtime $status "$left s, all that was left of $minutes minutes"
  if [[ $tool == initcheck ]]; then
    local elsewhere ours
    ours=$(grep -E '^=========     at .*keel::' "$log" | grep -cvE 'mirror_kernel|Mirror|SymmetricTile')
    elsewhere=$(($(grep -cE '^=========     at ' "$log") - ours))
    ((elsewhere == 0)) || echo "$elsewhere reports in kernels that are not keel's, or that read a triangle which they drop"
    ((ours == 0)) || { echo "error: $ours reports in keel's kernels"; return 1; }
    ! grep -qE 'errors were (not printed|skipped)|records have been dropped' "$log" ||
      { echo "error: what was not printed may be in keel's kernels"; return 1; }
  fi
  # A pass says nothing where nothing was on the GPU. The log is the stage's, which has all that was printed.
  local unused
  unused=$(grep -E '^SKIPPED|skipped: no GPU|test cases: +0 ' "$log") || return $status
  printf 'these tests did not use the GPU:\n%s\n' "$unused"
  return 1
}

sanitize_all() {
  if ! command -v compute-sanitizer >/dev/null; then
    echo "FAILED  sanitizer: no compute-sanitizer on PATH; it is part of the CUDA toolkit"
    failed+=(sanitizer)
    return
  fi
  sanitizer_end=$((SECONDS + 60 * minutes))
  local tool folder filter
  for tool in "${chosen_tools[@]}"; do
    for folder in core kernels nn ntk; do
      filter=$(gpu_tests "$folder")
      [[ -z $filter ]] || stage "$tool $folder" sanitize "$tool" "$folder" "$filter"
    done
  done
}

# make_inputs FOLDER: a table of 200 rows and 60 of its inputs as .npy.
make_inputs() {
  mkdir -p "$1" && python3 - "$1" <<'PYTHON'
import math, random, struct, sys
draw = random.Random(1).gauss
rows = [[draw(0, 1) for _ in range(4)] for _ in range(200)]
with open(f"{sys.argv[1]}/data.csv", "w") as file:
    file.write("a,b,c,d,y\n")
    for row in rows:
        file.write(",".join(map(repr, [*row, math.sin(row[0]) + row[1] / 2])) + "\n")
header = "{'descr': '<f8', 'fortran_order': False, 'shape': (60, 4), }"
header += " " * (-(len(header) + 11) % 64) + "\n"
with open(f"{sys.argv[1]}/x.npy", "wb") as file:
    file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode())
    file.write(struct.pack("<240d", *sum(rows[:60], [])))
PYTHON
}

# run_commands DEVICE FOLDER: every command once, small; a folder each.
run_commands() {
  local where=(--device "$1" --quiet) to=$2 keel=$build/keel problems=0
  [[ $1 != emulated ]] || { where[1]=cuda; keel=$build/tests/keel_emulated_gpu; export KEEL_EMULATED_RACES=0; }
  local net="dense(64) layernorm relu dense(64) relu dense(1)"
  local infinite="dense(64) layernorm(affine=0) relu residual(dense(64) relu dense(64)) dense(1)"
  local table=(--data "$out/inputs/data.csv" --target y) x=$out/inputs/x.npy seeds=2 epochs=20
  [[ $device != emulated ]] || seeds=1 epochs=6
  rm -rf "$to"
  # once NAME COMMAND...
  once() {
    local name=$1 code; shift
    echo "=== $name"
    mkdir -p "$to/$name"
    timeout --foreground -k 10 "$limit" "$keel" "$@" "${where[@]}" --out "$to/$name" && return
    code=$? problems=1
    echo "=== $name: exit code $code"
    overtime $code "$limit s"
  }
  local figure
  for figure in fig1 fig5 fig6 rmsnorm residual activations; do once "$figure" reproduce "$figure" --seeds $seeds --epochs $epochs --no-plot; done
  # Nets that have learned more magnify what two devices round.
  once fig7 reproduce fig7 --seeds $seeds --epochs 2 --no-plot
  # Of the ops of fig7, whose rollouts take an emulated GPU a minute.
  [[ $device == emulated ]] || once prenorm reproduce prenorm --seeds $seeds --epochs 2 --no-plot
  once fig2 reproduce fig2 --seeds $seeds --no-plot
  once theory reproduce theory --seeds 1 --no-plot
  once ntk ntk --net "$infinite" --x1 "$x" --save "$to/ntk/kernel.npy"
  once ntk_empirical ntk --net "$net" --mode empirical --dtype f32 --seeds 2 --x1 "$x" --save "$to/ntk_empirical/kernel.npy"
  once regress regress --net "$infinite" "${table[@]}" --ridge-relative 1e-3 --save "$to/regress/predictions.csv"
  once regress_empirical regress --net "$net" --mode empirical "${table[@]}" --ridge-relative 1e-2 \
    --save "$to/regress_empirical/predictions.csv"
  once certify certify --net "$infinite" "${table[@]}" --ridge-relative 1e-2 --directions 32 --steps 5
  once train train --net "$net" "${table[@]}" --epochs 20 --seeds 2 --save "$to/train/predictions.csv" \
    --save-weights "$to/train/weights.safetensors"
  # Of the CPU's weights: those of another device differ as the trainings do.
  once predict predict --weights "$out/cpu/train/weights.safetensors" "${table[@]}" --save "$to/predict/predictions.csv"
  # Small, as its search asks for thousands of sequences. Without its weights: the bias of keys has no derivative but rounding, of
  # which Adam makes whole steps.
  once forecast forecast --data "$out/inputs/data.csv" --target a --length 3 --width 8 --heads 2 --hidden 8 --blocks 1 --batch 4 \
    --steps 2 --seeds 2 --hold-out 5 --ahead 3 --no-plot
  once train_batches train --net "$net" "${table[@]}" --epochs 5 --batch 64 --save "$to/train_batches/predictions.csv"
  [[ -z $data ]] || once table1 reproduce table1 --data "$data" --seeds 1 --epochs 3 --methods ln_every,ntk_ln_first \
    --ntk-rows 2000 --no-plot
  rm -rf "$to/table1/members"  # what a resumed run goes on from: times, and numbers of the tables again
  return $problems
}

# run_both DEVICE FOLDER OTHER: at the same time.
run_both() {
  local status=0
  run_commands "$1" "$3" >"$3.log" 2>&1 &
  run_commands "$1" "$2" || status=1
  wait $! || { status=1; cat "$3.log"; }
  return $status
}

compare_all() {
  local compare=$here/compare_runs.py second=$device
  stage "inputs" make_inputs "$out/inputs"
  stage "run cpu" run_commands cpu "$out/cpu"
  # At the same time: emulated ones have a core each, and on a GPU one disturbs the other.
  stage "run $second once and twice" run_both "$second" "$out/$second-1" "$out/$second-2"
  stage "two runs on $second, bit for bit" python3 "$compare" "$out/$second-1" "$out/$second-2" --exact
  if [[ $second == cpu ]]; then
    stage "cpu against cpu, bit for bit" python3 "$compare" "$out/cpu" "$out/cpu-1" --exact
  else
    stage "cpu against $second" python3 "$compare" "$out/cpu" "$out/$second-1"
  fi
}

if [[ -n $build ]]; then
  [[ -x $build/keel ]] || die "--build $build: no keel in it"
  build=$(realpath "$build")
else
  build=$root/build/gpu
  [[ $device == cuda ]] || build=$root/build/cpu
  stage "build" build_all
fi
[[ -x $build/keel ]] || die "nothing was built: see $out/build.log"
# They need no GPU: the kernels' tests on emulated ones and on threads, and what asks the former which kernels have run.
no_gpu='^(test_emulated|keel_emulated|test_threaded$|nvcc_ran_every_kernel$)'
for stage in "${wanted[@]}"; do
  case $stage in
    tests) stage "tests" run_tests ;;
    sanitizer) sanitize_all ;;
    compare) compare_all ;;
  esac
done
echo
echo "${#passed[@]} passed, ${#failed[@]} failed, $SECONDS s; logs in $out"
for stage in "${failed[@]}"; do echo "failed: $stage"; done
[[ ${#failed[@]} -eq 0 ]]
