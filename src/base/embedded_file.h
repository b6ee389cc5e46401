// A file of the sources that is part of the program as text: cmake/embed.cmake writes the tables of them.
#pragma once

namespace tokamak {

struct EmbeddedFile {
  const char* name;  // below src/
  const char* text;
};

}  // namespace tokamak
