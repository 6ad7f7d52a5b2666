import { readFileSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';

/** `codegen` writes the types of the operations in `src/operations.graphql` to `src/gql/`. */
const config: CodegenConfig = {
  schema: 'schema.graphql',
  documents: ['src/**/*.graphql'],
  generates: {
    'src/gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false },
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        // Decimals and positions are strings, so no digit is lost.
        scalars: JSON.parse(readFileSync('scalars.json', 'utf8')),
        importExtension: '.ts',
      },
    },
  },
};

export default config;
