#!/usr/bin/env bash
# Makes the Python environments of the peers; running it again changes nothing.
#   setup.sh                     .venv: PyTorch, JAX (CPU), NumPy
#   setup.sh --neural-tangents   .venv-nt as well: neural-tangents with the older JAX it needs
#   setup.sh --torch-index URL   where pip shall look for PyTorch: an index of CPU builds
#   setup.sh --any-build         a PyTorch with CUDA's libraries (4 GB) even where there is no GPU
# A GPU machine usually has its Python already, which keel_bench takes (KEEL_PEERS_PYTHON names another).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() { echo "setup.sh: $*" >&2; exit 1; }

# make_environment FOLDER REQUIREMENT...
make_environment() {
  local folder=$1; shift
  [[ -x $folder/bin/pip ]] || python3 -m venv "$folder" || fail "python3 -m venv $folder failed"
  "$folder/bin/pip" install --quiet --progress-bar off "$@" || fail "pip could not install into $folder: $*"
}

# print_versions FOLDER MODULE... : imports every module, so a broken install fails here.
print_versions() {
  local folder=$1; shift
  "$folder/bin/python" - "$@" <<'PYTHON' || fail "$folder does not import: $*"
import importlib, sys
for name in sys.argv[1:]:
    print(name, importlib.import_module(name).__version__)
PYTHON
}

# refuse_cuda_libraries FOLDER: pip's usual PyTorch for Linux brings them, GPU or not.
refuse_cuda_libraries() {
  local plan
  [[ -x $1/bin/pip ]] || python3 -m venv "$1" || fail "python3 -m venv $1 failed"
  plan=$("$1/bin/pip" install --dry-run --quiet --report - "$torch") || fail "pip finds no $torch"
  [[ $plan == *'"name": "torch"'* ]] || fail "pip does not say what $torch would install"
  [[ $plan != *'"name": "nvidia-'* ]] ||
    fail "this PyTorch brings CUDA's libraries (4 GB) and no GPU is here: give --torch-index URL of" \
         "PyTorch's CPU builds, or --any-build to take it as it is"
}

torch="torch>=2.9"
with_neural_tangents=no any_build=no torch_index=
while (($#)); do
  case $1 in
    --neural-tangents) with_neural_tangents=yes ;;
    --any-build) any_build=yes ;;
    --torch-index) (($# > 1)) || fail "--torch-index needs a URL"; torch_index=$2; shift ;;
    *) fail "unknown argument '$1' (--neural-tangents, --torch-index URL, --any-build)" ;;
  esac
  shift
done

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "python3 must be 3.11 or newer"
command -v g++ >/dev/null || fail "torch.compile needs g++"

if ! .venv/bin/python -c 'import torch' 2>/dev/null; then
  if [[ -n $torch_index ]]; then
    make_environment .venv --index-url "$torch_index" "$torch"
  else
    [[ $any_build == yes ]] || nvidia-smi >/dev/null 2>&1 || refuse_cuda_libraries .venv
    make_environment .venv "$torch"
  fi
fi
make_environment .venv "jax>=0.7" numpy
print_versions .venv torch jax numpy

if [[ $with_neural_tangents == yes ]]; then
  make_environment .venv-nt neural-tangents==0.6.5 "jax==0.4.30" "jaxlib==0.4.30" "numpy<2" "scipy<1.13"
  print_versions .venv-nt jax numpy neural_tangents
fi
