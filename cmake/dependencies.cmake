# Everything keel stands on, found and never downloaded. A missing piece names its Debian package.
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

macro(keel_require condition what package)
  if(NOT (${condition}))
    message(FATAL_ERROR "keel needs ${what}: install ${package}, or run cmake/setup.sh")
  endif()
endmacro()

find_package(Threads REQUIRED)
find_package(fmt 8 QUIET)
keel_require(fmt_FOUND "{fmt} 8 or newer" libfmt-dev)
find_package(KeelBlas QUIET)
keel_require(KeelBlas_OPENBLAS_FOUND "OpenBLAS with OpenMP threads" libopenblas-openmp-dev)
keel_require(KeelBlas_LAPACKE_FOUND "LAPACKE" liblapacke-dev)
if(KEEL_OPENMP)
  find_package(OpenMP QUIET COMPONENTS CXX)
  keel_require(OpenMP_CXX_FOUND "OpenMP of ${CMAKE_CXX_COMPILER}"
               "libgomp1 (g++) or libomp-dev (clang++)")
endif()

# Header-only libraries: one imported target each, so that their warnings are not ours.
function(keel_header_library target header what package)
  string(MAKE_C_IDENTIFIER "${target}_include" variable)
  find_path(${variable} "${header}" HINTS ${ARGN})
  mark_as_advanced(${variable})
  keel_require(${variable} "${what}" "${package}")
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE "${${variable}}")
endfunction()

keel_header_library(keel_json nlohmann/json.hpp "nlohmann-json" nlohmann-json3-dev)
keel_header_library(keel_random Random123/philox.h "Random123" librandom123-dev)
keel_header_library(keel_command_line CLI/CLI.hpp "CLI11" libcli11-dev)
if(KEEL_TESTS)
  keel_header_library(keel_doctest doctest/doctest.h "doctest" doctest-dev)
endif()
# A row of Table 1. Looked for by hand: not every package of it brings files for CMake.
find_path(KEEL_XGBOOST_INCLUDE xgboost/c_api.h)
find_library(KEEL_XGBOOST_LIBRARY xgboost)
mark_as_advanced(KEEL_XGBOOST_INCLUDE KEEL_XGBOOST_LIBRARY)
if(KEEL_XGBOOST_INCLUDE AND KEEL_XGBOOST_LIBRARY)
  add_library(keel_xgboost INTERFACE IMPORTED GLOBAL)
  target_include_directories(keel_xgboost INTERFACE "${KEEL_XGBOOST_INCLUDE}")
  target_link_libraries(keel_xgboost INTERFACE "${KEEL_XGBOOST_LIBRARY}")
  target_compile_definitions(keel_xgboost INTERFACE KEEL_WITH_XGBOOST=1)
endif()
if(KEEL_WITH_CUDA)
  # The toolkit's own Thrust, in include/cccl since CUDA 13: two versions in one program do not mix.
  list(TRANSFORM CUDAToolkit_INCLUDE_DIRS APPEND "/cccl" OUTPUT_VARIABLE cccl_folders)
  keel_header_library(keel_thrust thrust/version.h "Thrust" "the CUDA toolkit's cccl"
                      ${cccl_folders} ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
else()
  keel_header_library(keel_thrust thrust/version.h "Thrust" libthrust-dev)
endif()
# Under g++ Thrust's "device" is the host; under nvcc it stays CUDA.
target_compile_definitions(keel_thrust INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP>)

# What the library and its twin in tests/ stand on. Header-only pieces stay out of the package.
function(keel_use_dependencies target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PRIVATE keel::blas $<BUILD_INTERFACE:keel_flags>
    PUBLIC fmt::fmt Threads::Threads $<BUILD_INTERFACE:keel_json> $<BUILD_INTERFACE:keel_random>
           $<BUILD_INTERFACE:keel_thrust>)
  # {fmt} 9 turns constexpr off under nvcc and then trips over its own consteval.
  target_compile_definitions(${target} PUBLIC $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
  if(KEEL_OPENMP)
    # Public: templates in headers must be compiled alike here and in whoever includes them.
    target_link_libraries(${target} PUBLIC OpenMP::OpenMP_CXX)
  endif()
endfunction()
