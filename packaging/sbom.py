"""A bill of materials (CycloneDX 1.5, JSON) of an installation: the libraries that lie in it, and what is compiled in.

bundle.py writes it beside the licences: for Debian packages and the archive as share/doc/PACKAGE/PACKAGE.cdx.json, for the
wheel as dist-info/sboms/sconce.cdx.json (PEP 770). Equal installations have equal bills: there is no time in them.
packaging/image_sbom.sh writes that of an image.
"""
import json
import pathlib
import subprocess
import uuid

# Headers whose code becomes part of Sconce's own files: each stands for the package that has it.
COMPILED_IN = ("CLI/CLI.hpp", "boost/version.hpp", "dragonbox-*/dragonbox/dragonbox.h", "fast_float/fast_float.h",
               "fmt/core.h", "nlohmann/json.hpp", "spdlog/version.h")
INCLUDE = pathlib.Path("/usr/include")


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def package_of(file):
    """The Debian package that has the file. dpkg knows files by the names they had before /lib became a link to /usr/lib."""
    file = pathlib.Path(file).resolve()
    return output("dpkg", "-S", f"*{str(file).removeprefix('/usr')}").split(":")[0]


def distribution():
    """As purls have it: debian and debian-12."""
    release = dict(line.rstrip().split("=", 1) for line in open("/etc/os-release") if "=" in line)
    name = release["ID"].strip('"')
    return name, f"{name}-{release.get('VERSION_ID', '').strip(chr(34))}"


def component(package, files=()):
    name, release = distribution()
    version, architecture, source = output("dpkg-query", "-W", "-f", "${Version}\t${Architecture}\t${source:Package}\n",
                                           package).splitlines()[0].split("\t")
    purl = f"pkg:deb/{name}/{package}@{version.replace('+', '%2B')}?arch={architecture}&distro={release}"
    return {"type": "library", "bom-ref": purl, "name": package, "version": version, "purl": purl,
            "properties": [{"name": "sconce:source", "value": source},
                           *({"name": "sconce:file", "value": file} for file in sorted(files))]}


def compiled_in():
    """The packages of the headers; an error names one that is not there."""
    for pattern in COMPILED_IN:
        found = sorted(INCLUDE.glob(pattern))
        if not found:
            raise SystemExit(f"sbom: this machine has no {INCLUDE / pattern}, which Sconce is made of")
        yield package_of(found[-1])


def document(name, version, bundled, own, system):
    """bundled: file names in the installation, and where each came from. own: Sconce's files, in which headers are compiled
    in. system: names of libraries that the installation expects to find."""
    packages = {}
    for file, origin in bundled.items():
        packages.setdefault(package_of(origin), []).append(file)
    components = [component(package, files) for package, files in packages.items()]
    inside = [component(package) for package in set(compiled_in()) - set(packages)]
    for one in inside:
        one["properties"].append({"name": "sconce:compiled-in", "value": ", ".join(sorted(own))})
    outside = [{"type": "library", "bom-ref": f"system:{soname}", "name": soname, "scope": "excluded"}
               for soname in sorted(system)]
    listed = sorted(components + inside, key=lambda one: one["name"]) + outside
    purl = f"pkg:generic/{name}@{version}"
    root = {"type": "application", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "licenses": [{"license": {"id": "Apache-2.0"}}]}
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": root},
            "components": listed, "dependencies": [{"ref": purl, "dependsOn": [one["bom-ref"] for one in listed]}]}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill, sort_keys=True))
    return {"bomFormat": bill["bomFormat"], "specVersion": bill["specVersion"], "serialNumber": f"urn:uuid:{serial}", **bill}


def add_python_package(path, requirements, name):
    """Adds what the wheel's module is made of, in the version that `requirements` (a file) names."""
    version = next(line.split("==")[1].split()[0] for line in requirements.read_text().splitlines()
                   if line.startswith(f"{name}=="))
    bill = json.loads(path.read_text())
    purl = f"pkg:pypi/{name}@{version}"
    bill["components"].append({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
                               "properties": [{"name": "sconce:compiled-in", "value": "_native"}]})
    bill["dependencies"][0]["dependsOn"].append(purl)
    path.write_text(json.dumps(bill, indent=1) + "\n")


def write(path, *arguments):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(*arguments), indent=1) + "\n")
