# Run by `cmake --install`: writes what `tokamak_program` prints for man and for shells into the folder `tokamak_share`.
function(install_share program share)
  execute_process(COMMAND ${program} man --out=${share}/man COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Installing: ${share}/man")
  # Debian's zsh looks for those of packages in vendor-completions, others in site-functions.
  set(shells bash zsh zsh fish)
  set(files bash-completion/completions/tokamak zsh/site-functions/_tokamak zsh/vendor-completions/_tokamak
            fish/vendor_completions.d/tokamak.fish)
  foreach(shell file IN ZIP_LISTS shells files)
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY ${share}/${folder})
    execute_process(COMMAND ${program} completions ${shell} OUTPUT_FILE ${share}/${file} COMMAND_ERROR_IS_FATAL ANY)
    message(STATUS "Installing: ${share}/${file}")
  endforeach()
endfunction()
install_share(${tokamak_program} ${tokamak_share})
