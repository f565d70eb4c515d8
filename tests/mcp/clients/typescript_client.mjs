// What a program with an official TypeScript SDK does with the endpoint, told as one line of JSON.
//
// node typescript_client.mjs <sdk> <revision> <what to do, as JSON>
//   sdk: "client", which speaks all revisions, or "sdk", the one of before

import { writeFileSync } from 'node:fs';

const [sdk, revision, asked] = process.argv.slice(2);
const { url, token, command, source, gate, key } = JSON.parse(asked);

const [main, http, stdio] =
  sdk === 'client'
    ? await Promise.all([
        import('@modelcontextprotocol/client'),
        import('@modelcontextprotocol/client'),
        import('@modelcontextprotocol/client/stdio')
      ])
    : await Promise.all([
        import('@modelcontextprotocol/sdk/client/index.js'),
        import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
        import('@modelcontextprotocol/sdk/client/stdio.js')
      ]);

function makeClient() {
  const info = { name: 'typescript-tester', version: '1.0' };
  if (sdk === 'sdk') {
    return new main.Client(info);
  }
  const options =
    revision === '2026-07-28'
      ? { versionNegotiation: { mode: { pin: revision } } }
      : { supportedProtocolVersions: [revision] };
  return new main.Client(info, options);
}

function makeTransport() {
  if (command) {
    return new stdio.StdioClientTransport({ ...command, stderr: 'inherit' });
  }
  return new http.StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } }
  });
}

function call(client, name, args, options) {
  const params = { name, arguments: args };
  return sdk === 'sdk'
    ? client.callTool(params, undefined, options)
    : client.callTool(params, options);
}

const client = makeClient();
const transport = makeTransport();
let negotiated;
const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = version => {
  negotiated = version;
  setProtocolVersion?.(version);
};
await client.connect(transport);
negotiated = client.getNegotiatedProtocolVersion?.() ?? negotiated;
const { tools } = await client.listTools();
const opened = await call(client, 'open_session', { agent: 'typescript' });
const session_id = opened.structuredContent.session_id;
const progress = [];
const run = { session_id, source, idempotency_key: key };
const ran = await call(client, 'execute', run, {
  onprogress: told => {
    if (!progress.length) {
      writeFileSync(gate, '');
    }
    progress.push(told);
  }
});
const again = await call(client, 'execute', run);
const refused = await call(client, 'execute', { session_id: 's_nothing', source: '1' });
const { execution_id } = ran.structuredContent;
const read = await call(client, 'get_execution', { execution_id, offset: 0 });
await call(client, 'stop', { session_id });
await client.close();
console.log(
  JSON.stringify({
    revision: negotiated,
    tools: tools.map(tool => tool.name),
    progress: progress.length,
    text: ran.content[0].text,
    structured: ran.structuredContent,
    again: again.structuredContent.execution_id,
    refused: { is_error: refused.isError, text: refused.content[0].text },
    read: read.content[0].text
  })
);
