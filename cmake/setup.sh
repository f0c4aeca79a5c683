#!/bin/sh
# Installs what keel needs and this machine lacks (Debian, Ubuntu); a no-op where all is there.
#   setup.sh          to build and test
#   setup.sh --plot   and to draw: matplotlib for some python3 on PATH
#   setup.sh --table1 and for every row and picture of `keel reproduce table1`: XGBoost, statsmodels
#   setup.sh --check  and for the checks of .ci/run: clang++, clang-format
#   setup.sh --into DIR  needs no root: unpacks the libraries in DIR, a new folder, wanted here or
#                     not, for this machine or another of its kind; says how to build with them
# What CMAKE_PREFIX_PATH leads to counts as there.
set -u

missing=""
need() { missing="$missing $1"; }

# have_file GLOB...: is any of these files there?
have_file() {
  for file in "$@"; do [ -e "$file" ] && return 0; done
  return 1
}

# have_in GLOB...: is any of these files under a prefix of the system, or of CMAKE_PREFIX_PATH?
have_in() {
  old_ifs=$IFS; IFS=:
  for prefix in /usr /usr/local ${CMAKE_PREFIX_PATH-}; do
    IFS=$old_ifs
    for pattern in "$@"; do
      have_file "$prefix"/$pattern && return 0  # unquoted: a glob
    done
  done
  IFS=$old_ifs
  return 1
}
# Where CMake looks, and no deeper: a toolkit's Thrust linked in include/cccl is not found there.
have_header() { have_in "include/$1" "include/*-linux-*/$1"; }

cmake_is_new_enough() {
  set -- $(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
  [ $# -eq 2 ] && [ $(($1 * 100 + $2)) -ge 325 ]
}

# some_python_has MODULE...: does one python3 on PATH have them all?
some_python_has() {
  old_ifs=$IFS; IFS=:
  for folder in $PATH; do
    [ -x "$folder/python3" ] || continue
    "$folder/python3" -c 'import sys
from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])))' "$@" 2>/dev/null && { IFS=$old_ifs; return 0; }
  done
  IFS=$old_ifs
  return 1
}

# apt_apart TOOL...: with lists of packages of our own, as the system's take root to bring up to date.
apt_apart() {
  tool=$1; shift
  "$tool" -qq -o Dir::State::Lists="$apart/lists" -o Dir::Cache="$apart/cache" \
    -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}

end() {
  echo "setup.sh: $2" >&2
  exit "$1"
}

# unpack_into DIR: the libraries, and what they need at run time that a bare system may lack. All of
# it or, ending with 1 (3: nothing to fetch from), nothing.
unpack_into() {
  libraries="libopenblas-openmp-dev liblapacke-dev libfmt-dev nlohmann-json3-dev"
  libraries="$libraries librandom123-dev libthrust-dev libcli11-dev doctest-dev"
  command -v apt-get >/dev/null ||
    end 1 "this system has no apt-get; please install what Debian calls: $libraries"
  [ ! -e "$1" ] || end 1 "$1 is there already; --into wants the name of a new folder"
  parent=$(CDPATH= cd -- "$(dirname -- "$1")" && pwd) || exit 1
  into=$parent/$(basename -- "$1")
  apart=$(mktemp -d "$parent/.keel-setup-XXXXXX") || exit 1
  trap 'rm -rf "$apart"' EXIT
  trap 'exit 1' HUP INT PIPE TERM
  root=$apart/root
  mkdir -p "$apart/lists/partial" "$apart/cache/archives/partial" "$apart/packages" \
    "$root/host/include" || exit 1
  apt_apart apt-get update >/dev/null 2>&1  # a source out of reach may be one that nothing needs
  at_run_time=$(apt_apart apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
    --no-breaks --no-replaces --no-enhances $libraries |
    grep -E '^lib(openblas0-openmp|lapacke|tmglib3|fmt[0-9]+|gfortran5|quadmath0|cub-dev|cu\+\+-dev)$' |
    sort -u)
  (cd "$apart/packages" && apt_apart apt-get download $libraries $at_run_time) 2>/dev/null ||
    end 3 "apt-get could not fetch: $libraries"
  for package in "$apart"/packages/*.deb; do
    dpkg -x "$package" "$root" || end 1 "could not unpack $(basename "$package")"
  done
  find "$root" -name '*.a' -delete  # we link none, and they are most of it
  # Apart from what nvcc is shown: a toolkit has a Thrust of its own.
  for part in thrust cub cuda nv; do
    [ ! -e "$root/usr/include/$part" ] || mv "$root/usr/include/$part" "$root/host/include" || exit 1
  done
  mv "$root" "$into" || exit 1
  folder=$(dirname "$(echo "$into"/usr/lib/*/liblapacke.so)")
  echo "unpacked in $into ($(du -sh "$into" | cut -f1)); now:"
  echo "  export LD_LIBRARY_PATH=\"$folder/openblas-openmp:$folder\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\""
  echo "  export CMAKE_PREFIX_PATH=\"$into/usr:$into/host\""
  echo "  make build"
}

if [ "${1-}" = --into ]; then
  [ $# -eq 2 ] || end 2 "--into wants one folder, and nothing else"
  unpack_into "$2"
  exit 0
fi

command -v g++ >/dev/null || command -v clang++ >/dev/null || need g++
cmake_is_new_enough || need cmake
command -v ninja >/dev/null || need ninja-build
have_in "lib/*/openblas-openmp/libopenblas.so" "lib*/libopenblaso.so" ||
  need libopenblas-openmp-dev
have_header lapacke.h || have_header lapacke/lapacke.h || have_header openblas/lapacke.h ||
  need liblapacke-dev
have_header fmt/format.h || need libfmt-dev
have_header nlohmann/json.hpp || need nlohmann-json3-dev
have_header Random123/philox.h || need librandom123-dev
have_header thrust/version.h || need libthrust-dev
have_header CLI/CLI.hpp || need libcli11-dev
have_header doctest/doctest.h || need doctest-dev
for option in "$@"; do
  case $option in
    --plot) some_python_has matplotlib || need python3-matplotlib ;;
    --table1)
      have_header xgboost/c_api.h || need libxgboost-dev
      some_python_has matplotlib statsmodels || need "python3-matplotlib python3-statsmodels" ;;
    --check)
      command -v clang-format >/dev/null || need clang-format
      command -v clang++ >/dev/null || need clang
      have_file /usr/lib/llvm-*/lib/libomp.so /usr/lib*/libomp.so || need libomp-dev ;;
    *) echo "setup.sh: unknown option '$option' (--plot, --table1, --check; --into DIR alone)" >&2; exit 2 ;;
  esac
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup.sh: this system has no apt-get; please install what Debian calls:$missing" >&2
  exit 1
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: neither root nor sudo; please have installed:$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
echo "setup.sh: installing$missing"
install="env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends"
if ! { $as_root apt-get update -qq && $as_root $install $missing >/dev/null; }; then
  echo "setup.sh: apt-get could not install:$missing" >&2
  exit 1
fi
if ! cmake_is_new_enough; then
  echo "setup.sh: keel needs cmake 3.25 or newer (Debian 12, Ubuntu 24.04); here it is older" >&2
  exit 1
fi
