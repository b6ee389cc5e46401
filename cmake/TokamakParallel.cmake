# TOKAMAK_PARALLEL names the file of src/base/parallel/ that is built, and tokamak_parallel carries its libraries.
# Both share base/parallel.h and split work alike. ThreadSanitizer cannot see inside libgomp, so it takes `threads`.
set(TOKAMAK_PARALLEL "auto" CACHE STRING "What parallel loops run on: openmp, threads or auto")
set_property(CACHE TOKAMAK_PARALLEL PROPERTY STRINGS auto openmp threads)

find_package(OpenMP QUIET COMPONENTS CXX)
if(TOKAMAK_PARALLEL STREQUAL "auto")
  if(OpenMP_CXX_FOUND AND NOT TOKAMAK_SANITIZE STREQUAL "thread")
    set(TOKAMAK_PARALLEL openmp)
  else()
    set(TOKAMAK_PARALLEL threads)
  endif()
elseif(TOKAMAK_PARALLEL STREQUAL "openmp" AND NOT OpenMP_CXX_FOUND)
  message(FATAL_ERROR "TOKAMAK_PARALLEL=openmp, but this compiler has no OpenMP. Install g++, or use threads.")
elseif(NOT TOKAMAK_PARALLEL MATCHES "^(openmp|threads)$")
  message(FATAL_ERROR "TOKAMAK_PARALLEL: expected openmp, threads or auto, got '${TOKAMAK_PARALLEL}'")
endif()

add_library(tokamak_parallel INTERFACE)
target_link_libraries(tokamak_parallel INTERFACE Threads::Threads)
if(TOKAMAK_PARALLEL STREQUAL "openmp")
  target_link_libraries(tokamak_parallel INTERFACE OpenMP::OpenMP_CXX)
endif()
