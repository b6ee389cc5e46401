# TOKAMAK_CUDNN: whether attention may go through cuDNN. cudnn_files names the files of src/backend/cuda/cudnn/ that are
# built: frontend and library where cuDNN and the headers of cudnn-frontend are found, else absent; tokamak_cudnn carries
# what they need.
set(TOKAMAK_CUDNN_FRONTEND "" CACHE PATH "Folder with cudnn_frontend.h of NVIDIA's cudnn-frontend; its headers need it to be called include")

# Python's packages (nvidia-cudnn-cu12, -cu13) bring the library as well.
find_program(TOKAMAK_PYTHON python3)
set(cudnn_python)
if(TOKAMAK_PYTHON)
  execute_process(COMMAND ${TOKAMAK_PYTHON} -c "import nvidia.cudnn; print(list(nvidia.cudnn.__path__)[0])"
                  OUTPUT_VARIABLE cudnn_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
# Python's copy is a package of its own, so its header must not meet the library of another place.
find_path(TOKAMAK_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${cudnn_python}/include)
find_library(TOKAMAK_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9
             HINTS ${TOKAMAK_CUDNN_INCLUDE}/../lib ${TOKAMAK_CUDNN_INCLUDE}/../lib64 ${CUDAToolkit_LIBRARY_DIR})
# tools/setup.sh unpacks the PyPI package into build/, which is above the presets' build folders.
find_path(TOKAMAK_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
          HINTS ${TOKAMAK_CUDNN_FRONTEND} ${CMAKE_BINARY_DIR}/cudnn_frontend/include
                ${PROJECT_SOURCE_DIR}/build/cudnn_frontend/include
          PATH_SUFFIXES include)
mark_as_advanced(TOKAMAK_PYTHON TOKAMAK_CUDNN_INCLUDE TOKAMAK_CUDNN_LIBRARY TOKAMAK_CUDNN_FRONTEND_INCLUDE)

set(lacks)
if(NOT TOKAMAK_CUDNN_INCLUDE OR NOT TOKAMAK_CUDNN_LIBRARY)
  set(lacks LACKS "no cuDNN 9 was found")
elseif(NOT TOKAMAK_CUDNN_FRONTEND_INCLUDE)
  set(lacks LACKS "no cudnn_frontend.h was found" INSTALL "Run tools/setup.sh build, or set TOKAMAK_CUDNN_FRONTEND")
else()
  # The oldest front-end that says how statistics are asked for as this program does.
  file(STRINGS ${TOKAMAK_CUDNN_FRONTEND_INCLUDE}/cudnn_frontend/graph_properties.h cudnn_recent
       REGEX "set_generate_stats" LIMIT_COUNT 1)
  if(NOT cudnn_recent)
    set(lacks LACKS "the cudnn-frontend in ${TOKAMAK_CUDNN_FRONTEND_INCLUDE} is too old")
  endif()
endif()

tokamak_optional(CUDNN HELP "Attention by cuDNN" ${lacks}
                 WITHOUT "Attention on CUDA: own kernels, slower than cuDNN's")

add_library(tokamak_cudnn INTERFACE)
set(cudnn_files absent)
if(CUDNN_used)
  set(cudnn_files frontend library)
  # Not for who links the installed libraries: the front-end may lie in the source tree (tools/setup.sh).
  target_include_directories(tokamak_cudnn SYSTEM INTERFACE $<BUILD_INTERFACE:${TOKAMAK_CUDNN_INCLUDE}>
                                                            $<BUILD_INTERFACE:${TOKAMAK_CUDNN_FRONTEND_INCLUDE}>)
  target_compile_definitions(tokamak_cudnn INTERFACE CUDNN_FRONTEND_SKIP_JSON_LIB)
  # Only for its folder and for what cudnn/library.cpp lacks: with all of it the program starts without cuDNN, too.
  target_link_options(tokamak_cudnn INTERFACE LINKER:--as-needed)
  target_link_libraries(tokamak_cudnn INTERFACE ${TOKAMAK_CUDNN_LIBRARY} ${CMAKE_DL_LIBS})
  message(STATUS "Attention on CUDA: cuDNN (${TOKAMAK_CUDNN_LIBRARY})")
endif()
