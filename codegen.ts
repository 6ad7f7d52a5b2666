import { readFileSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';

// Written by `refold schema --scalars`.
const scalars: Record<string, string> = JSON.parse(
  readFileSync('examples/shopping-cart/scalars.generated.json', 'utf8'),
);

/** Typed documents of the sample's client, from the sample's own schema. `npm run codegen` writes them, `npm run check` finds drift. */
const config: CodegenConfig = {
  schema: 'examples/shopping-cart/schema.generated.graphql',
  documents: ['examples/shopping-cart/client.ts'],
  generates: {
    'examples/shopping-cart/gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false },
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        // As they cross the wire: exact, so never a number where digits could be lost.
        scalars,
        importExtension: '.ts',
      },
    },
  },
};

export default config;
