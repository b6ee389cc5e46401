// GPT-2's spelling of bytes as printable characters, which its vocabulary files and Hugging Face's use: printable
// Latin-1 bytes stand for themselves, the others are U+0100 onward in ascending order (so a space is U+0120).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

/// The bytes in the order of their characters in GPT-2's vocabulary: the printable ones, then the others.
std::array<uint8_t, 256> byte_alphabet_order();

/// Bytes to their printable spelling, in UTF-8.
std::string spell_bytes(std::string_view bytes);

/// A printable spelling back to bytes; nothing if it holds a character outside the alphabet.
std::optional<std::string> unspell_bytes(std::string_view spelling);

}  // namespace tokamak
