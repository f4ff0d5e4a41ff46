#!/usr/bin/env python3
"""filter.py HEADER -- the header as Doxygen reads it, on standard output. dualgemm.h has plain comments, laid out for
those who read it; here they become Doxygen's, and every declaration gets the one that is about it:

    behind a declaration        is about that one, and all names that it declares
    before declarations         is about those up to the next comment or empty line
    "/* ---- status ---- */"    is a heading over everything up to the next one
    the first of the file       is about the file, and so are others of several lines with an empty line behind them

Doxygen knows no comment about several names, so each name is declared, and commented, on its own.
"""
import re
import sys

# Code ends behind ; { } and the comma, and before a comment or a directive; brackets are part of it.
PIECE = re.compile(r"(?P<comment>/\*.*?\*/)|(?P<directive>^#(?:\\\n|[^\n/])*)|(?P<gap>\n[ \t]*\n\s*)"
                   r"|(?P<code>[^\s#/](?:[^;{},()/#]|\([^()]*(?:\([^()]*\))?[^()]*\))*(?:[;{},]|(?=/\*)|(?=#)))",
                   re.S | re.M)
HEADING = re.compile(r"/\* -+ (.+?) -+ \*/")
NAMES = re.compile(r"(?P<type>(?:const )?\w+)(?P<names>\*? \*?\w+(?:, \*?\w+)+);")


class Declarations:
    """What has been read: pairs of a comment, or None, and code."""

    def __init__(self):
        self.all, self.about, self.headings = [], None, 0

    def heading(self, words):
        self.code(("/** \\} */\n" if self.headings else "") + f"/** \\name {words} */\n/** \\{{ */", None)
        self.headings += 1

    def file(self, comment):
        self.code("/** \\file\n * \\details" + comment[2:], None)

    def code(self, code, comment):
        self.all.append((comment, code))

    def written(self):
        for comment, code in self.all:
            if comment: yield "/**" + comment[2:]
            yield code
        yield "/** \\} */"


def statements(code):
    """One statement for each name that it declares."""
    found = NAMES.fullmatch(code)
    if not found: return [code]
    pointer = "*" if found["names"].startswith("*") else ""
    return [f"{found['type']}{pointer} {name.strip()};" for name in found["names"].lstrip("*").split(",")]


def read(text):
    seen, begun, enumeration = Declarations(), "", False
    behind = None  # where the names of the last statement begin, if that stands on the same line
    for piece in PIECE.finditer(text):
        kind, words = piece.lastgroup, piece[0]
        if behind is not None and "\n" in text[end:piece.start()]: behind = None
        end = piece.end()
        if kind == "gap":
            if seen.about and "\n" in seen.about and seen.about != seen.all[-1][0]: seen.file(seen.about)
            seen.about = behind = None
        elif kind == "comment" and not seen.all: seen.code("/** \\file\n" + words[2:], None)
        elif kind == "comment" and HEADING.fullmatch(words): seen.heading(HEADING.fullmatch(words)[1])
        elif kind == "comment" and behind is not None:
            seen.all[behind:] = [(words, code) for _, code in seen.all[behind:]]
            seen.about = behind = None
        elif kind == "comment": seen.about = words
        elif words.startswith("}"):
            seen.code(words, None)
            seen.about = None
        elif words.endswith(",") and not enumeration: begun += words + " "
        else:
            behind = len(seen.all)
            for statement in statements(begun + re.sub(r"\s*\n\s*", " ", words) if kind == "code" else words):
                seen.code(statement, seen.about)
            begun = ""
            if words.endswith("{"): seen.about, behind, enumeration = None, None, "enum" in words
    return "\n".join(seen.written()) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        sys.stdout.write(read(header.read()))
