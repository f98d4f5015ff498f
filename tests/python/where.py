"""Where the tree and its build are. SCONCE_PROGRAM, the built program, says which build."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SCONCE_PROGRAM", ROOT / "build/release/server/sconce")).resolve()
BUILD = PROGRAM.parent.parent
