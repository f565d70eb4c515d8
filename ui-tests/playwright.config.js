/**
 * Environment:
 *
 * - CHROMIUM_PATH: the browser; without it, the one that `playwright install
 *   chromium` has installed.
 * - AGENT_EXEC_UI_PORT_PLAIN, AGENT_EXEC_UI_PORT_COLLABORATION: the servers'
 *   ports; without them, free ones.
 * - UPDATE_SCREENSHOTS: when set, the screenshots in docs/images are written.
 */
const { execFileSync } = require('node:child_process');
const galata = require('@jupyterlab/galata/lib/playwright-config');

/** A port that nobody listens on. */
function freePort() {
  const program =
    "const s = require('node:net').createServer().listen(0, '127.0.0.1', () => " +
    '{ console.log(s.address().port); s.close(); });';
  return execFileSync(process.execPath, ['-e', program]).toString().trim();
}

/** The address of a server that a project of tests looks at. */
function address(project) {
  // Workers read this file too, and find the port of the main process.
  const variable = `AGENT_EXEC_UI_PORT_${project.toUpperCase()}`;
  process.env[variable] ??= freePort();
  return `http://127.0.0.1:${process.env[variable]}`;
}

/** How to start the server for a project. */
function server(project, collaboration) {
  const url = address(project);
  return {
    command: 'jupyter lab --config jupyter_server_test_config.py',
    url: `${url}/lab`,
    env: {
      ...process.env,
      AGENT_EXEC_UI_PORT: new URL(url).port,
      AGENT_EXEC_UI_COLLABORATION: collaboration
    },
    timeout: 120_000,
    reuseExistingServer: false,
    gracefulShutdown: { signal: 'SIGTERM', timeout: 20_000 }
  };
}

const FIRST = /first\.spec\.ts$/;
const COLLABORATION = /collab.*\.spec\.ts$/;

module.exports = {
  ...galata,
  testDir: 'tests',
  reporter: [['list']],
  forbidOnly: Boolean(process.env.CI),
  fullyParallel: false,
  workers: 1,
  retries: 0,
  // Machines with few cores start kernels and pages slowly.
  expect: { timeout: 20_000 },
  use: {
    ...galata.use,
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
  projects: [
    {
      // All others leave sessions in the server's history.
      name: 'first',
      testMatch: FIRST,
      use: { baseURL: address('plain') }
    },
    {
      name: 'plain',
      testIgnore: [FIRST, COLLABORATION],
      dependencies: ['first'],
      use: { baseURL: address('plain') }
    },
    {
      name: 'collaboration',
      testMatch: COLLABORATION,
      use: { baseURL: address('collaboration') }
    }
  ],
  webServer: [server('plain', 'off'), server('collaboration', 'on')]
};
