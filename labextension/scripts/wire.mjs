/**
 * Writes src/wire/schemas.ts from the server's OpenAPI document, as far as the
 * page uses it: a field that no source of the page names is left out.
 *
 * usage: wire.mjs [--check] DOCUMENT
 * With --check nothing is written: it fails if the file is not what would be.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import prettier from 'prettier';
import ts from 'typescript';

const HEAD = `/**
 * The shapes of requests and answers, generated from the server's OpenAPI
 * document by scripts/wire.mjs: \`make wire\` writes this file again.
 */
import type * as nbformat from '@jupyterlab/nbformat';

`;

const STATUS = "Schemas['Execution']['status']";

/** Objects that nbformat defines, which the document calls objects, and a list that is told once. */
const NAMED = {
  '#/components/schemas/Execution/cell':
    "Pick<nbformat.ICodeCell, 'outputs'> & Partial<nbformat.ICodeCell>",
  '#/components/schemas/OutputChange/output': 'nbformat.IOutput',
  '#/components/schemas/SearchHit/status': STATUS,
  '#/components/schemas/StatusChange/status': STATUS
};

const folder = new URL('../src/', import.meta.url);
const file = new URL('wire/schemas.ts', folder);

/** All names in the code of the page. */
const used = new Set();
for (const name of readdirSync(folder, { recursive: true })) {
  if (/\.tsx?$/.test(name) && !/__tests__|schemas/.test(name)) {
    const code = String(readFileSync(new URL(name, folder)));
    const collect = node => {
      if (ts.isIdentifier(node) || ts.isStringLiteral(node)) {
        used.add(node.text);
      }
      ts.forEachChild(node, collect);
    };
    collect(ts.createSourceFile(name, code, ts.ScriptTarget.Latest));
  }
}

/** Fields that the page does not read, though it uses their names for something else. */
const UNUSED = {
  AlsoApproved: ['execution_id'],
  Approval: ['preview', 'reason'],
  Execution: [
    ...['chain', 'duration', 'error', 'restored', 'seal'],
    ...['step', 'text', 'timeout', 'values']
  ],
  ExecutionKernel: ['incarnation'],
  Image: ['bytes'],
  JournalEvent: ['execution_id', 'text'],
  NotebookTarget: ['create'],
  RecordBreak: ['at'],
  ScratchTarget: ['isolated'],
  Session: ['access', 'asking'],
  SessionKernel: ['incarnation'],
  Text: ['offset'],
  Unlocked: ['expires_at'],
  WaitingFor: ['execution_id', 'since']
};

/** A schema without the properties that the page does not use. */
function withoutUnused(schema, { properties, ...rest }) {
  const kept = Object.entries(properties ?? {}).filter(
    ([name]) => used.has(name) && !UNUSED[schema]?.includes(name)
  );
  return properties ? { ...rest, properties: Object.fromEntries(kept) } : rest;
}

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

const uses = readFileSync(new URL('wire/index.ts', folder));
const names = [...String(uses).matchAll(/Schemas\['(\w+)'\]/g)];
const args = process.argv.slice(2);
const { components, ...rest } = JSON.parse(readFileSync(args.at(-1)));
const all = Object.entries(components.schemas);
const schemas = pruned(
  Object.fromEntries(
    all.map(([name, each]) => [name, withoutUnused(name, each)])
  ),
  names.map(([, name]) => name)
);
const nodes = await openapiTS(
  { ...rest, paths: {}, components: { schemas } },
  {
    exportType: true,
    transform: (_, { path }) =>
      path && NAMED[path]
        ? ts.factory.createTypeReferenceNode(NAMED[path])
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
