// What gzip makes of some bytes, for tests.
#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>

namespace tokamak {

inline std::string gzip_bytes(const std::string& bytes) {
  z_stream state = {};
  if (deflateInit2(&state, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib");
  std::string out(deflateBound(&state, uLong(bytes.size())), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = uInt(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = uInt(out.size());
  int status = deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  deflateEnd(&state);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib did not finish");
  return out;
}

}  // namespace tokamak
