"""Packs built programs: archives, installer, npm packages, a bill of materials, licences, checksums.

Called by scripts/dist. Needs nothing but Python's standard library. The same input gives the same bytes: names are sorted,
owners are 0, times are those of SOURCE_DATE_EPOCH.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
LEVEL = 9
SHELLS = {"bash": "segno.bash", "zsh": "_segno", "fish": "segno.fish"}
# What npm calls the systems, and which libc a package is for: ours brings its own, so it fits every Linux.
NPM = {
    "x86_64-unknown-linux-gnu": ("linux", "x64"),
    "aarch64-unknown-linux-gnu": ("linux", "arm64"),
    "x86_64-apple-darwin": ("darwin", "x64"),
    "aarch64-apple-darwin": ("darwin", "arm64"),
}


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def pack(files):
    """A tar.gz of {name: (bytes, mode)} that depends on nothing else."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (data, mode) in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(data), mode, TIME
            archive.addfile(info, io.BytesIO(data))
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=LEVEL, mtime=0) as stream:
        stream.write(tar.getvalue())
    return packed.getvalue()


def crates(target):
    """The crates that are in the program for a target, each with what Cargo knows of it and what it needs."""
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(id for id, package in packages.items() if package["name"] == "segno" and package["source"] is None)

    # What metadata resolves is the whole workspace with its tests; what is really built, this says.
    line = run("cargo", "tree", "-p", "segno", "-e", "normal", "--target", target, "--prefix", "none", "--format", "{p}", "--locked")
    built = {(words[0], words[1][1:]) for words in map(str.split, line.decode().splitlines()) if words}
    inside = {id for id, package in packages.items() if (package["name"], package["version"]) in built}
    found = {id: (packages[id], sorted(dep["pkg"] for dep in nodes[id]["deps"] if dep["pkg"] in inside)) for id in inside}
    return root, dict(sorted(found.items(), key=lambda item: (item[1][0]["name"], item[1][0]["version"])))


def checksums():
    """{(name, version): sha256 of the crate}, from Cargo.lock."""
    sums, entry = {}, {}
    for line in (ROOT / "Cargo.lock").read_text().splitlines() + ["[[package]]"]:
        if line == "[[package]]":
            if "checksum" in entry:
                sums[entry["name"], entry["version"]] = entry["checksum"]
            entry = {}
        elif " = \"" in line:
            key, value = line.split(" = ", 1)
            entry[key] = value.strip('"')
    return sums


def licence_texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    names = ("license", "licence", "copying", "notice", "unlicense", "copyright")
    found = [path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(names)]
    # C code that some crates bring has licences of its own, beside it.
    for below in sorted(folder.glob("*/LICENSE*")) + sorted(folder.glob("*/COPYING*")):
        if below.is_file():
            found.append(below)
    return [path.read_text(errors="replace").strip() for path in sorted(found)]


def licences(found):
    """One text that names every crate of others with its licence, each licence text once."""
    texts, expressions = {}, []
    for package, _ in found.values():
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        expressions.append(f"{name}: {package['license'] or 'see its licence file'}")
        for text in licence_texts(package):
            texts.setdefault(text, []).append(name)
    out = ["segno contains these crates, and the standard library of Rust (MIT OR Apache-2.0).", ""]
    out += expressions
    for text, names in sorted(texts.items(), key=lambda item: (item[1], item[0])):
        out += ["", "=" * 80, ", ".join(names), "=" * 80, "", text]
    return ("\n".join(out) + "\n").encode()


