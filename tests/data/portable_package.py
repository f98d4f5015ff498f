"""Rewrites a package so that it names no path of the machine that compiled it and states the real -march."""
import re
import zipfile


def make_portable(path, march):
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members:
            if name.endswith(".cpp"):
                code, marker, commands = content.decode().partition("// Compile cmd")
                # The first line and the recorded commands name files: keep their last component.
                strip = lambda text: re.sub(r"(/[\w.+-]+)+/(?=[\w.+-])", "", text)
                first, newline, rest = code.partition("\n")
                commands = strip(commands).replace("-march=native", f"-march={march}")
                content = strip(first) + newline + rest + marker + commands
                content = content.encode()
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            header = archive.fp.tell() + 30 + len(name.encode())
            # Data at a multiple of 64, as libtorch's writer does it: an extra field "FB" of the right length.
            padding = -(header + 4) % 64
            info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
            archive.writestr(info, content)
