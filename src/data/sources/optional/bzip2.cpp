// bzip2 by libbz2.
#include <bzlib.h>

#include <algorithm>

#include "base/error.h"
#include "data/sources/compression.h"

namespace tokamak {

namespace {

class Bzip2Bytes : public DecompressedBytes {
 public:
  explicit Bzip2Bytes(ByteBuffer in) : DecompressedBytes(std::move(in)) { begin(); }
  ~Bzip2Bytes() override { BZ2_bzDecompressEnd(&state_); }

  size_t read(std::span<char> out) override {
    while (!at_end_) {
      if (size_t count = decompress_some(out)) return count;
    }
    return 0;
  }

 private:
  void begin() {
    state_ = {};
    TOKAMAK_CHECK(BZ2_bzDecompressInit(&state_, 0, 0) == BZ_OK, "libbz2 cannot begin");
  }

  size_t decompress_some(std::span<char> out) {
    bool ended = in_.view().empty() && !in_.fill();  // what libbz2 still holds may come out
    constexpr size_t kMost = 1u << 30;               // libbz2 counts in 32 bits
    size_t in_size = std::min(in_.view().size(), kMost), out_size = std::min(out.size(), kMost);
    state_.next_in = const_cast<char*>(in_.view().data());
    state_.avail_in = unsigned(in_size);
    state_.next_out = out.data();
    state_.avail_out = unsigned(out_size);
    int status = BZ2_bzDecompress(&state_);
    in_.consume(in_size - state_.avail_in);
    size_t count = out_size - state_.avail_out;
    if (status != BZ_OK && status != BZ_STREAM_END) damaged_error(in_, "bzip2", "the stream is not valid");
    if (status == BZ_OK && ended && count == 0) damaged_error(in_, "bzip2", "the file is cut short");
    if (status == BZ_STREAM_END) next_stream();
    return count;
  }

  /// A file may have several.
  void next_stream() {
    in_.hold(1);
    at_end_ = in_.view().empty();
    if (at_end_) return;
    BZ2_bzDecompressEnd(&state_);
    begin();
  }

  bz_stream state_ = {};
  bool at_end_ = false;
};

std::unique_ptr<ByteStream> open(ByteBuffer in) { return std::make_unique<Bzip2Bytes>(std::move(in)); }

}  // namespace

const Decompressor bzip2_decompressor = {.open = open};

}  // namespace tokamak
