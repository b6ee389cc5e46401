# tokamak_library(NAME [DEPS...]): one static library per source folder, made of all its .cpp files.
# The folder's content is the list: a file cannot be forgotten, and no second list can disagree with it.
function(tokamak_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(tokamak_${name} STATIC ${sources})
  target_include_directories(tokamak_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tokamak_${name} PUBLIC ${ARGN} PRIVATE tokamak_flags)
endfunction()

# tokamak_test(NAME DEPS...): one test program per folder of tests/, every test of it known to CTest.
# It runs in the source tree, so that tests find tests/goldens and the optional ../shared/data.
function(tokamak_test name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  add_executable(${name}_test ${sources})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}_test PRIVATE ${ARGN} tokamak_flags GTest::gtest_main)
  gtest_discover_tests(${name}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_TIMEOUT 120
                       TEST_PREFIX "${name}." PROPERTIES LABELS "${name}")
endfunction()