def bill(root, found, version, target):
    """What is inside, as CycloneDX 1.6."""
    sums = checksums()

    def ref(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    components = []
    for id, (package, _) in found.items():
        if id == root:
            continue
        component = {"type": "library", "bom-ref": ref(package), "name": package["name"], "version": package["version"]}
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if package["source"] is not None:
            component["purl"] = ref(package)
            component["hashes"] = [{"alg": "SHA-256", "content": sums[package["name"], package["version"]]}]
        components.append(component)
    dependencies = [
        {"ref": ref(package), "dependsOn": sorted(ref(found[below][0]) for below in needs)} for package, needs in found.values()
    ]
    main = found[root][0]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ref(main),
                "name": "segno",
                "version": version,
                "licenses": [{"expression": main["license"]}],
            },
            "properties": [{"name": "segno:target", "value": target}],
        },
        "components": components,
        "dependencies": sorted(dependencies, key=lambda each: each["ref"]),
    }
    same = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, same)}"
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def spoken(speaker):
    """Manual pages and completions, as the program prints them."""
    files = {}
    for shell, name in SHELLS.items():
        files[f"completions/{name}"] = (run(speaker, "completions", shell), 0o644)
    with tempfile.TemporaryDirectory() as folder:
        run(speaker, "--quiet", "man", folder)
        for page in pathlib.Path(folder).iterdir():
            files[f"man/man1/{page.name}"] = (page.read_bytes(), 0o644)
    return files


def npm(programs, version):
    """A package for each system, and the one that people install, which takes the fitting one along."""
    common = {"version": version, "license": "MIT OR Apache-2.0", "preferUnplugged": True}
    licences = {f"package/{name}": ((ROOT / name).read_bytes(), 0o644) for name in ("LICENSE-MIT", "LICENSE-APACHE")}
    out, optional = {}, {}
    for target, program in programs.items():
        system, cpu = NPM[target]
        name = f"segno-{system}-{cpu}"
        optional[name] = version
        about = {"name": name, "description": f"The program segno for {system} {cpu}", "os": [system], "cpu": [cpu], **common}
        files = {
            "package/package.json": (json.dumps(about, indent=2).encode() + b"\n", 0o644),
            "package/bin/segno": (program, 0o755),
            **licences,
        }
        out[f"npm/{name}-{version}.tgz"] = pack(files)
    about = {
        "name": "segno",
        "description": "A durable session manager for AI coding agents",
        "bin": {"segno": "bin/segno.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": optional,
        **common,
    }
    files = {
        "package/package.json": (json.dumps(about, indent=2).encode() + b"\n", 0o644),
        "package/bin/segno.js": ((ROOT / "scripts/npm/segno.js").read_bytes(), 0o755),
        "package/README.md": ((ROOT / "scripts/npm/README.md").read_bytes(), 0o644),
        **licences,
    }
    out[f"npm/segno-{version}.tgz"] = pack(files)
    return out


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--out", required=True)
    options.add_argument("--speaker", required=True)
    options.add_argument("--from", dest="source", default="")
    options.add_argument("--level", type=int, default=9, help="how hard to compress, 1 to 9")
    options.add_argument("programs", nargs="+", metavar="TARGET=FILE")
    options = options.parse_args()
    global LEVEL
    LEVEL = options.level
    speaker = str(pathlib.Path(options.speaker).resolve())
    version = run(speaker, "--version").decode().split()[1]
    programs = {}
    for pair in options.programs:
        target, file = pair.split("=", 1)
        programs[target] = pathlib.Path(file).read_bytes()

    pages = {name: ((ROOT / name).read_bytes(), 0o644) for name in ("README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE")}
    pages |= spoken(speaker)
    out = {}
    for target, program in programs.items():
        root, found = crates(target)
        inside = bill(root, found, version, target)
        files = {
            "segno": (program, 0o755),
            "LICENSES-OF-OTHERS.txt": (licences(found), 0o644),
            "segno.cdx.json": (inside, 0o644),
            **pages,
        }
        name = f"segno-{version}-{target}"
        out[f"{name}.tar.gz"] = pack({f"{name}/{path}": file for path, file in files.items()})
        out[f"{name}.cdx.json"] = inside
    out |= npm(programs, version)
    installer = (ROOT / "crates/segno/src/commands/own/install.sh").read_text()
    if options.source:
        if "'" in options.source or "\n" in options.source:
            raise SystemExit("dist.py: the address has a character that it cannot have")
        installer = installer.replace("default_from=''", f"default_from='{options.source}'")
    out["install.sh"] = installer.encode()
    out["SHA256SUMS"] = "".join(f"{sha256(data)}  {name}\n" for name, data in sorted(out.items())).encode()

    folder = pathlib.Path(options.out)
    for name, data in out.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if name == "install.sh":
            path.chmod(0o755)
    for name in sorted(out):
        print(f"{len(out[name]):>12,}  {folder / name}")


main()
