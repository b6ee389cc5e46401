# TOKAMAK_PARQUET: whether the module for Parquet is built, tokamak_parquet.so beside the program, which opens it when it
# reads such a file. Arrow's C++ library is in no Debian package: it comes with the Python package pyarrow, unpacked by
# tools/setup.sh into build/arrow, or as Python finds it. Builds with sanitizers and fuzzers have no module.
set(arrow_include ${PROJECT_SOURCE_DIR}/build/arrow/include)
set(arrow_folder ${PROJECT_SOURCE_DIR}/build/arrow)
find_program(TOKAMAK_PYTHON3 python3)
mark_as_advanced(TOKAMAK_PYTHON3)
if(NOT EXISTS ${arrow_include}/parquet AND TOKAMAK_PYTHON3)
  execute_process(COMMAND ${TOKAMAK_PYTHON3} -c "import pyarrow; print(pyarrow.get_include(), pyarrow.get_library_dirs()[0], sep=';', end='')"
                  OUTPUT_VARIABLE arrow ERROR_QUIET)
  list(LENGTH arrow parts)
  if(parts EQUAL 2)
    list(GET arrow 0 arrow_include)
    list(GET arrow 1 arrow_folder)
  endif()
endif()
file(GLOB arrow_libraries ${arrow_folder}/libparquet.so.* ${arrow_folder}/libarrow.so.*)
list(LENGTH arrow_libraries count)
set(lacks)
if(TOKAMAK_SANITIZE OR TOKAMAK_FUZZ)
  set(lacks LACKS "Arrow's library is built without sanitizers")
elseif(NOT EXISTS ${arrow_include}/parquet OR NOT count EQUAL 2)
  set(lacks LACKS "Arrow's library was not found" INSTALL "Get it with: tools/setup.sh parquet")
endif()
tokamak_optional(PARQUET HELP "Build the module for Parquet, which needs pyarrow" ${lacks} WITHOUT "Parquet: not built")
if(NOT PARQUET_used)
  return()
endif()

add_library(tokamak_parquet MODULE ${PROJECT_SOURCE_DIR}/src/data/sources/modules/parquet.cpp
            ${PROJECT_SOURCE_DIR}/src/data/sources/modules/arrow.cpp)
target_compile_features(tokamak_parquet PRIVATE cxx_std_20)
target_include_directories(tokamak_parquet PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(tokamak_parquet SYSTEM PRIVATE ${arrow_include})
target_link_libraries(tokamak_parquet PRIVATE ${arrow_libraries} tokamak_flags tokamak_hardening)
# Installed, it finds Arrow's libraries beside itself, in the pyarrow beside the Python package that it is in, or as
# LD_LIBRARY_PATH says.
set_target_properties(tokamak_parquet PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden BUILD_RPATH ${arrow_folder}
                      INSTALL_RPATH "$ORIGIN;$ORIGIN/../../../pyarrow"
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
