# OpenBLAS threaded by OpenMP, and LAPACKE: target keel::blas. Installed beside keelConfig.cmake.
# The pthread flavour that Debian prefers would fight with our own OpenMP threads for the cores,
# so the openmp flavour is linked by its full path. OpenBLAS comes first: it brings a fast LAPACK.
string(REPLACE ":" ";" _KeelBlas_roots "$ENV{CMAKE_PREFIX_PATH}")
foreach(_KeelBlas_root IN LISTS CMAKE_PREFIX_PATH _KeelBlas_roots ITEMS /usr)
  find_library(KeelBlas_OPENBLAS NAMES openblas NO_DEFAULT_PATH
    PATHS "${_KeelBlas_root}/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp")
  find_path(KeelBlas_CBLAS_INCLUDE cblas.h NO_DEFAULT_PATH
    PATHS "${_KeelBlas_root}/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp")
endforeach()
find_library(KeelBlas_OPENBLAS NAMES openblaso openblas)
find_library(KeelBlas_LAPACKE NAMES lapacke)
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
