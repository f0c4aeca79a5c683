# How our own code is compiled: target keel_flags, linked privately by everything built here.
add_library(keel_flags INTERFACE)

# Host flags reach g++, clang++ and, through -Xcompiler, the host side of .cu files alike.
# No contraction and no reassociation: the same bits from every compiler and every group.
# Without errno and traps, loops over sqrt and selects vectorise; results stay the same.
set(host_flags -Wall -Wextra -fno-math-errno -fno-trapping-math -ffp-contract=off)
if(KEEL_NATIVE)
  list(APPEND host_flags -march=native)
  # g++ halves AVX-512 by default, for the sake of clocks that newer processors do not lower.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-mprefer-vector-width=512 KEEL_WIDE_VECTORS)
  if(KEEL_WIDE_VECTORS)
    list(APPEND host_flags -mprefer-vector-width=512)
  endif()
endif()
if(NOT KEEL_OPENMP)
  # Reductions marked `omp simd` keep their shape, and so their bits, without threads.
  list(APPEND host_flags -fopenmp-simd -Wno-unknown-pragmas)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A loop that clang++ cannot vectorise (a call to erf) is slower, not wrong.
  list(APPEND host_flags -Wno-pass-failed)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Two rounds of a sum in one keep its partial sums in memory, not in registers.
  list(APPEND host_flags -fno-loop-unroll-and-jam)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND host_flags -Wno-restrict)  # g++ 12 sees overlaps in "text" + std::string (its bug 105651)
endif()
if(KEEL_WERROR)
  list(APPEND host_flags -Werror)
endif()

if(KEEL_SANITIZE STREQUAL "address")
  # Thrust itself binds references to null; a null that is used still stops the address sanitizer.
  set(sanitizer -fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
elseif(KEEL_SANITIZE STREQUAL "thread")
  set(sanitizer -fsanitize=thread -fno-omit-frame-pointer)
elseif(KEEL_SANITIZE)
  message(FATAL_ERROR "KEEL_SANITIZE is '${KEEL_SANITIZE}', must be empty, address or thread")
endif()
target_compile_options(keel_flags INTERFACE ${sanitizer})
target_link_options(keel_flags INTERFACE ${sanitizer})

list(JOIN host_flags "," joined_host_flags)
target_compile_options(keel_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${host_flags}>")
if(KEEL_WITH_CUDA)
  if(KEEL_OPENMP)
    string(APPEND joined_host_flags ",-fopenmp")
  endif()
  # -std by hand: CMake 3.25 does not know C++20 for nvcc 13 and drops CMAKE_CUDA_STANDARD 20.
  set(cuda_flags -std=c++20 --expt-relaxed-constexpr -lineinfo "-Xcompiler=${joined_host_flags}")
  if(KEEL_WERROR)
    list(APPEND cuda_flags "SHELL:-Werror all-warnings")
  endif()
  target_compile_options(keel_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}>")
endif()
