"""python -m sconce ...: the program `sconce` that came with this package."""
import os
import sys

program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "sconce")
if not os.path.exists(program):
    sys.exit(f"sconce: {program} is not there: the package was not installed from a wheel")
os.execv(program, [program, *sys.argv[1:]])
