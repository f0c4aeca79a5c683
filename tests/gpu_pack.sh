#!/usr/bin/env bash
# What checks and times keel on a machine with a GPU where nothing can be installed or built, such as one that is lent by the
# minute: tests, benchmarks, keel, and the libraries they need, built here and packed into one file. No GPU is needed here.
#   gpu_pack.sh --arch 90                   of the GPU there: 86 (RTX 3090), 90 (H100, H200); several: "86;90"
#   gpu_pack.sh --out FILE.tar.xz           what is written (default build/keel-gpu.tar.xz), never over a file
#   gpu_pack.sh --cpu x86-64-v3             what the processor there is sure to have (default: AVX2 and what came with it)
#   gpu_pack.sh --build FOLDER              a build folder that an earlier call made, not built again
# There, with a driver and the toolkit's cuBLAS, cuSOLVER and compute-sanitizer, and no older a glibc than here:
#   tar xf keel-gpu.tar.xz
#   keel-gpu/tests/gpu_check.sh --build keel-gpu/build --out FOLDER      --only tests,compare and so on
#   KEEL_SOURCE_DIR=$PWD/keel-gpu keel-gpu/build/keel_bench --device cuda --results FOLDER
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
exec </dev/null

die() { echo "gpu_pack: $*" >&2; exit 1; }

arch= out=$root/build/keel-gpu.tar.xz cpu=x86-64-v3 build=
while (($#)); do
  (($# > 1)) || die "$1 needs a value"
  case $1 in
    --arch) arch=$2 ;;
    --out) out=$(realpath -m "$2") ;;
    --cpu) cpu=$2 ;;
    --build)
      [[ -d $2 ]] || die "--build $2: no such folder"
      build=$(realpath "$2")
      ;;
    *) die "unknown option '$1' (--arch, --out, --cpu, --build)" ;;
  esac
  shift 2
done
[[ $out == *.tar.xz ]] || die "--out $out: wanted a name that ends in .tar.xz"
[[ ! -e $out ]] || die "$out is there already: give --out another name"
[[ $build || $arch =~ ^[0-9]+(\;[0-9]+)*$ ]] || die "--arch '$arch': wanted a GPU's generation, as 86, 90 or \"86;90\""
command -v xz >/dev/null || die "no xz here, wanted it for $out"

tests=(core kernels nn ntk experiments)
if [[ -z $build ]]; then
  build=$root/build/gpu-pack
  # rpath, not runpath: it is for the libraries' own libraries as well.
  cmake -S "$root" -B "$build" -G Ninja --log-level=NOTICE -DKEEL_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$arch" \
    -DKEEL_NATIVE=OFF -DKEEL_UNITY=ON "-DCMAKE_CXX_FLAGS=-march=$cpu" "-DCMAKE_CUDA_FLAGS=-Xcompiler=-march=$cpu" \
    '-DCMAKE_BUILD_RPATH=$ORIGIN/../lib;$ORIGIN/../../lib;/usr/local/cuda/lib64' \
    "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags"
  cmake --build "$build" -j "$(nproc)" --target keel keel_bench "${tests[@]/#/test_}"
fi
programs=("$build/keel" "$build/keel_bench" "${tests[@]/#/$build/tests/test_}")
for program in "${programs[@]}"; do [[ -x $program ]] || die "--build $build: no $(basename "$program") in it"; done

staged=$(mktemp -d "$root/build/gpu-pack-XXXXXX")
trap 'rm -rf "$staged"' EXIT
to=$staged/keel-gpu
mkdir -p "$to/build/tests" "$to/lib" "$to/bench"
cp "${programs[@]:0:2}" "$to/build"
cp "${programs[@]:2}" "$to/build/tests"
strip --strip-debug "$to"/build/keel "$to"/build/keel_bench "$to"/build/tests/test_*
# All but what belongs to the system, the driver and the toolkit there.
ldd "${programs[@]}" | awk '/=> \//{print $1, $3}' | sort -u |
  grep -vE '^(lib(c|m|dl|rt|pthread|util)\.so|ld-linux|lib(cuda|cublas|cusolver|cusparse|nvJitLink|nvrtc))' |
  while read -r name path; do cp -L "$path" "$to/lib/$name"; done
missing=$(ldd "${programs[@]}" | grep 'not found' | grep -vE 'lib(cuda|cublas|cusolver|cusparse|nvJitLink)' || true)
[[ -z $missing ]] || die "$missing"
git -C "$root" ls-files -z tests bench/peers docs/summary.md | (cd "$root" && xargs -0 cp --parents -t "$to")
XZ_OPT=--lzma2=dict=192MiB tar -C "$staged" -cJf "$staged/packed" keel-gpu
mkdir -p "$(dirname "$out")"
mv -n "$staged/packed" "$out"
echo "$out: $(du -h "$out" | cut -f1), commit $("$build/keel" info | sed -n '1s/.*commit \([^)]*\).*/\1/p')"
