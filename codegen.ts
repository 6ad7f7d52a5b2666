import { readFileSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';

// Written by `refold schema --scalars`.
const scalars: Record<string, string> = JSON.parse(
  readFileSync('examples/shopping-cart/scalars.generated.json', 'utf8'),
);

/**
 * Typed documents of the sample's client, from the sample's own schema, and of the admin page, from that of the admin API. `npm run codegen`
 * writes them, `npm run check` finds drift.
 */
const config: CodegenConfig = {
  generates: {
    'examples/shopping-cart/gql/': {
      schema: 'examples/shopping-cart/schema.generated.graphql',
      documents: ['examples/shopping-cart/client.ts'],
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
    'admin/src/gql/': {
      schema: 'docs/admin-schema.graphql',
      documents: ['admin/src/graphql/*.graphql'],
      preset: 'client',
      presetConfig: { fragmentMasking: false },
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        // The page sends a document as text, so it needs no parser and no syntax tree.
        documentMode: 'string',
        scalars: { BigInt: 'string', DateTime: 'string', JSON: 'unknown' },
        importExtension: '.ts',
      },
    },
  },
};

export default config;
