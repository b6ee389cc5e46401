# tokamak_library(NAME [DEPS...]): one static library per source folder, made of all its .cpp files.
# The folder's content is the list: a file cannot be forgotten, and no second list can disagree with it.
function(tokamak_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)  # a folder of headers only
    add_library(tokamak_${name} INTERFACE)
    target_include_directories(tokamak_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(tokamak_${name} INTERFACE ${ARGN})
    return()
  endif()
  add_library(tokamak_${name} STATIC ${sources})
  target_include_directories(tokamak_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tokamak_${name} PUBLIC ${ARGN} PRIVATE tokamak_flags)
endfunction()

# tokamak_test(NAME [SLOW] [THREADS] [DEPS...]): one test program per folder of tests/, every test of it known to CTest.
# Labels: the folder's name; `slow` or `fast` (the sanitizers run only the fast ones); `threads` for what TSan runs.
# It runs in the source tree, so that tests find tests/goldens and the optional ../shared/data.
function(tokamak_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SLOW;THREADS" "" "")
  set(labels ${name} fast)
  if(arg_SLOW)
    set(labels ${name} slow)
  endif()
  if(arg_THREADS)
    list(APPEND labels threads)
  endif()
  string(REPLACE ";" "\\;" labels "${labels}")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_executable(${name}_test ${sources})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}_test PRIVATE ${arg_UNPARSED_ARGUMENTS} tokamak_flags GTest::gtest_main)
  gtest_discover_tests(${name}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_TIMEOUT 120
                       TEST_PREFIX "${name}." PROPERTIES LABELS "${labels}" TIMEOUT 600)
endfunction()
