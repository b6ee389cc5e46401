# tokamak_malloc carries the allocator of programs: mimalloc, where it is installed. A graph is copied by each pass, in
# many small pieces, and `plan` compiles hundreds of graphs: with glibc's allocator that takes a third longer.
# Sanitizers bring their own.
option(TOKAMAK_MIMALLOC "Link programs with mimalloc, if it is found" ON)
add_library(tokamak_malloc INTERFACE)
if(TOKAMAK_MIMALLOC AND NOT TOKAMAK_SANITIZE)
  find_package(mimalloc QUIET)
  if(mimalloc_FOUND)
    target_link_libraries(tokamak_malloc INTERFACE mimalloc)
  endif()
endif()
