# Options and the flags that every target of the project shares.
option(TOKAMAK_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TOKAMAK_BUILD_BENCH "Build the speed measurements of bench/" ${PROJECT_IS_TOP_LEVEL})
option(TOKAMAK_FUZZ "Build the fuzzing targets of tests/fuzz (needs clang's libFuzzer)" OFF)
set(TOKAMAK_FUZZ_SECONDS "5" CACHE STRING "How long each fuzzing target runs as a test")
option(TOKAMAK_WERROR "Treat warnings as errors" OFF)
set(TOKAMAK_ARCH "native" CACHE STRING "Value of -march for the CPU the program will run on; empty for the compiler's default")
set(TOKAMAK_JOIN "0" CACHE STRING "How many sources are compiled as one where a library allows it; 0: each alone")
set(TOKAMAK_SANITIZE "" CACHE STRING "Sanitizers to build with: address, thread or empty")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths are cached relative to the source folder, so that another clone finds what this one compiled. Precompiled
  # headers are cached only if ccache need not look for __TIME__ and for macros in them.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

add_library(tokamak_flags INTERFACE)
target_compile_options(tokamak_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
# sqrt and comparisons vectorise only when nobody looks at errno or at floating-point exceptions; no result changes.
# Multiply-adds may fuse: twice the speed in polynomials, one rounding less.
target_compile_options(tokamak_flags INTERFACE -fno-math-errno -fno-trapping-math -ffp-contract=fast)
# False alarms of g++ 12 on joined std::strings (GCC bug 105651).
target_compile_options(tokamak_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(TOKAMAK_WERROR)
  target_compile_options(tokamak_flags INTERFACE -Werror)
endif()
if(TOKAMAK_ARCH)
  target_compile_options(tokamak_flags INTERFACE -march=${TOKAMAK_ARCH})
endif()
if(TOKAMAK_SANITIZE STREQUAL "address")
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(NOT TOKAMAK_FUZZ)
    # A check at every use of a pointer is a quarter of the time of compiling. AddressSanitizer stops at null pointers
    # itself; what reads bytes of files at any address is also tried by the fuzzing targets, with every check.
    list(APPEND sanitize -fno-sanitize=null,alignment)
  endif()
elseif(TOKAMAK_SANITIZE STREQUAL "thread")
  set(sanitize -fsanitize=thread)
elseif(TOKAMAK_SANITIZE)
  message(FATAL_ERROR "TOKAMAK_SANITIZE: expected address, thread or empty, got '${TOKAMAK_SANITIZE}'")
endif()
if(TOKAMAK_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TOKAMAK_FUZZ needs clang's libFuzzer, got ${CMAKE_CXX_COMPILER_ID}. "
                        "Install clang and use the preset: apt-get install clang && cmake --preset fuzz")
  endif()
  list(APPEND sanitize -fsanitize=fuzzer-no-link)  # tells the fuzzer which branches an input takes
endif()
target_compile_options(tokamak_flags INTERFACE ${sanitize})
target_link_options(tokamak_flags INTERFACE ${sanitize})
# These programs are large: LLVM's linker takes half the time of GNU's.
find_program(TOKAMAK_LLD ld.lld)
if(sanitize AND TOKAMAK_LLD)
  target_link_options(tokamak_flags INTERFACE -fuse-ld=lld)
endif()
