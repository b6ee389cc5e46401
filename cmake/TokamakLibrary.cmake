# tokamak_library(NAME [JOINED] [DEPS...]): one static library per source folder, made of all its .cpp files.
# The folder's content is the list: a file cannot be forgotten, and no second list can disagree with it.
# JOINED: with TOKAMAK_JOIN its sources are compiled several at a time, so that no two may have a name in common, not
# even in unnamed namespaces (tools/check_names.py).
function(tokamak_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "JOINED" "" "")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(arg_JOINED)
    tokamak_join(sources)
  endif()
  add_library(tokamak_${name} STATIC ${sources})
  target_include_directories(tokamak_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_compile_features(tokamak_${name} PUBLIC cxx_std_20)  # also of whoever uses it
  target_link_libraries(tokamak_${name} PUBLIC ${arg_UNPARSED_ARGUMENTS}
                        PRIVATE $<BUILD_INTERFACE:tokamak_flags> $<BUILD_INTERFACE:tokamak_hardening>)
  tokamak_precompile(tokamak_${name})
endfunction()

# tokamak_join(LIST): with TOKAMAK_JOIN, in the place of the list's sources such that include so many of them each. Most
# of a source's time are the templates that all use, so that a whole build takes half the time; one changed source takes
# three times as long. CMake's own unity builds name sources by absolute paths, which another clone's ccache would miss.
function(tokamak_join list)
  if(NOT TOKAMAK_JOIN)
    return()
  endif()
  list(LENGTH ${list} left)
  set(joined)
  while(left GREATER 0)
    set(text)
    foreach(turn RANGE 1 ${TOKAMAK_JOIN})
      list(POP_FRONT ${list} source)
      if(source)
        cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src)
        string(APPEND text "#include \"${source}\"\n")
      endif()
    endforeach()
    list(LENGTH ${list} left)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/joined_${left}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND joined ${file})
  endwhile()
  set(${list} ${joined} PARENT_SCOPE)
endfunction()

# tokamak_precompile(TARGET): the standard library's headers are parsed once for all that use this, a third of the time
# of compiling src/. Sources include what they need all the same: the fuzzing targets are built without,
# each source alone.
function(tokamak_precompile target)
  if(TOKAMAK_FUZZ)
    return()
  endif()
  if(NOT TARGET tokamak_std)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/no_code.cpp CONTENT "")
    add_library(tokamak_std OBJECT ${PROJECT_BINARY_DIR}/no_code.cpp)
    target_compile_features(tokamak_std PRIVATE cxx_std_20)
    target_link_libraries(tokamak_std PRIVATE fmt::fmt tokamak_parallel tokamak_flags tokamak_hardening)
    target_precompile_headers(tokamak_std PRIVATE
      <algorithm> <array> <charconv> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits> <map>
      <memory> <numeric> <optional> <set> <span> <string> <string_view> <utility> <vector> <fmt/format.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM tokamak_std)
endfunction()

# tokamak_embed(TARGET NAMESPACE FUNCTION [ROOT folder] FILES...): adds to the target the text of the files (names below
# src/, or that folder), which that function gives as a span of EmbeddedFile (base/embedded_file.h).
function(tokamak_embed target namespace function)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "ROOT" "")
  if(NOT arg_ROOT)
    set(arg_ROOT ${PROJECT_SOURCE_DIR}/src)
  endif()
  set(files ${arg_UNPARSED_ARGUMENTS})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  list(TRANSFORM files PREPEND ${arg_ROOT}/ OUTPUT_VARIABLE paths)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${arg_ROOT} -DNAMESPACE=${namespace}
            -DFUNCTION=${function} "-DFILES=${files}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

# tokamak_test(NAME [SLOW] [THREADS] [FILTER PATTERN] [THREADED PATTERN] [TOGETHER SUITE] [SHARDS COUNT] [DEPS...]): one
# test program per folder of tests/, every test of it (that matches the pattern) known to CTest. THREADED are those that
# ThreadSanitizer sees, where most of a folder starts no thread. The tests of the SUITE share what takes long to make, so
# that CTest knows them as one. With COUNT, for thousands of tests that take less time than their program's start, CTest
# knows so many parts of it, NAME.0 and so on.
# The label is the folder's name, then fast or slow (the sanitizers run the fast ones), then threads (what TSan runs):
# `ctest -L fast`. One joined label, because gtest_discover_tests cannot pass a list.
# It runs in the source tree, so that tests find tests/goldens and the optional ../shared/data.
function(tokamak_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SLOW;THREADS" "FILTER;THREADED;TOGETHER;SHARDS" "")
  if(arg_THREADED AND TOKAMAK_SANITIZE STREQUAL "thread")
    set(arg_FILTER ${arg_THREADED})
  endif()
  set(label ${name}.fast)
  if(arg_SLOW)
    set(label ${name}.slow)
  endif()
  if(arg_THREADS)
    string(APPEND label .threads)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(${name}_test ${sources})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}_test PRIVATE ${arg_UNPARSED_ARGUMENTS} tokamak_test_flags GTest::gtest_main)
  target_precompile_headers(${name}_test REUSE_FROM tokamak_gtest)  # tests/CMakeLists.txt
  # What the sanitizers' presets build.
  foreach(group fast threads)
    if(NOT TARGET tests_${group})
      add_custom_target(tests_${group})
    endif()
    if(label MATCHES "${group}")
      add_dependencies(tests_${group} ${name}_test)
    endif()
  endforeach()
  if(arg_TOGETHER)
    add_test(NAME ${name}.${arg_TOGETHER} COMMAND ${name}_test --gtest_filter=${arg_TOGETHER}.*
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name}.${arg_TOGETHER} PROPERTIES LABELS ${label} TIMEOUT 600 ENVIRONMENT OMP_WAIT_POLICY=passive)
    set(arg_FILTER -${arg_TOGETHER}.*)
  endif()
  if(arg_SHARDS)
    if(NOT arg_FILTER)
      set(arg_FILTER *)
    endif()
    math(EXPR last "${arg_SHARDS} - 1")
    foreach(shard RANGE ${last})
      add_test(NAME ${name}.${shard} COMMAND ${name}_test --gtest_filter=${arg_FILTER} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(${name}.${shard} PROPERTIES LABELS ${label} TIMEOUT 600
                           SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests"
                           ENVIRONMENT "OMP_WAIT_POLICY=passive;GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}")
    endforeach()
    return()
  endif()
  gtest_discover_tests(${name}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_TIMEOUT 120
                       TEST_FILTER "${arg_FILTER}"
                       NO_PRETTY_VALUES  # names are those of --gtest_filter, the same in every build
                       TEST_PREFIX "${name}." PROPERTIES LABELS ${label} TIMEOUT 600
                       # Tests share their cores, and threads that spin would block each other.
                       ENVIRONMENT OMP_WAIT_POLICY=passive)
endfunction()

# tokamak_optional_test(NAME FILE LIBRARIES...): one more file of NAME's test program, where all these libraries of data
# formats are there (cmake/TokamakSources.cmake).
function(tokamak_optional_test name file)
  foreach(library IN LISTS ARGN)
    if(NOT TARGET tokamak_source_${library})
      return()
    endif()
  endforeach()
  target_sources(${name}_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  foreach(library IN LISTS ARGN)
    target_link_libraries(${name}_test PRIVATE tokamak_source_${library})
  endforeach()
endfunction()
