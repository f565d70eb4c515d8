/**
 * Write all texts of the page into one file for translators,
 * locale/jupyter_agent_exec.pot; with `--check`, fail if it is not as written.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE = join(ROOT, 'locale/jupyter_agent_exec.pot');

/** Keys of a settings schema whose values JupyterLab translates. */
const SCHEMA_KEYS = new Set(['title', 'description', 'label', 'caption']);

/** Texts, each with its plural, or null, and the files that have it. */
const found = new Map();

function add(text, plural, file) {
  const known = found.get(text) ?? { plural, files: new Set() };
  known.plural ??= plural;
  found.set(text, { ...known, files: known.files.add(file) });
}

function read(folder, extension, take) {
  for (const name of readdirSync(join(ROOT, folder), { recursive: true })) {
    if (extension.test(name) && !name.includes('__tests__')) {
      const path = join(ROOT, folder, name);
      take(readFileSync(path, 'utf8'), relative(ROOT, path));
    }
  }
}

read('src', /\.tsx?$/, (code, file) => {
  const visit = node => {
    const method = ts.isCallExpression(node) && node.expression.name?.text;
    if (method === '__' || method === '_n') {
      const [text, plural] = node.arguments;
      if (!ts.isStringLiteralLike(text)) {
        throw new Error(`${file}: not a literal: ${text.getText()}`);
      }
      add(text.text, method === '_n' ? plural.text : null, file);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true));
});

read('schema', /\.json$/, (code, file) => {
  JSON.parse(code, (key, value) => {
    if (SCHEMA_KEYS.has(key) && typeof value === 'string' && value) {
      add(value, null, file);
    }
    return value;
  });
});

const entries = [...found]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([text, { files, plural }]) =>
    [
      `#: ${[...files].sort().join(' ')}`,
      `msgid ${JSON.stringify(text)}`,
      ...(plural === null
        ? ['msgstr ""']
        : [
            `msgid_plural ${JSON.stringify(plural)}`,
            'msgstr[0] ""',
            'msgstr[1] ""'
          ])
    ].join('\n')
  );
const header =
  'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"';
const page = `${[header, ...entries].join('\n\n')}\n`;

if (!process.argv.includes('--check')) {
  writeFileSync(FILE, page);
} else if (readFileSync(FILE, 'utf8') !== page) {
  throw new Error('locale/ is out of date: run "jlpm messages".');
}
