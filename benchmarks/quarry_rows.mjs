// Runs quarry_rows.py under the Python of a Pyodide package: node benchmarks/quarry_rows.mjs FOLDER_OF_THE_PACKAGE
// (`npm pack pyodide@0.27.7`, `@0.29.4`, `@314.0.7`, unpacked, are CPython 3.12, 3.13 and 3.14; a process holds one of them.)
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: folder });
python.FS.mkdir("/source");
python.FS.mount(python.FS.filesystems.NODEFS, { root }, "/source");
python.runPython('import runpy; runpy.run_path("/source/benchmarks/quarry_rows.py", run_name="__main__")');
