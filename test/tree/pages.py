"""pages.py -- the Markdown pages of the repository, for the programs of this folder."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files(*patterns):
    """What git knows or would add, or None where this is no checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            check=False)
    return [ROOT / name for name in listed.stdout.split("\0") if name] if listed.returncode == 0 else None


def pages():
    listed = files("*.md")
    if listed is None: listed = [page for page in ROOT.glob("**/*.md") if "build" not in page.parts]
    return sorted(page for page in set(listed) if page.exists())
