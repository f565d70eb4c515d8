/**
 * Rules for all views that no other tool here knows: what is said goes through
 * the translator and is never markup, and looks follow the theme, the direction
 * of reading, and the wish for rest.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What does not go through the translator; `${…}` is not looked at. */
const SOURCES = [
  [
    'a literal as text',
    /\b(textContent|innerText|title|label|caption|placeholder|ariaLabel)\s*[=:]\s*['"`][^'"`]*[a-z]/i
  ],
  [
    'a literal as an attribute',
    /setAttribute\(\s*['"](aria-label|aria-description|title|placeholder|alt)['"],\s*['"`]/
  ],
  [
    'a literal as an attribute',
    /\s(aria-label|aria-description|title|placeholder|alt|label)="[^"]*[a-z]/i
  ],
  [
    'a literal as content',
    /<(p|span|div|button|h\d|li|label|legend|strong)\b[^<>]*>[^<>{}()=]*[a-z]{2}[^<>{}()=]*<\//i
  ],
  [
    'a literal as content',
    /\belement\('[^']*', '[^']*', '[^']*[a-z]|\b(linkButton|styledButton)\('[^']/
  ],
  [
    'markup',
    /\.(inner|outer)HTML\s*=|insertAdjacentHTML|dangerouslySetInnerHTML/
  ]
];

const STYLES = [
  [
    'a colour that is not of the theme',
    /#[\da-f]{3,8}\b|\b(rgba?|hsla?|hwb|lab|lch|oklab|oklch)\(/i
  ],
  [
    'a colour that is not of the theme',
    /:.*[\s:](white|black|gr[ae]y|red|green|blue|yellow|orange|silver|teal|purple)\b/
  ],
  [
    'left or right, which are start or end',
    /(^|[\s-])(left|right)\s*[:;]|-(left|right)\s*:|inset -?[1-9]\d*px 0 /
  ]
];

/** The names and texts of all files below a folder. */
function filesOf(folder, ending) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .filter(name => ending.test(name) && !name.includes('__tests__'))
    .map(name => {
      const text = readFileSync(join(ROOT, folder, name), 'utf8');
      return [join(folder, name), withoutComments(text)];
    });
}

/** A text with empty lines where there were comments. */
function withoutComments(text) {
  return text.replace(/\/\*[\s\S]*?\*\//g, comment =>
    comment.replace(/[^\n]/g, '')
  );
}

/** Where the lines of files break rules. */
function findBroken(files, rules) {
  return files.flatMap(([name, text]) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        rules
          .filter(([, pattern]) =>
            pattern.test(line.replace(/\$\{[^}]*\}|\\[nt]/g, ''))
          )
          .map(([what]) => `${name}:${index + 1}: ${what}: ${line.trim()}`)
      )
  );
}

/** Style sheets in which something moves for those who asked for rest. */
function findRestless(files) {
  const wanted =
    /@media \(prefers-reduced-motion: no-preference\) \{[\s\S]*?\n\}\n/g;
  return files
    .filter(([, text]) =>
      /^\s*(animation|transition)(-\w+)*:/m.test(text.replace(wanted, ''))
    )
    .map(
      ([name]) => `${name}: moves without asking for prefers-reduced-motion`
    );
}

const sources = filesOf('src', /\.tsx?$/);
const styles = filesOf('style', /\.css$/);
const broken = [
  ...findBroken(sources, SOURCES),
  ...findBroken(styles, STYLES),
  ...findRestless(styles)
];
broken.forEach(line => console.error(line));
process.exitCode = broken.length === 0 ? 0 : 1;
