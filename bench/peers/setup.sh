#!/usr/bin/env bash
# Makes the Python environments of the peers; running it again changes nothing.
#   setup.sh                     .venv: PyTorch, JAX (CPU), NumPy
#   setup.sh --neural-tangents   .venv-nt as well: neural-tangents with the older JAX it needs
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

with_neural_tangents=no
case "${1-}" in
  "") ;;
  --neural-tangents) with_neural_tangents=yes ;;
  *) fail "unknown argument '$1' (the only one is --neural-tangents)" ;;
esac

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "python3 must be 3.11 or newer"
command -v g++ >/dev/null || fail "torch.compile needs g++"

make_environment .venv "torch>=2.9" "jax>=0.7" numpy
print_versions .venv torch jax numpy

if [[ $with_neural_tangents == yes ]]; then
  make_environment .venv-nt neural-tangents==0.6.5 "jax==0.4.30" "jaxlib==0.4.30" "numpy<2" "scipy<1.13"
  print_versions .venv-nt jax numpy neural_tangents
fi
