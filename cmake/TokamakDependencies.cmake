# Every outside library, each found once; what is missing is named with its Debian package (tools/packages.txt).
# What the program needs is an error; what can be absent picks another source file or leaves the feature out.
function(tokamak_require package debian)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found. Install it with: apt-get install ${debian}")
  endif()
endfunction()

include(TokamakOptional)
tokamak_require(fmt libfmt-dev)
tokamak_require(nlohmann_json nlohmann-json3-dev)
tokamak_require(tomlplusplus libtomlplusplus-dev)
find_package(Threads REQUIRED)
if(TOKAMAK_BUILD_TESTS)
  tokamak_require(GTest libgtest-dev)
  include(GoogleTest)
endif()

include(TokamakParallel)  # TOKAMAK_PARALLEL: what parallel loops run on
include(TokamakMatmul)    # TOKAMAK_MATMUL: what multiplies matrices on the CPU
include(TokamakCuda)      # TOKAMAK_CUDA: whether the NVIDIA backend is built
include(TokamakSources)   # TOKAMAK_ZLIB, ...: which data formats are built
include(TokamakMalloc)    # tokamak_malloc: the allocator of programs
