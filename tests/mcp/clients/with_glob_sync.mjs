// The conformance suite imports `globSync` from `fs`, which Node has from version 22 on, for a
// command that the tests do not use. With `--import` of this file, the suite also starts in Node 20.
import { register } from 'node:module';

const dataUrl = source =>
  `data:text/javascript,${encodeURIComponent(source)}`;
const fs = dataUrl(
  `export * from 'node:fs'; export const globSync = undefined;`
);

register(
  dataUrl(`
    export const resolve = (name, context, next) =>
      name === 'fs' && context.parentURL.includes('/conformance/')
        ? { url: ${JSON.stringify(fs)}, shortCircuit: true }
        : next(name, context);`)
);
