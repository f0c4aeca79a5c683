# KEEL_VERSION and KEEL_GIT_COMMIT, seen by core/version.cpp alone: a commit recompiles one file.
set(keel_commit unknown)
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --tags
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE described RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(keel_commit "${described}")
  endif()
  # Configure again when HEAD moves, so that results are stamped with the commit they came from.
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE head_log
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  cmake_path(ABSOLUTE_PATH head_log BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  if(EXISTS "${head_log}" AND NOT IS_DIRECTORY "${head_log}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${head_log}")
  endif()
endif()

# Source properties hold per directory: whoever compiles core/version.cpp calls this.
function(keel_stamp_version)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/core/version.cpp" PROPERTIES
    COMPILE_DEFINITIONS "KEEL_VERSION=\"${PROJECT_VERSION}\";KEEL_GIT_COMMIT=\"${keel_commit}\"")
endfunction()
