#include "base/error.h"
#include "profile/gzip.h"

#include <zlib.h>

namespace tokamak {

bool has_gzip() { return true; }

std::string gzip(std::string_view text) {
  constexpr int kWindowBits = 15, kGzipFormat = 16, kMemoryLevel = 8;
  z_stream stream{};
  TOKAMAK_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits + kGzipFormat, kMemoryLevel,
                             Z_DEFAULT_STRATEGY) == Z_OK,
                "zlib does not begin");
  std::string packed(deflateBound(&stream, uLong(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = uInt(packed.size());
  int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  TOKAMAK_CHECK(status == Z_STREAM_END, "zlib ends with {}", status);
  return packed;
}

}  // namespace tokamak
