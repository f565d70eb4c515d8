/**
 * Writes src/wire/schemas.ts from the server's OpenAPI document.
 *
 * usage: wire.mjs [--check] DOCUMENT
 * With --check nothing is written: it fails if the file is not what would be.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import prettier from 'prettier';
import ts from 'typescript';

const HEAD = `/**
 * The shapes of requests and answers, generated from the server's OpenAPI
 * document by scripts/wire.mjs: \`make wire\` writes this file again.
 */
import type * as nbformat from '@jupyterlab/nbformat';

`;

/** Objects that nbformat defines; the document says only that they are objects. */
const NBFORMAT = {
  '#/components/schemas/Execution/cell':
    "Pick<nbformat.ICodeCell, 'outputs'> & Partial<nbformat.ICodeCell>",
  '#/components/schemas/OutputChange/output': 'nbformat.IOutput'
};

/** The schemas that the page names, and those that these name, by name. */
function pruned(schemas, names) {
  const found = new Set();
  const visit = name => {
    if (!found.has(name)) {
      found.add(name);
      const text = JSON.stringify(schemas[name]);
      for (const [, other] of text.matchAll(/schemas\/(\w+)"/g)) {
        visit(other);
      }
    }
  };
  names.forEach(visit);
  return Object.fromEntries(
    Object.entries(schemas)
      .filter(([name]) => found.has(name))
      .map(([name, { title, ...schema }]) => [title && name, schema])
      .sort(([one], [other]) => (one < other ? -1 : 1))
  );
}

const file = new URL('../src/wire/schemas.ts', import.meta.url);
const uses = readFileSync(new URL('../src/wire/index.ts', import.meta.url));
const names = [...String(uses).matchAll(/Schemas\['(\w+)'\]/g)];
const args = process.argv.slice(2);
const { components, ...rest } = JSON.parse(readFileSync(args.at(-1)));
const schemas = pruned(
  components.schemas,
  names.map(([, name]) => name)
);
const nodes = await openapiTS(
  { ...rest, paths: {}, components: { schemas } },
  {
    exportType: true,
    transform: (_, { path }) =>
      path && NBFORMAT[path]
        ? ts.factory.createTypeReferenceNode(NBFORMAT[path])
        : undefined
  }
);
const types = nodes.filter(node => node.name?.text === 'components');
const text = astToString(types)
  // What the type says already.
  .replace(/^\s*\/\*\* @(enum|default) .*\n/gm, '')
  .replace(/^\s*\/\*\*\n(\s*\* @(enum|default) .*\n)+\s*\*\/\n/gm, '')
  .replace(/@description /g, '')
  .replace(/^(\s*\*) {2,}/gm, '$1 ')
  .replace(/components\["schemas"\]/g, 'Schemas')
  .replace(
    /^[^]*?schemas: (\{[^]*?\n {4}\});[^]*$/,
    'export type Schemas = $1;\n'
  );
const options = await prettier.resolveConfig(file.pathname);
const made = await prettier.format(HEAD + text, {
  ...options,
  parser: 'typescript'
});
if (!args.includes('--check')) {
  writeFileSync(file, made);
} else if (String(readFileSync(file)) !== made) {
  console.error('src/wire/schemas.ts is stale: run `make wire`.');
  process.exitCode = 1;
}
