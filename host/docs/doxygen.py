"""What Doxygen knows of dualgemm.h, as XML, which Breathe makes a page of."""
import re
import subprocess


def version(root):
    header = (root / "host/include/dualgemm.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"#define DUALGEMM_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)", header))


def run(root, folder):
    """Writes folder/xml, by the settings of `make doxygen`."""
    settings = (root / "host/doxygen/Doxyfile.in").read_text(encoding="utf-8")
    known = {"PROJECT_VERSION": version(root), "PROJECT_SOURCE_DIR": root, "PROJECT_BINARY_DIR": folder.parent}
    settings = re.sub(r"@(\w+)@", lambda name: str(known[name[1]]), settings)
    settings += f"OUTPUT_DIRECTORY = {folder}\nGENERATE_HTML = NO\nGENERATE_XML = YES\nXML_PROGRAMLISTING = NO\n"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)
