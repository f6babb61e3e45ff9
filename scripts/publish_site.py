"""Publish a built site as the folder of its version on the branch gh-pages, beside those of other versions.

    python scripts/publish_site.py site

versions.json, which the pages' switcher reads, lists the folders; index.html leads to the newest.
"""

import json
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns, rmtree
from tempfile import TemporaryDirectory

from site_pages import ROOT, version

BRANCH = "gh-pages"


def main() -> int:
    with TemporaryDirectory() as scratch:
        pages = Path(scratch) / "pages"
        known = git("ls-remote", "--heads", "origin", BRANCH)
        if known:
            git("fetch", "--depth", "1", "origin", BRANCH)
            git("worktree", "add", "--detach", str(pages), "FETCH_HEAD")
        else:
            git("worktree", "add", "--orphan", "-b", BRANCH, str(pages))
        put(Path(sys.argv[1]), pages, version())
        author = ["-c", "user.name=github-actions", "-c", "user.email=github-actions@users.noreply.github.com"]
        git("add", "--all", cwd=pages)
        git(*author, "commit", "--message", f"The site of {version()}", cwd=pages)
        git("push", "origin", f"HEAD:refs/heads/{BRANCH}", cwd=pages)
    return 0


def put(site: Path, pages: Path, name: str) -> None:
    """Put a site into the folder of its version, and list all versions, the newest first."""
    rmtree(pages / name, ignore_errors=True)
    copytree(site, pages / name, ignore=ignore_patterns(".doctrees", ".buildinfo"))
    found = sorted((path.parent.name for path in pages.glob("*/index.html")), key=_numbers, reverse=True)
    entries = [{"name": each, "version": each, "url": f"../{each}/", "preferred": each == found[0]} for each in found]
    (pages / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    move = f'<meta http-equiv="refresh" content="0; url={found[0]}/">'
    page = f'<!doctype html><meta charset="utf-8"><title>tdce</title>{move}\n'
    (pages / "index.html").write_text(page, encoding="utf-8")
    (pages / ".nojekyll").touch()  # folders that begin with _ are served, too


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split(".") if part.isdigit())


def git(*words: str, cwd: Path = ROOT) -> str:
    return subprocess.run(["git", *words], cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    raise SystemExit(main())
