/**
 * Environment:
 *
 * - CHROMIUM_PATH: the browser; without it, the one that `playwright install
 *   chromium` has installed.
 * - AGENT_EXEC_UI_WORKERS: how many tests run at a time, each of another file;
 *   without it 2, where there are as many cores.
 * - AGENT_EXEC_UI_JUPYTER_LAB: the command that starts JupyterLab, of another
 *   version; then there is no server with collaboration.
 * - AGENT_EXEC_UI_AGENTS: when set, only the tests with the agents that people
 *   use run, which start servers of their own.
 * - UPDATE_SCREENSHOTS: when set, only the tests with pictures run, and write
 *   them to docs/images.
 */
const { execFileSync } = require('node:child_process');
const { availableParallelism } = require('node:os');
const galata = require('@jupyterlab/galata/lib/playwright-config');

const OTHER_LAB = process.env.AGENT_EXEC_UI_JUPYTER_LAB;
// Of another version one file of tests is run.
const WORKERS = Number(
  process.env.AGENT_EXEC_UI_WORKERS ??
    (OTHER_LAB ? 1 : Math.min(2, availableParallelism()))
);

/** Ports that nobody listens on. */
function freePorts(count) {
  const program = `
    const { once } = require('node:events');
    const { createServer } = require('node:net');
    const servers = Array.from({ length: ${count} }, () =>
      createServer().listen(0, '127.0.0.1')
    );
    Promise.all(servers.map(server => once(server, 'listening'))).then(() => {
      console.log(servers.map(server => server.address().port).join());
      servers.forEach(server => server.close());
    });`;
  return execFileSync(process.execPath, ['-e', program]).toString().trim();
}

// Workers read this file too, and find the ports of the main process.
process.env.AGENT_EXEC_UI_PORTS ??= freePorts(WORKERS + 1);
const [COLLABORATION, ...PLAIN] = process.env.AGENT_EXEC_UI_PORTS.split(
  ','
).map(port => `http://127.0.0.1:${port}`);
// Tests that run at the same time would see each other's agents, and settings.
const OF_THIS_WORKER = PLAIN[process.env.TEST_PARALLEL_INDEX ?? 0];
if (!OF_THIS_WORKER) {
  throw new Error('Set AGENT_EXEC_UI_WORKERS: each worker needs a server.');
}

/** How to start a server. */
function server(url, collaboration) {
  return {
    command: `${OTHER_LAB ?? 'jupyter lab'} --config jupyter_server_test_config.py`,
    url: `${url}/lab`,
    env: {
      ...process.env,
      AGENT_EXEC_UI_PORT: new URL(url).port,
      AGENT_EXEC_UI_COLLABORATION: collaboration
    },
    timeout: 300_000,
    reuseExistingServer: false,
    gracefulShutdown: { signal: 'SIGTERM', timeout: 20_000 }
  };
}

const AGENTS = /agents\.spec\.ts$/;
const COLLABORATION_TESTS = /collab.*\.spec\.ts$/;
// What is only there for the documentation, and what has a picture beside.
const SCREENSHOTS = /(screenshots|recording)\.spec\.ts$/;
const PICTURES =
  /(screenshots|recording|claims|firstminute|passphrase)\.spec\.ts$/;
// What other versions of JupyterLab are tested with: `make test-versions`.
const VERSIONS = OTHER_LAB ? [] : [/versions\.spec\.ts$/];

const ONLY = process.env.AGENT_EXEC_UI_AGENTS
  ? { name: 'agents', testMatch: AGENTS }
  : process.env.UPDATE_SCREENSHOTS && { name: 'pictures', testMatch: PICTURES };

module.exports = {
  ...galata,
  testDir: 'tests',
  reporter: [['list']],
  // What has failed stands at the end of the log.
  reportSlowTests: null,
  forbidOnly: Boolean(process.env.CI),
  fullyParallel: false,
  workers: WORKERS,
  retries: 0,
  // Machines with few cores start kernels and pages slowly, the first ones above all.
  timeout: 240_000,
  expect: { timeout: 60_000 },
  use: {
    ...galata.use,
    actionTimeout: 60_000,
    viewport: { width: 1280, height: 900 },
    trace: 'off',
    screenshot: 'only-on-failure',
    video: 'off',
    launchOptions: {
      executablePath: process.env.CHROMIUM_PATH || undefined,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync'
      ]
    }
  },
  projects: ONLY
    ? [{ ...ONLY, use: { baseURL: OF_THIS_WORKER } }]
    : [
        {
          name: 'collaboration',
          testMatch: COLLABORATION_TESTS,
          workers: 1,
          use: { baseURL: COLLABORATION }
        },
        {
          name: 'plain',
          testIgnore: [COLLABORATION_TESTS, SCREENSHOTS, AGENTS, ...VERSIONS],
          use: { baseURL: OF_THIS_WORKER }
        }
      ],
  webServer: process.env.AGENT_EXEC_UI_AGENTS
    ? []
    : [
        ...PLAIN.map(url => server(url, 'off')),
        ...(OTHER_LAB ? [] : [server(COLLABORATION, 'on')])
      ]
};
