"""The former name of sconce.compare, deprecated: python -m sconce.compare"""
import sys

from sconce.compare import compare as verify  # noqa: F401
from sconce.compare import main

if __name__ == "__main__":
    sys.exit(main())
