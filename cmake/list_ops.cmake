# Writes OUTPUT: the list behind all_ops(), made of every `extern const OpDef a, b;` in HEADERS; see src/ops/CMakeLists.txt.
set(includes "")
set(names "")
foreach(header ${HEADERS})
  file(READ ${header} text)
  string(REGEX MATCHALL "extern const OpDef [^;]+;" declarations "${text}")
  if(declarations)
    cmake_path(GET header FILENAME file)
    string(APPEND includes "#include \"ops/${file}\"\n")
  endif()
  string(REGEX REPLACE "extern const OpDef |;" " " declarations "${declarations}")
  string(REGEX MATCHALL "[a-z0-9_]+" declared "${declarations}")
  list(APPEND names ${declared})
endforeach()
list(SORT names)
list(TRANSFORM names PREPEND "      &op::")
list(JOIN names ",\n" names)
file(WRITE ${OUTPUT} "#include \"ops/all_ops.h\"
${includes}
namespace tokamak {

std::span<const OpDef* const> all_ops() {
  static constexpr const OpDef* kOps[] = {
${names},
  };
  return kOps;
}

}  // namespace tokamak
")
