"""Files of Debian packages as plain text. Standard library alone."""
import gzip
import html
import lzma
import re

# Parts of a page that are no text.
DROPPED = re.compile(
    r"<!--.*?-->|<(script|style|head|nav|header|footer|svg|form|button|math|select|noscript)\b[^>]*>.*?</\1\s*>",
    re.S | re.I)
MAIN = re.compile(r"<main\b|<article\b|<div[^>]*\brole=\"main\"", re.I)
AFTER_MAIN = re.compile(r"</main\s*>|<div[^>]*\bclass=\"(?:sphinxsidebar|related|nav|footer)\b", re.I)
PRE = re.compile(r"(<pre\b[^>]*>.*?</pre\s*>)", re.S | re.I)
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:]*)[^>]*>|<[!?][^>]*>")
BLOCKS = {"p", "div", "section", "article", "main", "ul", "ol", "dl", "dd", "table", "blockquote", "h1", "h2", "h3",
          "h4", "h5", "h6", "pre", "title", "page", "steps", "list", "terms", "note", "hr", "aside", "figure",
          "fieldset", "tbody", "thead", "details"}
LINES = {"br", "li", "tr", "dt", "item"}
CELLS = {"td", "th"}

ROFF_FONT = re.compile(r"\\f(?:\[[^\]]*\]|\(..|.)|\\s[-+]?\d|\\[&/,|^]|\\\*\[[^\]]*\]|\\m\[[^\]]*\]")
ROFF_NAMES = {"\\-": "-", "\\(bu": "*", "\\(em": "--", "\\(en": "-", "\\(aq": "'", "\\(dq": '"', "\\(co": "(c)",
              "\\(lq": '"', "\\(rq": '"', "\\e": "\\", "\\~": " ", "\\ ": " ", "\\0": " ", "\\(ti": "~", "\\(ha": "^",
              "\\(rs": "\\", "\\'": "'", "\\`": "`", "\\(oq": "'", "\\(cq": "'", "\\:": "", "\\%": "",
              "\\[aq]": "'", "\\[dq]": '"', "\\[en]": "-", "\\[em]": "--", "\\[bu]": "*", "\\[ti]": "~", "\\[ha]": "^",
              "\\[lq]": '"', "\\[rq]": '"', "\\[oq]": "'", "\\[cq]": "'", "\\[rs]": "\\", "\\[co]": "(c)"}
ROFF_DROPPED = (".TH", ".so", ".de", ".if", ".ie", ".el", ".nr", ".ds", "..", ".Dd", ".Os")
ROFF_HEADS = {"SH", "SS", "Sh", "Ss", "TP", "PP", "P", "LP", "IP", "Pp", "It", "HP"}


def opened(name, data):
    """The name and bytes of what is compressed; dictd's .dz is gzip."""
    if name.endswith((".gz", ".dz")):
        return name[:-3], gzip.decompress(data)
    if name.endswith(".xz"):
        return name[:-3], lzma.decompress(data)
    return name, data


def decoded(data):
    """None: it is no text."""
    if b"\0" in data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    odd = sum(text.count(chr(c)) for c in (*range(1, 9), *range(14, 32)) if c != 27)
    return None if odd > len(text) / 1000 else re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]", "", text)


def tag_text(match):
    name = (match.group(2) or "").lower()
    if name in BLOCKS:
        return "\n\n"
    if name in LINES:
        return "\n- " if name in ("li", "item") and not match.group(1) else "\n"
    return " " if name in CELLS else ""


def html_text(page):
    """What stands between tags, with blank lines around blocks; <pre> keeps its lines."""
    page = DROPPED.sub(" ", page)
    main = MAIN.search(page)
    if main:
        page = page[main.start():]
        end = AFTER_MAIN.search(page, 1)
        if end and end.start() > 500:
            page = page[:end.start()]
    parts = []
    for part in PRE.split(page):
        if part[:4].lower() == "<pre":
            parts.append("\n\n" + html.unescape(TAG.sub("", part)).strip("\n") + "\n\n")
            continue
        text = html.unescape(TAG.sub(tag_text, re.sub(r"\s+", " ", part)))
        parts.append(re.sub(r" *\n *", "\n", re.sub(r"[ \t\u00a0]+", " ", text)))
    return "".join(parts).replace("\u00b6", "").replace("\u200b", "").replace("\u00ad", "")


def roff_text(page):
    lines = []
    for line in page.split("\n"):
        if line[:2] in ('.\\', "'\\") or line.startswith(ROFF_DROPPED):
            continue
        if line[:1] in (".", "'"):
            macro, _, rest = line[1:].strip().partition(" ")
            rest = rest.replace('"', "")
            if macro in ROFF_HEADS:
                lines.append("")
            line = rest
            if not line:
                continue
        for name, value in ROFF_NAMES.items():
            line = line.replace(name, value)
        lines.append(ROFF_FONT.sub("", line))
    return "\n".join(lines)


def text_of(path, data):
    """A file as text and whether it was a page (HTML, Mallard); None: it is no text."""
    try:
        path, data = opened(path, data)
    except (OSError, EOFError, lzma.LZMAError):
        return None
    text = decoded(data)
    if text is None:
        return None
    page = bool(re.search(r"\.(x?html?|page)$", path))
    if page:
        text = html_text(text)
    elif re.search(r"\.[1-9][a-z]*$", path) and "/man/" in path:
        text = roff_text(text)
    return tidy(text), page


def tidy(text):
    """Line ends and runs of empty lines as everywhere; no blanks at the ends of lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(8)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \u00a0]+\n", "\n", text)).strip()
