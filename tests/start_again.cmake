# keel takes better kernels than OpenBLAS does on a processor that OpenBLAS does not know, unless
# somebody has chosen. Called with -DKEEL=path.
function(blas_kernels result)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${ARGN} ${KEEL} info OUTPUT_VARIABLE text
    COMMAND_ERROR_IS_FATAL ANY)
  if(NOT text MATCHES "([A-Za-z0-9]+) kernels")
    message(FATAL_ERROR "keel info names no kernels: ${text}")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

blas_kernels(chosen OPENBLAS_CORETYPE=Prescott)
if(NOT chosen STREQUAL "Prescott")
  message(STATUS "SKIPPED: this OpenBLAS has ${chosen} kernels alone")
  return()
endif()
file(READ /proc/cpuinfo processor)
blas_kernels(taken --unset=OPENBLAS_CORETYPE)
if(processor MATCHES " avx2 " AND processor MATCHES " fma " AND taken STREQUAL "Prescott")
  message(FATAL_ERROR "Prescott kernels on a processor with AVX2")
endif()
message(STATUS "${taken} kernels")
