#!/usr/bin/env python3
"""Writes src/data/unicode_table.cpp: which code points are letters, numbers and white space.

Usage: make_unicode_table.py > src/data/unicode_table.cpp

The tokenizer must cut text exactly where tiktoken does, so the version of Unicode is fixed to that of tiktoken's
regular expressions. A Python whose own tables are of another version needs `pip install unicodedata2==16.0.0`.
"""
import sys

UNICODE_VERSION = "16.0.0"

# The White_Space property of PropList.txt, which Python does not offer (str.isspace differs in U+001C to U+001F).
WHITE_SPACE = [(0x9, 0xD), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
               (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)]

CLASSES = {"L": "kLetter", "N": "kNumber"}


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
    if any(first <= code <= last for first, last in WHITE_SPACE):
        return "kSpace"
    return CLASSES.get(data.category(chr(code))[0])


def ranges(data):
    """Maximal runs of code points of one class, as (first, last, class); code points of no class are left out."""
    result = []
    for code in range(0x110000):
        kind = class_of(data, code)
        if kind is None:
            continue
        if result and result[-1][1] == code - 1 and result[-1][2] == kind:
            result[-1] = (result[-1][0], code, kind)
        else:
            result.append((code, code, kind))
    return result


def main():
    rows = [f"{{0x{first:X}, 0x{last:X}, {kind}}}," for first, last, kind in ranges(unicode_data())]
    print(f"// Made by tools/make_unicode_table.py from Unicode {UNICODE_VERSION}; do not edit.")
    print('#include "data/unicode_table.h"\n\nnamespace tokamak {\n\nusing enum CharClass;\n')
    print("// clang-format off")
    print("constexpr UnicodeRange kRanges[] = {")
    line = "   "
    for row in rows:
        if len(line) + 1 + len(row) > 120:
            print(line)
            line = "   "
        line += " " + row
    print(line + "\n};\n// clang-format on\n")
    print("std::span<const UnicodeRange> unicode_ranges() { return kRanges; }\n\n}  // namespace tokamak")


if __name__ == "__main__":
    main()
