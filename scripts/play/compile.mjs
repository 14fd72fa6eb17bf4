// Compiles the Python modules in a folder with Pyodide's Python: node compile.mjs PYODIDE FOLDER.

import { pathToFileURL } from "node:url";

const [, , pyodide, folder] = process.argv;
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: pyodide });
python.mountNodeFS("/made", folder);
python.runPython(`
from compileall import compile_dir
from py_compile import PycInvalidationMode

kept = {"quiet": 1, "stripdir": "/made", "invalidation_mode": PycInvalidationMode.UNCHECKED_HASH}
assert compile_dir("/made/library", legacy=True, optimize=2, **kept)
assert compile_dir("/made/packages", legacy=True, **kept)
assert compile_dir("/made/packages/dubito/games", **kept)
`);
