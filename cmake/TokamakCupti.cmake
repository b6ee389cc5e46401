# TOKAMAK_CUPTI: whether `tokamak profile` can read a GPU's activity records. cupti_file names the file of
# src/backend/cuda/cupti/ that is built; tokamak_cupti carries the header. The library itself is opened when it is needed.
set(TOKAMAK_CUPTI "auto" CACHE STRING "Activity records of GPUs, by CUPTI: on, off or auto (when its header is found)")
set_property(CACHE TOKAMAK_CUPTI PROPERTY STRINGS auto on off)
find_path(TOKAMAK_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
          ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
mark_as_advanced(TOKAMAK_CUPTI_INCLUDE)

add_library(tokamak_cupti INTERFACE)
set(cupti_file absent)
if(TOKAMAK_CUPTI STREQUAL "off")
  message(STATUS "Activity records of GPUs: not built, TOKAMAK_CUPTI=off")
elseif(TOKAMAK_CUPTI_INCLUDE)
  set(cupti_file cupti_trace)
  target_include_directories(tokamak_cupti SYSTEM INTERFACE ${TOKAMAK_CUPTI_INCLUDE})
elseif(TOKAMAK_CUPTI STREQUAL "on")
  message(FATAL_ERROR "TOKAMAK_CUPTI=on, but no cupti.h was found. Install CUPTI, or set TOKAMAK_CUPTI_INCLUDE to its folder.")
else()
  message(STATUS "Activity records of GPUs: not built, no cupti.h was found; `tokamak profile` takes events")
endif()
