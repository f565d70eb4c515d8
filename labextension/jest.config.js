const jupyterLab = require('@jupyterlab/testutils/lib/jest-config');

/** Packages that ship modules which Node cannot load as they are. */
const esModules = [
  '@codemirror',
  '@jupyter/ydoc',
  '@jupyter/react-components',
  '@jupyter/web-components',
  '@jupyterlab/',
  '@microsoft/',
  'exenv-es6',
  'lib0',
  'nanoid',
  'vscode-ws-jsonrpc',
  'y-protocols',
  'y-websocket',
  'yjs'
].join('|');

module.exports = {
  ...jupyterLab(__dirname),
  automock: false,
  collectCoverageFrom: [
    'src/**/*.{ts,tsx}',
    '!src/**/*.d.ts',
    '!src/**/__tests__/**'
  ],
  coverageDirectory: 'coverage',
  coverageReporters: ['text'],
  coverageThreshold: {
    './src/api/': { branches: 95, lines: 95 },
    './src/live/': { branches: 95, lines: 95 },
    './src/tab/': { branches: 95, lines: 95 }
  },
  reporters: ['default'],
  testRegex: 'src/.*\\.spec\\.tsx?$',
  transform: {
    ...jupyterLab(__dirname).transform,
    '^.+\\.tsx?$': ['ts-jest', { tsconfig: 'tsconfig.test.json' }]
  },
  transformIgnorePatterns: [`/node_modules/(?!${esModules}).+`]
};
