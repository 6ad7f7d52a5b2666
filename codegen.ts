import { readFileSync } from 'node:fs';
import type { CodegenConfig } from '@graphql-codegen/cli';
import { buildSchema } from 'graphql';
import { enumValues } from './src/admin/schema/enum-values.ts';

// Written by `refold schema --scalars`.
const scalars: Record<string, string> = JSON.parse(
  readFileSync('examples/shopping-cart/scalars.generated.json', 'utf8'),
);

const adminSchema = 'docs/admin-schema.graphql';

/**
 * Typed documents of the sample's client, from the sample's own schema, and of the admin page, from that of the admin API; and the types that the
 * resolvers of the admin API are checked against. `npm run codegen` writes them, `npm run check` finds drift.
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
      schema: adminSchema,
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
    'src/admin/schema/sdl.generated.ts': {
      schema: adminSchema,
      plugins: ['typescript'],
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        enumValues: enumValues(buildSchema(readFileSync(adminSchema, 'utf8'))),
        disableDescriptions: true,
        immutableTypes: true,
        // A resolver returns nothing for null, too. What it is given is what the caller sent.
        maybeValue: 'T | null | undefined',
        avoidOptionals: { field: true },
        nonOptionalTypename: true,
        strictScalars: true,
        scalars: {
          BigInt: { input: 'string', output: 'bigint | number | string' },
          DateTime: 'string',
          JSON: 'unknown',
        },
      },
    },
  },
};

export default config;
