// The layout of a shard of MosaicML's streaming format (MDS): how many samples there are, where each of them begins,
// the columns, and then the samples. Tests: tests/data/sources/mds_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/sources/byte_stream.h"
#include "data/sources/token_type.h"

namespace tokamak {

/// What a column's encoding means to training.
struct MdsEncoding {
  enum class Kind {
    kText,     // str, and numbers that are written as text
    kBytes,    // text, if they are
    kInteger,  // of `type`
    kTokens,   // ndarray of integers with one dimension
    kOther,    // pictures, pickled objects, arrays of floats ...
  };

  Kind kind = Kind::kOther;
  std::optional<TokenType> type = {};  // of integers and tokens; nothing: each array says its own
  bool has_shape = false;              // each array says its length
};

/// By its name: "str", "int", "ndarray:int32:2048".
MdsEncoding parse_mds_encoding(std::string_view name);

struct MdsColumn {
  std::string name, encoding;
  std::optional<uint32_t> size;  // of its values; nothing: each sample says it
};

struct MdsHeader {
  std::vector<uint32_t> offsets;  // in the shard; of each sample, and of the end of the last one
  std::vector<MdsColumn> columns;
};

/// Reads and consumes what a shard has before its first sample. UserErrors for what is no such shard or cannot be one.
MdsHeader read_mds_header(ByteBuffer& buffer);

/// The bytes of one column of a sample. UserError, with `place`, where the sizes in it do not add up to its own.
std::string_view mds_value(std::string_view sample, const std::vector<MdsColumn>& columns, size_t column,
                           std::string_view place);

}  // namespace tokamak
