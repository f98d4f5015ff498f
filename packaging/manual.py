#!/usr/bin/env python3
"""manual.py PROGRAM FOLDER: writes sconce.1.gz, sconce-COMMAND.1.gz, ... and the completion for bash, from `PROGRAM --help`."""
import gzip
import pathlib
import re
import subprocess
import sys

SECTION = re.compile(r"^(Positionals|Options|Subcommands):$")


class Command:
    """What the help of one command says."""

    def __init__(self, program, path):
        self.path = path
        text = subprocess.run([program, *path, "--help"], check=True, capture_output=True, text=True,
                              env={"COLUMNS": "200"}).stdout
        self.summary, self.usage, self.notes = "", "", []
        self.sections = {"Positionals": [], "Options": [], "Subcommands": []}
        section = None
        for line in text.splitlines():
            if found := SECTION.match(line):
                section = found[1]
            elif line.startswith("Usage: "):
                self.usage = line.removeprefix("Usage: ")
            elif not line.strip():
                section = None
            elif section and line.startswith("                 "):  # the text of a name too long for its column
                name, said = self.sections[section][-1]
                self.sections[section][-1] = (name, f"{said} {line.strip()}".strip())
            elif section:
                name, _, said = line.strip().partition("  ")
                self.sections[section].append((name, said.strip()))
            elif not self.usage:
                self.summary = f"{self.summary} {line}".strip()
            else:
                self.notes.append(line)
        if not self.summary or not self.usage:
            sys.exit(f"manual: no summary or usage in the help of {' '.join(('sconce', *path))}:\n{text}")

    @property
    def name(self):
        return "-".join(("sconce", *self.path))

    @property
    def options(self):
        return [word for name, _ in self.sections["Options"] for word in re.findall(r"--[\w-]+", name)]

    @property
    def children(self):
        return [name.split()[0] for name, _ in self.sections["Subcommands"]]

    def page(self, version, others):
        lines = [f'.TH {self.name.upper()} 1 "" "sconce {version}" "User Commands"', ".SH NAME",
                 rf"{troff(self.name)} \- {troff(self.summary.rstrip('.'))}", ".SH SYNOPSIS", troff(self.usage)]
        for title, section in (("ARGUMENTS", "Positionals"), ("OPTIONS", "Options"), ("COMMANDS", "Subcommands")):
            if self.sections[section]:
                lines.append(f".SH {title}")
            for name, said in self.sections[section]:
                lines += [".TP", rf"\fB{troff(name)}\fR", troff(said)]
        if self.notes:
            lines += [".SH NOTES", *(f"{troff(note)}\n.br" for note in self.notes)]
        lines += [".SH SEE ALSO", ", ".join(rf"\fB{troff(other)}\fR(1)" for other in others if other != self.name)]
        return "\n".join(lines) + "\n"


def troff(text):
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


def read_all(program, path=()):
    command = Command(program, path)
    commands = [command]
    for child in command.children:
        commands += read_all(program, (*path, child))
    return commands


def completion(commands):
    cases = []
    for command in commands:
        words = " ".join([*command.children, *command.options])
        cases.append(f'    "{" ".join(command.path)}") words="{words}" ;;')
    groups = "|".join(sorted({command.path[0] for command in commands if len(command.path) > 1}))
    return f"""# bash completion for sconce
_sconce() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} path="" words=""
  if [ "$COMP_CWORD" -gt 1 ]; then
    path=${{COMP_WORDS[1]}}
    case $path in {groups}) if [ "$COMP_CWORD" -gt 2 ]; then path+=" ${{COMP_WORDS[2]}}"; fi ;; esac
  fi
  case $path in
{chr(10).join(cases)}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  case $word in
    -*) ;;
    *) if [ -n "$path" ]; then mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$word"); fi ;;
  esac
}}
complete -o filenames -F _sconce sconce
"""


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    commands = read_all(program)
    names = [command.name for command in commands]
    for command in commands:
        page = gzip.compress(command.page(version, names).encode(), mtime=0)
        (folder / f"{command.name}.1.gz").write_bytes(page)
    (folder / "sconce.bash").write_text(completion(commands))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
