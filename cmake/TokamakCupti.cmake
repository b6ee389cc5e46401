# TOKAMAK_CUPTI: whether `tokamak profile` can read a GPU's activity records. cupti_file names the file of
# src/backend/cuda/cupti/ that is built; tokamak_cupti carries the header. The library itself is opened when it is needed.
find_path(TOKAMAK_CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
          ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
mark_as_advanced(TOKAMAK_CUPTI_INCLUDE)
set(lacks)
if(NOT TOKAMAK_CUPTI_INCLUDE)
  set(lacks LACKS "no cupti.h was found")
endif()
tokamak_optional(CUPTI HELP "Activity records of GPUs, by CUPTI" ${lacks}
                 WITHOUT "Activity records of GPUs: not built (`tokamak profile` takes events)"
                 INSTALL "Install CUPTI, or set TOKAMAK_CUPTI_INCLUDE to its folder")

add_library(tokamak_cupti INTERFACE)
set(cupti_file absent)
if(CUPTI_used)
  set(cupti_file cupti_trace)
  target_include_directories(tokamak_cupti SYSTEM INTERFACE ${TOKAMAK_CUPTI_INCLUDE})
endif()
