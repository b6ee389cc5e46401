# TOKAMAK_NCCL: whether ranks can be GPUs. nccl_files names the files of src/backend/cuda/nccl/ that are built; tokamak_nccl
# carries what they need. The library itself is opened when it is needed.
# Python's packages (nvidia-nccl-cu12, -cu13) bring the header as well.
set(nccl_python)
if(TOKAMAK_PYTHON)
  execute_process(COMMAND ${TOKAMAK_PYTHON} -c "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])"
                  OUTPUT_VARIABLE nccl_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_path(TOKAMAK_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${nccl_python}/include)
find_library(TOKAMAK_NCCL_LIBRARY NAMES nccl libnccl.so.2
             HINTS ${TOKAMAK_NCCL_INCLUDE}/../lib ${TOKAMAK_NCCL_INCLUDE}/../lib64 ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(TOKAMAK_NCCL_INCLUDE TOKAMAK_NCCL_LIBRARY)
set(lacks)
if(NOT TOKAMAK_NCCL_INCLUDE)
  set(lacks LACKS "no nccl.h was found")
endif()
tokamak_optional(NCCL HELP "Ranks on GPUs, by NCCL" ${lacks} WITHOUT "Ranks on GPUs: not built"
                 INSTALL "Install NCCL, or set TOKAMAK_NCCL_INCLUDE to its folder")

add_library(tokamak_nccl INTERFACE)
set(nccl_files absent)
if(NCCL_used)
  set(nccl_files library mailbox nccl_run nccl_communicator rank_sum_launch)
  target_include_directories(tokamak_nccl SYSTEM INTERFACE ${TOKAMAK_NCCL_INCLUDE})
  if(TOKAMAK_NCCL_LIBRARY)
    cmake_path(GET TOKAMAK_NCCL_LIBRARY PARENT_PATH nccl_folder)
    target_link_options(tokamak_nccl INTERFACE LINKER:-rpath,${nccl_folder})
  endif()
  message(STATUS "Ranks on GPUs: NCCL (${TOKAMAK_NCCL_INCLUDE}/nccl.h)")
endif()
