#!/usr/bin/env python3
"""rooms.py ROOT -- fails where the folders of test/ are not those that the table of test/README.md names, or are more
than sixteen. A row may name folders of folders as well: each has to be there, and stand in the row of its room.
"""
import pathlib
import re
import sys

MOST = 16
ROW = re.compile(r"^\| (\[.*?) \|", re.M)
LINK = re.compile(r"\[([\w/]+)/\]\(")


def faults(table, folders):
    """`table`: the text of the page. `folders`: the paths of all folders below test/."""
    rooms = {folder for folder in folders if "/" not in folder}
    named = [name for row in ROW.findall(table) for name in LINK.findall(row)]
    for name in sorted(set(named) - folders): yield f"test/README.md has a row for {name}/, which is not there"
    for name in sorted(rooms - set(named)): yield f"test/README.md has no row for {name}/"
    for name in sorted({name for name in named if named.count(name) > 1}): yield f"test/README.md has two for {name}/"
    if len(rooms) > MOST: yield f"test/ has {len(rooms)} rooms, and at most {MOST} are wanted: put one below another"


def check_the_check():
    """What has to be found is found, and nothing else."""
    table = "| room | what |\n|---|---|\n| [a/](a), [a/b/](a/b/README.md) | text [c/](c) |\n"
    assert not list(faults(table, {"a", "a/b", "a/d"}))
    for folders in [{"a"}, {"a", "a/b", "c"}]: assert len(list(faults(table, folders))) == 1, folders
    many = {f"r{i}" for i in range(MOST + 1)}
    assert len(list(faults("".join(f"| [{name}/]({name}) | |\n" for name in many), many))) == 1
    assert len(list(faults(table + "| [a/](a) | |\n", {"a", "a/b"}))) == 1


def main(root):
    check_the_check()
    folders = {str(path.parent.relative_to(root / "test")) for path in (root / "test").rglob("*")
               if path.is_file() and "__pycache__" not in path.parts}
    folders = {str(parent) for folder in folders for parent in (pathlib.Path(folder), *pathlib.Path(folder).parents)}
    found = list(faults((root / "test/README.md").read_text(encoding="utf-8"), folders - {"."}))
    print("\n".join(found) or "every room has its row")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
