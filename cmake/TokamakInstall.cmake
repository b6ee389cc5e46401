# Tokamak::tokamak, which is all libraries of src/, and `cmake --install`: the program, the libraries with their headers,
# and what find_package(Tokamak) reads. A library tokamak_NAME is Tokamak::NAME for others, in the tree and installed.
option(TOKAMAK_INSTALL "Install the program and the libraries" ${PROJECT_IS_TOP_LEVEL})

# tokamak_targets(OUT FOLDER TYPE): targets of that type that the folder and those below it make.
function(tokamak_targets out folder type)
  set(found)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(its_type ${target} TYPE)
    if(its_type STREQUAL type)
      list(APPEND found ${target})
    endif()
  endforeach()
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    tokamak_targets(below ${subfolder} ${type})
    list(APPEND found ${below})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

tokamak_targets(libraries ${PROJECT_SOURCE_DIR}/src STATIC_LIBRARY)
foreach(library IN LISTS libraries)
  string(REPLACE tokamak_ "" name ${library})
  add_library(Tokamak::${name} ALIAS ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
endforeach()
add_library(tokamak_everything INTERFACE)
target_link_libraries(tokamak_everything INTERFACE ${libraries})
target_include_directories(tokamak_everything INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
set_target_properties(tokamak_everything PROPERTIES EXPORT_NAME tokamak)
add_library(Tokamak::tokamak ALIAS tokamak_everything)
if(NOT TOKAMAK_INSTALL)
  return()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS tokamak RUNTIME COMPONENT program)
if(TARGET tokamak_parquet)  # where the program looks for it if it is not beside it (src/data/sources/column_module.cpp)
  install(TARGETS tokamak_parquet LIBRARY DESTINATION lib/tokamak COMPONENT parquet)
endif()
# Manual pages and completions are what the program prints, so that they cannot be of another one.
install(CODE "set(tokamak_program \"$<TARGET_FILE:tokamak>\")
set(tokamak_share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/install_share.cmake\")" COMPONENT program)

# Interface libraries that carry what the libraries link (cmake/Tokamak*.cmake, cmake/TokamakSources.cmake).
set(carriers tokamak_everything tokamak_parallel tokamak_matmul tokamak_cuda_libraries)
list(TRANSFORM TOKAMAK_SOURCE_LIBRARIES PREPEND tokamak_source_ OUTPUT_VARIABLE sources)
foreach(carrier tokamak_cudnn tokamak_nccl tokamak_cupti tokamak_http ${sources})
  if(TARGET ${carrier})
    list(APPEND carriers ${carrier})
  endif()
endforeach()
# Both "tokamak/tokamak.h" and, as headers name each other, "ops/matmul.h".
install(TARGETS ${libraries} ${carriers} EXPORT TokamakTargets ARCHIVE COMPONENT libraries
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_INCLUDEDIR}/tokamak)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tokamak COMPONENT libraries
        FILES_MATCHING PATTERN "*.h")
install(FILES include/tokamak/tokamak.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tokamak COMPONENT libraries)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tokamak)
install(EXPORT TokamakTargets NAMESPACE Tokamak:: DESTINATION ${package} COMPONENT libraries)
configure_package_config_file(cmake/TokamakConfig.cmake.in ${PROJECT_BINARY_DIR}/package/TokamakConfig.cmake
                              INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface: docs/stability.md.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/TokamakConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/TokamakConfig.cmake ${PROJECT_BINARY_DIR}/package/TokamakConfigVersion.cmake
        DESTINATION ${package} COMPONENT libraries)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
include(TokamakPackage)
