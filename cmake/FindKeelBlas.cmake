# OpenBLAS threaded by OpenMP, and LAPACKE: target keel::blas. Installed beside keelConfig.cmake.
# The pthread flavour that Debian prefers would fight with our own OpenMP threads for the cores,
# so the openmp flavour is linked by its full path. OpenBLAS comes first: it brings a fast LAPACK.
set(arch "${CMAKE_LIBRARY_ARCHITECTURE}")
set(roots ${CMAKE_PREFIX_PATH} /usr)
list(TRANSFORM roots APPEND "/lib/${arch}/openblas-openmp" OUTPUT_VARIABLE libraries)
list(TRANSFORM roots APPEND "/include/${arch}/openblas-openmp" OUTPUT_VARIABLE includes)
find_library(KeelBlas_OPENBLAS NAMES openblas PATHS ${libraries} NO_DEFAULT_PATH)
find_library(KeelBlas_OPENBLAS NAMES openblaso openblas)
find_library(KeelBlas_LAPACKE NAMES lapacke)
find_path(KeelBlas_CBLAS_INCLUDE cblas.h PATHS ${includes} NO_DEFAULT_PATH)
find_path(KeelBlas_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas)
find_path(KeelBlas_LAPACKE_INCLUDE lapacke.h PATH_SUFFIXES lapacke openblas)
mark_as_advanced(KeelBlas_OPENBLAS KeelBlas_LAPACKE KeelBlas_CBLAS_INCLUDE KeelBlas_LAPACKE_INCLUDE)

if(KeelBlas_OPENBLAS AND KeelBlas_CBLAS_INCLUDE)
  set(KeelBlas_OPENBLAS_FOUND TRUE)
endif()
if(KeelBlas_LAPACKE AND KeelBlas_LAPACKE_INCLUDE)
  set(KeelBlas_LAPACKE_FOUND TRUE)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(KeelBlas
  REQUIRED_VARS KeelBlas_OPENBLAS KeelBlas_CBLAS_INCLUDE KeelBlas_LAPACKE KeelBlas_LAPACKE_INCLUDE)

if(KeelBlas_FOUND AND NOT TARGET keel::blas)
  add_library(keel::blas INTERFACE IMPORTED)
  target_link_libraries(keel::blas INTERFACE "${KeelBlas_OPENBLAS}" "${KeelBlas_LAPACKE}")
  target_include_directories(keel::blas INTERFACE
    "${KeelBlas_CBLAS_INCLUDE}" "${KeelBlas_LAPACKE_INCLUDE}")
endif()
