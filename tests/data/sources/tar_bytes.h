// Tar archives made by hand, for tests (the ustar format of POSIX.1-1988).
#pragma once

#include <cstdio>
#include <cstring>
#include <string>

namespace tokamak {

/// A member: its header and its content in blocks of 512 bytes. '0' is a file, '5' a folder, '2' a link.
inline std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  char header[512] = {};
  std::snprintf(header, 100, "%s", name.c_str());
  std::snprintf(header + 100, 24, "0000644%c0000000%c0000000", 0, 0);
  std::snprintf(header + 124, 12, "%011zo", content.size());
  std::snprintf(header + 136, 12, "%011o", 0);
  std::memset(header + 148, ' ', 8);
  header[156] = type;
  std::memcpy(header + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header + 148, 8, "%06o", sum);
  return std::string(header, 512) + content + std::string((512 - content.size() % 512) % 512, '\0');
}

/// A record of an extended header (a member of type 'x'): "LENGTH KEY=VALUE\n", where LENGTH counts the whole record.
inline std::string pax_record(const std::string& key, const std::string& value) {
  std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace tokamak
