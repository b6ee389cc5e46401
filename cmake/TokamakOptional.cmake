# What a build can do without has an option TOKAMAK_<NAME>: auto (used when it is found), on (an error when it is not) or
# off. What is used and what is not picks the files of a folder that are built.

# tokamak_optional(NAME HELP what [LACKS why] WITHOUT so [INSTALL how]): makes that option and sets <NAME>_used. LACKS:
# what was not found, in words; none: nothing. WITHOUT: how it is then. INSTALL: what to do.
function(tokamak_optional name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HELP;LACKS;WITHOUT;INSTALL" "")
  set(TOKAMAK_${name} "auto" CACHE STRING "${arg_HELP}: on, off or auto (when found)")
  set_property(CACHE TOKAMAK_${name} PROPERTY STRINGS auto on off)
  string(TOLOWER "${TOKAMAK_${name}}" wanted)  # also in CMake's own words
  set(${name}_used FALSE PARENT_SCOPE)
  if(wanted MATCHES "^(off|no|false|0)$")
    message(STATUS "${arg_WITHOUT}, as TOKAMAK_${name}=${TOKAMAK_${name}}")
  elseif(NOT arg_LACKS)
    set(${name}_used TRUE PARENT_SCOPE)
  elseif(wanted MATCHES "^(on|yes|true|1)$")
    message(FATAL_ERROR "TOKAMAK_${name}=${TOKAMAK_${name}}, but ${arg_LACKS}. ${arg_INSTALL}")
  else()
    message(STATUS "${arg_WITHOUT}, as ${arg_LACKS}. ${arg_INSTALL}")
  endif()
endfunction()

# tokamak_optional_library(NAME TARGET target PACKAGE debian HEADER header LIBRARY names... [SUFFIXES folders...]
# HELP what WITHOUT so): the target carries the library where it is used; without it, that target is missing.
function(tokamak_optional_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET;PACKAGE;HEADER;HELP;WITHOUT" "LIBRARY;SUFFIXES")
  find_path(TOKAMAK_${name}_INCLUDE ${arg_HEADER} PATH_SUFFIXES ${arg_SUFFIXES})
  find_library(TOKAMAK_${name}_LIBRARY NAMES ${arg_LIBRARY} PATH_SUFFIXES ${arg_SUFFIXES})
  mark_as_advanced(TOKAMAK_${name}_INCLUDE TOKAMAK_${name}_LIBRARY)
  set(lacks)
  if(NOT TOKAMAK_${name}_INCLUDE OR NOT TOKAMAK_${name}_LIBRARY)
    set(lacks LACKS "${arg_PACKAGE} was not found")
  endif()
  tokamak_optional(${name} HELP "${arg_HELP}" WITHOUT "${arg_WITHOUT}" ${lacks}
                   INSTALL "Install it with: apt-get install ${arg_PACKAGE}")
  if(${name}_used)
    add_library(${arg_TARGET} INTERFACE)
    target_include_directories(${arg_TARGET} SYSTEM INTERFACE ${TOKAMAK_${name}_INCLUDE})
    target_link_libraries(${arg_TARGET} INTERFACE ${TOKAMAK_${name}_LIBRARY})
  endif()
endfunction()
