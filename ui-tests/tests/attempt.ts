/** What an attempt is that an agent makes, and how it is written. */
import { canary, python } from './trust';

/** What a payload is written in. */
export type Kind =
  | 'HTML'
  | 'Markdown'
  | 'SVG'
  | 'LaTeX'
  | 'JavaScript'
  | 'data'
  | 'text'
  | 'error'
  | 'source';

/** One attempt: what an agent runs, where `URL` and `FIRE` stand for its own. */
export interface IPayload {
  name: string;
  kind: Kind;
  code: string;
}

/** The code of a payload, with an address to which nothing must be sent. */
export function payloadCode(
  { code, name }: Pick<IPayload, 'code' | 'name'>,
  host: string
): string {
  return code
    .replaceAll('URL', `http://${host}/${name.replaceAll(' ', '-')}`)
    .replaceAll('WS', `ws://${host}/${name.replaceAll(' ', '-')}`)
    .replaceAll('FIRE', canary(name));
}

/** Attempts of one kind, by what each tries. */
export function payloads(
  kind: Kind,
  code: (text: string) => string,
  texts: Readonly<Record<string, string>>
): IPayload[] {
  return Object.entries(texts).map(([what, text]) => ({
    name: `${kind} ${what}`,
    kind,
    code: code(text)
  }));
}

/** Display a mime bundle. */
export const bundle = (data: object, metadata: object = {}) =>
  'import json; from IPython.display import display\n' +
  `display(json.loads(${python(JSON.stringify(data))}), raw=True, ` +
  `metadata=json.loads(${python(JSON.stringify(metadata))}))`;

/** Display a text of a type. */
export const shown = (mimetype: string) => (text: string) =>
  bundle({ [mimetype]: text, 'text/plain': 'a stand-in' });

/** A box that would lie over all of a page, and take its clicks. */
export const COVER =
  'position: fixed; inset: 0; top: 0; left: 0; width: 9999px; height: 9999px; z-index: 99999; background: red';
