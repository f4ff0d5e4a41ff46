"""python3 -m dualgemm.transformers CHECKPOINT writes this package's quant_method into the checkpoint's config.json."""
import argparse
import sys

from ..nn._options import OF_NVFP4
from ._rewrite import rewrite


def main():
    parser = argparse.ArgumentParser(prog="python3 -m dualgemm.transformers", description=__doc__)
    parser.add_argument("checkpoint", help="a folder with a config.json")
    parser.add_argument("--a-format", default="auto", choices=OF_NVFP4,
                        help="how activations are multiplied (default: %(default)s)")
    parser.add_argument("--restore", action="store_true", help="put everything back that was there before")
    given = parser.parse_args()
    try:
        method = rewrite(given.checkpoint, given.a_format, restore=given.restore)
    except (OSError, ValueError) as error:
        sys.exit(f"{parser.prog}: {error}")
    print(f"{given.checkpoint}/config.json: " + (f"quant_method is {method}" if method else "has no quant_method"))


main()
