// A program with an official TypeScript SDK signs in, and tells what it gets as one line of JSON.
//
// node typescript_sign_in.mjs <sdk> <url>
//   sdk: "client", which speaks all revisions, or "sdk", the one of before
// It prints the address for the browser, and reads the one to which the browser was sent.

import { createInterface } from 'node:readline/promises';

const [sdk, url] = process.argv.slice(2);
const [main, http] =
  sdk === 'client'
    ? await Promise.all([
        import('@modelcontextprotocol/client'),
        import('@modelcontextprotocol/client')
      ])
    : await Promise.all([
        import('@modelcontextprotocol/sdk/client/index.js'),
        import('@modelcontextprotocol/sdk/client/streamableHttp.js')
      ]);

const kept = {};
const redirectUrl = 'http://127.0.0.1:9/callback';
const authProvider = {
  redirectUrl,
  clientMetadata: { client_name: sdk, redirect_uris: [redirectUrl] },
  clientInformation: () => kept.client,
  saveClientInformation: client => (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: tokens => (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: verifier => (kept.verifier = verifier),
  discoveryState: () => kept.discovery,
  saveDiscoveryState: discovery => (kept.discovery = discovery),
  redirectToAuthorization: address => console.log(String(address))
};

async function connected() {
  const transport = new http.StreamableHTTPClientTransport(new URL(url), { authProvider });
  const client = new main.Client({ name: 'typescript-tester', version: '1.0' });
  try {
    await client.connect(transport);
  } catch (error) {
    return { transport, error };
  }
  return { client };
}

const { transport, error } = await connected();
if (!transport) {
  throw new Error('It was let in without a token.');
}
const input = createInterface({ input: process.stdin });
const answered = new URL(await input.question(''));
input.close();
if (!answered.searchParams.has('code')) {
  throw error;
}
await transport.finishAuth(
  sdk === 'client' ? answered.searchParams : answered.searchParams.get('code')
);
const first = kept.tokens.access_token;
let { client } = await connected();
const { tools } = await client.listTools();
await client.close();
kept.tokens.access_token = `${first.slice(0, -4)}0000`; // as if it had expired: it is renewed
({ client } = await connected());
await client.listTools();
await client.close();
const second = kept.tokens.access_token;
console.log(JSON.stringify({ tools: tools.map(tool => tool.name), first, second }));
