# Writes OUTPUT: a C++ file with the function NAMESPACE::FUNCTION, which gives the text of FILES (below ROOT); see
# tokamak_embed.
set(text "#include \"base/embedded_file.h\"\n\n#include <span>\n\nnamespace ${NAMESPACE} {\n\n")
string(APPEND text "std::span<const EmbeddedFile> ${FUNCTION}();\n\n")
string(APPEND text "std::span<const EmbeddedFile> ${FUNCTION}() {\n")
string(APPEND text "  static constexpr EmbeddedFile kFiles[] = {\n")
foreach(file ${FILES})
  file(READ ${ROOT}/${file} content)
  string(APPEND text "      {\"${file}\", R\"tokamak(${content})tokamak\"},\n")
endforeach()
string(APPEND text "  };\n  return kFiles;\n}\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUTPUT} "${text}")
