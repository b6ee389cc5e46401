# TOKAMAK_MATMUL names the file of src/backend/cpu/matmul/ that is built, and tokamak_matmul carries its library.
set(TOKAMAK_MATMUL "auto" CACHE STRING "What multiplies matrices on the CPU: onednn, cblas, reference or auto")
set_property(CACHE TOKAMAK_MATMUL PROPERTY STRINGS auto onednn cblas reference)
if(NOT TOKAMAK_MATMUL MATCHES "^(auto|onednn|cblas|reference)$")
  message(FATAL_ERROR "TOKAMAK_MATMUL: expected onednn, cblas, reference or auto, got '${TOKAMAK_MATMUL}'")
endif()

# Not find_package(dnnl): Debian's package file asks for OpenCL's headers, which its CPU part does not need.
find_path(TOKAMAK_DNNL_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(TOKAMAK_DNNL_LIBRARY dnnl)
# The plain names may be served by a BLAS without the C interface, so the C interface's own header decides.
find_path(TOKAMAK_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-pthread)
find_library(TOKAMAK_CBLAS_LIBRARY NAMES openblas cblas)
mark_as_advanced(TOKAMAK_DNNL_INCLUDE TOKAMAK_DNNL_LIBRARY TOKAMAK_CBLAS_INCLUDE TOKAMAK_CBLAS_LIBRARY)

if(TOKAMAK_MATMUL STREQUAL "auto")
  set(TOKAMAK_MATMUL onednn)
  if(NOT TOKAMAK_DNNL_INCLUDE OR NOT TOKAMAK_DNNL_LIBRARY)
    set(TOKAMAK_MATMUL cblas)
  endif()
  if(TOKAMAK_SANITIZE STREQUAL "thread")  # which sees only what is built with it
    set(TOKAMAK_MATMUL reference)
  endif()
endif()

add_library(tokamak_matmul INTERFACE)
if(TOKAMAK_MATMUL STREQUAL "onednn")
  if(NOT TOKAMAK_DNNL_INCLUDE OR NOT TOKAMAK_DNNL_LIBRARY)
    message(FATAL_ERROR "oneDNN was not found. Install it with: apt-get install libdnnl-dev")
  endif()
  target_include_directories(tokamak_matmul SYSTEM INTERFACE ${TOKAMAK_DNNL_INCLUDE})
  target_link_libraries(tokamak_matmul INTERFACE ${TOKAMAK_DNNL_LIBRARY})
elseif(TOKAMAK_MATMUL STREQUAL "cblas")
  if(NOT TOKAMAK_CBLAS_INCLUDE OR NOT TOKAMAK_CBLAS_LIBRARY)
    message(FATAL_ERROR "Neither oneDNN nor a CBLAS was found. "
                        "Install one with: apt-get install libdnnl-dev (or libopenblas-dev)")
  endif()
  target_include_directories(tokamak_matmul SYSTEM INTERFACE ${TOKAMAK_CBLAS_INCLUDE})
  target_link_libraries(tokamak_matmul INTERFACE ${TOKAMAK_CBLAS_LIBRARY})
endif()
message(STATUS "Matrix products: ${TOKAMAK_MATMUL}; parallel loops: ${TOKAMAK_PARALLEL}")
