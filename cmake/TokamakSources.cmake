# Libraries that single formats of data need. Each has its own option TOKAMAK_<NAME> (cmake/TokamakOptional.cmake).
# What is found becomes the target tokamak_source_<NAME>; without it, that target is missing. TOKAMAK_SOURCE_LIBRARIES has
# all names.

# tokamak_source_library(NAME PACKAGE package HEADER header LIBRARY names... [SUFFIXES folders...])
function(tokamak_source_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PACKAGE" "")
  set(TOKAMAK_${name}_PACKAGE ${arg_PACKAGE} PARENT_SCOPE)
  set(TOKAMAK_SOURCE_LIBRARIES ${TOKAMAK_SOURCE_LIBRARIES} ${name} PARENT_SCOPE)
  tokamak_optional_library(${name} TARGET tokamak_source_${name} ${ARGN}
                           HELP "Build the data formats that need ${arg_PACKAGE}"
                           WITHOUT "Data formats that need ${arg_PACKAGE}: not built")
endfunction()

tokamak_source_library(ZLIB PACKAGE zlib1g-dev HEADER zlib.h LIBRARY z)
tokamak_source_library(ZSTD PACKAGE libzstd-dev HEADER zstd.h LIBRARY zstd)
tokamak_source_library(BZIP2 PACKAGE libbz2-dev HEADER bzlib.h LIBRARY bz2)
tokamak_source_library(LZMA PACKAGE liblzma-dev HEADER lzma.h LIBRARY lzma)
tokamak_source_library(LIBARCHIVE PACKAGE libarchive-dev HEADER archive.h LIBRARY archive)
tokamak_source_library(CSV PACKAGE libcsv-dev HEADER csv.h LIBRARY csv)
tokamak_source_library(UTF8PROC PACKAGE libutf8proc-dev HEADER utf8proc.h LIBRARY utf8proc)
tokamak_source_library(OPENSSL PACKAGE libssl-dev HEADER openssl/evp.h LIBRARY crypto)
tokamak_source_library(HDF5 PACKAGE libhdf5-dev HEADER hdf5.h LIBRARY hdf5_serial hdf5 SUFFIXES hdf5/serial)
tokamak_source_library(LMDB PACKAGE liblmdb-dev HEADER lmdb.h LIBRARY lmdb)
if(TARGET tokamak_source_HDF5)  # whose functions change their meaning with its version
  target_compile_definitions(tokamak_source_HDF5 INTERFACE H5_USE_110_API)
endif()
