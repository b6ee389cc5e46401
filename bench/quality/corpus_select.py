"""Which texts, and what of them, are kept: nothing twice, no lists of links, no tables. Standard library alone."""
import hashlib
import re

LONG = 100           # characters from which a paragraph is kept once in the whole corpus
SHORT_REPEATS = 20   # times that a shorter one of a package's pages is kept
LEAST = 400          # characters of a document
PIECE = 60_000       # characters into which longer ones (dictionaries) are cut
COMMON = frozenset("the of and to a in is that it for as with be this are on or by not from an if can which".split())


def hash_of(text):
    return hashlib.sha256(text.encode("utf-8")).digest()


def is_prose(text):
    """Most of it is words, and some of them are those of English sentences."""
    sample = text[:20_000]
    letters = sum(map(str.isalpha, sample)) + sample.count(" ")
    if letters < 0.65 * len(sample):
        return False
    words = re.findall(r"[A-Za-z]+", sample)
    return len(words) >= 50 and sum(word.lower() in COMMON for word in words) >= 0.08 * len(words)


def pieces(text):
    """Parts of about PIECE characters that end with a paragraph."""
    begin = 0
    while len(text) - begin > 1.5 * PIECE:
        end = text.find("\n\n", begin + PIECE)
        end = text.find("\n", begin + PIECE) if end < 0 or end > begin + 2 * PIECE else end
        if end < 0:
            break
        yield text[begin:end].strip("\n")
        begin = end
    yield text[begin:].strip("\n")


class Selection:
    """Takes documents in a fixed order, and gives what is new in each."""

    def __init__(self):
        self.documents, self.paragraphs, self.short = set(), set(), {}

    def begin_package(self):
        self.short = {}

    def keeps(self, paragraph, page):
        key = hash_of(re.sub(r"[\W\d_]+", " ", paragraph))[:12]
        if len(paragraph) >= LONG:
            if key in self.paragraphs:
                return False
            self.paragraphs.add(key)
            return True
        if not page:
            return True
        self.short[key] = self.short.get(key, 0) + 1
        return self.short[key] <= SHORT_REPEATS

    def take(self, text, page):
        """The documents made of one text."""
        key = hash_of(text)
        if len(text) < LEAST or key in self.documents:
            return
        self.documents.add(key)
        kept = "\n\n".join(p for p in text.split("\n\n") if self.keeps(p, page))
        if len(kept) < LEAST or len(kept) < 0.3 * len(text) or not is_prose(kept):
            return
        yield from (piece for piece in pieces(kept) if len(piece) >= LEAST)


def is_validation(document, every):
    return int.from_bytes(hash_of(document)[:8], "big") % every == 0
