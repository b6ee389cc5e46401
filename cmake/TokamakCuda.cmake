# TOKAMAK_CUDA: whether the NVIDIA backend is built; tokamak_cuda_libraries carries what it links.
set(TOKAMAK_CUDA "auto" CACHE STRING "Build the NVIDIA backend: on, off or auto (when the CUDA toolkit is found)")
set_property(CACHE TOKAMAK_CUDA PROPERTY STRINGS auto on off)
set(cuda_wanted ${TOKAMAK_CUDA})
if(cuda_wanted STREQUAL "auto" AND TOKAMAK_SANITIZE)
  set(cuda_wanted off)  # the sanitizers' runs have no GPU to use it on
endif()
set(cuda_found FALSE)
if(NOT cuda_wanted STREQUAL "off")
  find_package(CUDAToolkit 12.4 QUIET)
  if(TARGET CUDA::cublasLt AND TARGET CUDA::nvrtc AND TARGET CUDA::cudart_static)
    set(cuda_found TRUE)
  elseif(cuda_wanted STREQUAL "on")
    message(FATAL_ERROR "TOKAMAK_CUDA=on, but no CUDA toolkit 12.4 or newer with cuBLASLt and NVRTC was found. "
                        "Set CUDAToolkit_ROOT to where it is installed.")
  endif()
endif()
set(TOKAMAK_CUDA ${cuda_found})  # from here on yes or no

add_library(tokamak_cuda_libraries INTERFACE)
if(TOKAMAK_CUDA)
  target_link_libraries(tokamak_cuda_libraries INTERFACE CUDA::cudart_static ${CMAKE_DL_LIBS})
  # cuBLASLt and NVRTC are opened when they are needed (src/backend/cuda/libraries/): only where they are is linked in.
  foreach(library cublasLt nvrtc)
    get_target_property(file CUDA::${library} IMPORTED_LOCATION)
    cmake_path(GET file PARENT_PATH folder)
    target_link_options(tokamak_cuda_libraries INTERFACE LINKER:-rpath,${folder})
  endforeach()
  message(STATUS "CUDA: toolkit ${CUDAToolkit_VERSION}")
  include(TokamakCudnn)
  include(TokamakNccl)
else()
  message(STATUS "CUDA: not built")
endif()
