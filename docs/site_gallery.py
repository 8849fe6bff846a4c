"""The gallery: every script of `examples/` is run, and the figures it writes are shown.

A script that draws says so in its first lines, "Run `python examples/name.py [figure.png]`": it gets these names, in a
folder of its own, and the files that it writes there are its pictures. Its first line is its title.
"""

import re
import shutil
import tempfile
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

_RUN = re.compile(r"python examples/\w+\.py\s+\[?((?!photo)(?:\w+\.png ?)+|folder|FOLDER)\]?[ `]")  # a photo is read
_folder = Path(tempfile.mkdtemp(prefix="assay-gallery-"))


def names(gallery_conf, script_vars) -> list[str]:
    """Return the names of files that the script may write its figures to."""
    asked = _RUN.search(Path(script_vars["src_file"]).read_text(encoding="utf-8"))
    if asked is None:
        return []
    (folder := _folder / Path(script_vars["src_file"]).stem).mkdir(exist_ok=True)
    return [str(folder if "." not in name else folder / name) for name in asked[1].split()]


def written(block, block_vars, gallery_conf) -> str:
    """Take the figures that a script wrote, as pictures of its page."""
    taken = []
    for file in sorted((_folder / Path(block_vars["src_file"]).stem).glob("**/*.png")):
        shutil.move(file, target := next(block_vars["image_path_iterator"]))
        taken.append(target)
    return figure_rst(taken, gallery_conf["src_dir"])


CONF = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py",
    "image_scrapers": (written,),
    "reset_argv": names,
    "reset_modules": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "min_reported_time": 1000,
    "remove_config_comments": True,
    "copyfile_regex": r".*\.rst",
}
