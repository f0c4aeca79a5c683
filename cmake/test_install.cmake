# The ctest `install_consumer`: installs into the build tree, builds and runs a consumer of that.
set(prefix "${BUILD}/install_test/prefix")
set(consumer_build "${BUILD}/install_test/build")
file(REMOVE_RECURSE "${BUILD}/install_test")

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()
# Where keel's own build found its libraries: run() would take a list apart.
string(REPLACE ";" ":" prefixes "${PREFIXES}")
set(ENV{CMAKE_PREFIX_PATH} "${prefixes}:$ENV{CMAKE_PREFIX_PATH}")
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${prefix}")
run(${CMAKE_COMMAND} -S "${CONSUMER}" -B "${consumer_build}" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build "${consumer_build}")
run("${consumer_build}/consumer")
if(EXISTS "${prefix}/bin/keel")
  run("${prefix}/bin/keel" --help)
endif()
