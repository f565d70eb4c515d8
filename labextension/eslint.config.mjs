import js from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import prettier from 'eslint-config-prettier';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** The files and folders of src, lowest first: each may import those before it. */
const layers = [
  'wire',
  'api',
  'live',
  'tokens',
  'ui',
  'images',
  'tab',
  'access',
  'review',
  'atwork',
  'approvals',
  'proposals',
  'badges',
  'notebooks',
  'session',
  'panel',
  'index'
];

/** For each layer, what stands above it and must not be imported there. */
const layering = layers.map((layer, place) => {
  const above = layers.slice(place + 1).join('|');
  const rule = (files, up) => ({
    files: [files],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: above
            ? [
                {
                  regex: `^${up}/(${above})(/|$)`,
                  message: `${layer} is below this.`
                }
              ]
            : []
        }
      ]
    }
  });
  return [
    rule(`src/${layer}.ts`, '\\.'),
    rule(`src/${layer}/**/*.{ts,tsx}`, '\\.\\.')
  ];
});

/** What the plugin for Jupyter merely warns of is an error here. */
const strictJupyter = jupyter.configs.recommended.map(config => ({
  ...config,
  rules: Object.fromEntries(
    Object.entries(config.rules ?? {}).map(([name, setting]) => [
      name,
      Array.isArray(setting) ? ['error', ...setting.slice(1)] : 'error'
    ])
  )
}));

export default tseslint.config(
  { ignores: ['node_modules', 'lib', 'coverage'] },
  js.configs.recommended,
  { plugins: { jupyter } },
  ...strictJupyter,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommended],
    languageOptions: {
      globals: globals.browser,
      parserOptions: { project: 'tsconfig.test.json' }
    },
    rules: {
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-namespace': 'off',
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'no-console': 'error',
      'prefer-arrow-callback': 'error'
    }
  },
  ...layering.flat(),
  {
    files: ['src/**/*.{ts,tsx}'],
    rules: {
      'jupyter/prefer-lazy-imports': [
        'error',
        {
          // The panel, badges and toolbar items are there from the start, with
          // what they are made of; these are not.
          ignoreImports: [
            './*',
            '../*',
            '!./imagedialog',
            '!./textviewer',
            '!./view',
            '!../access/passphrase'
          ]
        }
      ]
    }
  },
  {
    // A test's values are not shown to anybody, nor kept after it.
    files: ['src/__tests__/**'],
    rules: {
      'jupyter/no-untranslated-string': 'off',
      'jupyter/require-disposable-ownership': 'off'
    }
  },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: { globals: globals.node }
  },
  prettier
);
