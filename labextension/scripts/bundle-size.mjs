/** Says how much the page loads of this extension. */
import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const folder = new URL(
  '../../jupyter_agent_exec/labextension/static/',
  import.meta.url
);
let bytes = 0;
let compressed = 0;
for (const name of readdirSync(folder)) {
  if (name.endsWith('.js')) {
    const content = readFileSync(new URL(name, folder));
    bytes += content.length;
    compressed += gzipSync(content).length;
  }
}
const kB = size => `${(size / 1000).toFixed(1)} kB`;
console.log(`Bundle: ${kB(bytes)}, compressed ${kB(compressed)}`);
