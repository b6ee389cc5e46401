// gzip by zlib.
#include <zlib.h>

#include <algorithm>

#include "base/error.h"
#include "data/sources/compression.h"

namespace tokamak {

namespace {

class GzipBytes : public DecompressedBytes {
 public:
  explicit GzipBytes(ByteBuffer in) : DecompressedBytes(std::move(in)) {
    TOKAMAK_CHECK(inflateInit2(&state_, MAX_WBITS + 16) == Z_OK, "zlib cannot begin");  // + 16: gzip's header and CRC
  }
  ~GzipBytes() override { inflateEnd(&state_); }

  size_t read(std::span<char> out) override {
    while (!at_end_) {
      if (size_t count = inflate_some(out)) return count;
    }
    return 0;
  }

 private:
  size_t inflate_some(std::span<char> out) {
    if (in_.view().empty() && !in_.fill()) damaged_error(in_, "gzip", "the file is cut short");
    constexpr size_t kMost = 1u << 30;  // zlib counts in 32 bits
    size_t in_size = std::min(in_.view().size(), kMost), out_size = std::min(out.size(), kMost);
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in_.view().data()));
    state_.avail_in = uInt(in_size);
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    state_.avail_out = uInt(out_size);
    int status = inflate(&state_, Z_NO_FLUSH);
    in_.consume(in_size - state_.avail_in);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      damaged_error(in_, "gzip", state_.msg ? state_.msg : "the stream is not valid");
    if (status == Z_STREAM_END) next_member();
    return out_size - state_.avail_out;
  }

  /// A file may have several members; zeros may fill up its end (as tapes need it).
  void next_member() {
    in_.hold(1);
    while (in_.view().starts_with('\0')) {
      in_.consume(1);
      in_.hold(1);
    }
    at_end_ = in_.view().empty();
    inflateReset(&state_);
  }

  z_stream state_ = {};
  bool at_end_ = false;
};

std::unique_ptr<ByteStream> open(ByteBuffer in) { return std::make_unique<GzipBytes>(std::move(in)); }

}  // namespace

const Decompressor gzip_decompressor = {.open = open};

}  // namespace tokamak
