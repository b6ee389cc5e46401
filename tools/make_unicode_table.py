#!/usr/bin/env python3
"""Writes src/data/unicode_table.cpp: the class of every code point.

Usage: make_unicode_table.py > src/data/unicode_table.cpp

The tokenizer must cut text exactly where tiktoken does, so the version of Unicode is fixed to that of tiktoken's
regular expressions. A Python whose own tables are of another version needs `pip install unicodedata2==16.0.0`.
"""
import sys

UNICODE_VERSION = "16.0.0"

# The White_Space property of PropList.txt, which Python does not offer (str.isspace differs in U+001C to U+001F).
WHITE_SPACE = [(0x9, 0xD), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
               (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)]

# Regular expressions count as \w, beside all letters, marks and decimal digits: categories of letter-like numbers and of
# connecting punctuation, and, of PropList.txt, circled letters (Other_Alphabetic, as far as they are symbols) and joiners.
WORD_CATEGORIES = ["Nd", "Nl", "Pc"]
WORD_SYMBOLS = [(0x200C, 0x200D), (0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189)]

# In the order of CharClass; categories that are not here are kOther.
CLASSES = ["Other", "Mark", "Upper", "Lower", "Letter", "Number", "Space"]
CATEGORIES = {"Lu": "Upper", "Lt": "Upper", "Ll": "Lower", "Lm": "Letter", "Lo": "Letter"}
MAJOR_CATEGORIES = {"M": "Mark", "N": "Number"}
BLOCK = 256  # code points


def unicode_data():
    import unicodedata
    if unicodedata.unidata_version == UNICODE_VERSION:
        return unicodedata
    try:
        import unicodedata2
    except ImportError:
        unicodedata2 = unicodedata
    if unicodedata2.unidata_version != UNICODE_VERSION:
        sys.exit(f"expected the tables of Unicode {UNICODE_VERSION}, got {unicodedata2.unidata_version}; "
                 f"run: pip install unicodedata2=={UNICODE_VERSION}")
    return unicodedata2


def class_of(data, code):
    """The digit of a code point's class."""
    if any(first <= code <= last for first, last in WHITE_SPACE):
        return str(CLASSES.index("Space"))
    category = data.category(chr(code))
    return str(CLASSES.index(CATEGORIES.get(category) or MAJOR_CATEGORIES.get(category[0], "Other")))


def is_word(data, code):
    category = data.category(chr(code))
    return (category[0] in "LM" or category in WORD_CATEGORIES or
            any(first <= code <= last for first, last in WORD_SYMBOLS))


def odd_words(data):
    """The ranges in which the class alone does not tell what is_word() says: letters, marks and numbers are words."""
    ranges = []
    for code in range(0x110000):
        by_class = CLASSES[int(class_of(data, code))] not in ("Other", "Space")
        if is_word(data, code) == by_class:
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def print_rows(items, separator, indent="    "):
    line = indent
    for item in items:
        if len(line) + len(item) + len(separator) > 120:
            print(line.rstrip())
            line = indent
        line += item + separator
    print(line.rstrip())


def main():
    data = unicode_data()
    blocks, block_of = [], []
    for first in range(0, 0x110000, BLOCK):
        block = "".join(class_of(data, code) for code in range(first, first + BLOCK))
        if block not in blocks:
            blocks.append(block)
        block_of.append(str(blocks.index(block)))
    print(f"// Made by tools/make_unicode_table.py from Unicode {UNICODE_VERSION}; do not edit.")
    print('#include "data/unicode_table.h"\n\nnamespace tokamak {\n\nnamespace {\n')
    print("// clang-format off")
    print(f"// The class of each code point of a block, as a digit.\nconstexpr char kBlocks[][{BLOCK + 1}] = {{")
    for block in blocks:
        print_rows([f'"{block[at:at + 64]}"' for at in range(0, BLOCK, 64)], " ")
        print("    ,")
    print(f"}};\n\n// The block of each {BLOCK} code points.\nconstexpr uint8_t kBlockOf[] = {{")
    print_rows(block_of, ",")
    print("};\n")
    print("// Numbers that are no word characters, and word characters of class kOther: first and last of each range.")
    print("constexpr uint32_t kOddWords[][2] = {")
    print_rows([f"{{0x{first:X}, 0x{last:X}}}" for first, last in odd_words(data)], ", ")
    print("};\n// clang-format on\n\n}  // namespace\n")
    print("CharClass char_class(uint32_t code) {")
    print(f"  if (code > 0x10FFFF) return CharClass::kOther;")
    print(f"  return CharClass(kBlocks[kBlockOf[code / {BLOCK}]][code % {BLOCK}] - '0');\n}}\n")
    print("bool is_word_code(uint32_t code) {")
    print("  bool by_class = char_class(code) != CharClass::kOther && char_class(code) != CharClass::kSpace;")
    print("  for (const auto& [first, last] : kOddWords)")
    print("    if (first <= code && code <= last) return !by_class;")
    print("  return by_class;\n}\n\n}  // namespace tokamak")


if __name__ == "__main__":
    main()
