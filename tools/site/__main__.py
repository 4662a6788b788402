"""`python -m tools.site [FOLDER]` builds the docs site, into site/ unless a folder is named."""

import sys
from pathlib import Path

from tools.site.build import SiteInvalid, build_site


def main(arguments: list[str]) -> int:
    """Builds the site, and says where it is."""
    output = Path(arguments[0] if arguments else "site")
    try:
        pages = build_site(Path.cwd(), output)
    except SiteInvalid as error:
        sys.stderr.write(f"{error}\nThe docs site was not built: correct the pages that are named above.\n")
        return 1
    print(f"{pages} pages. Open {output / 'index.html'}; it needs no server.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
