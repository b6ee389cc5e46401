# The usual defences against memory errors, for the libraries of src/ (cmake/TokamakLibrary.cmake) and the program, of
# which they also make the tables of the linker read-only. What a compiler lacks is left out.
option(TOKAMAK_HARDEN "Build with stack protector, checked library calls, full RELRO and the like" ON)
add_library(tokamak_hardening INTERFACE)
if(NOT TOKAMAK_HARDEN OR TOKAMAK_SANITIZE OR TOKAMAK_FUZZ)  # a sanitizer checks more, in its own way
  return()
endif()

include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
  string(MAKE_C_IDENTIFIER "TOKAMAK_HAS${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    target_compile_options(tokamak_hardening INTERFACE ${flag})
  endif()
endforeach()
# Sizes that the compiler knows are checked in memcpy, read and the like; needs an optimiser.
target_compile_options(tokamak_hardening INTERFACE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>)
foreach(flag -pie -Wl,-z,relro,-z,now)
  string(MAKE_C_IDENTIFIER "TOKAMAK_LINKS${flag}" known)
  check_linker_flag(CXX ${flag} ${known})
  if(${known})
    target_link_options(tokamak_hardening INTERFACE ${flag})
  endif()
endforeach()
