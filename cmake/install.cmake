# What `cmake --install` writes: the library, its headers, the command, and find_package(keel).
include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/keel")

install(TARGETS keel_library EXPORT keelTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT keelTargets NAMESPACE keel:: DESTINATION "${package_folder}")
if(TARGET keel)
  install(TARGETS keel RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(PROGRAMS experiments/plot.py DESTINATION "${CMAKE_INSTALL_DATADIR}/keel")
  file(GLOB plots CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/experiments/plot_*.py")
  install(FILES ${plots} DESTINATION "${CMAKE_INSTALL_DATADIR}/keel")
endif()

install(FILES keel.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/keel")
foreach(folder ${keel_folders})
  file(GLOB headers CONFIGURE_DEPENDS "${folder}/*.h" "${folder}/*.cuh")
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/keel/${folder}")
endforeach()

configure_package_config_file(cmake/keelConfig.cmake.in "${PROJECT_BINARY_DIR}/keelConfig.cmake"
  INSTALL_DESTINATION "${package_folder}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/keelConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/keelConfig.cmake"
  "${PROJECT_BINARY_DIR}/keelConfigVersion.cmake" cmake/FindKeelBlas.cmake
  DESTINATION "${package_folder}")
