import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { preset } from '@graphql-codegen/client-preset';
import { codegen } from '@graphql-codegen/core';
import { buildSchema, parse } from 'graphql';

// Writes the types of the operations in src/ to src/gql/, with the client preset of graphql-codegen. Its options are on
// https://the-guild.dev/graphql/codegen. Its command line, @graphql-codegen/cli, would be 240 more packages.
const folder = 'src/gql/';
const schema = readFileSync('schema.graphql', 'utf8');
const files = await preset.buildGeneratesSection({
  schema: parse(schema),
  schemaAst: buildSchema(schema),
  documents: globSync('src/**/*.graphql').map((location) => {
    const rawSDL = readFileSync(location, 'utf8');
    return { location, rawSDL, document: parse(rawSDL) };
  }),
  presetConfig: { fragmentMasking: false },
  config: {
    useTypeImports: true,
    enumsAsTypes: true,
    // Decimals and positions are strings, so no digit is lost.
    scalars: JSON.parse(readFileSync('scalars.json', 'utf8')),
    importExtension: '.ts',
  },
  baseOutputDir: folder,
  plugins: [],
  pluginMap: {},
});
mkdirSync(folder, { recursive: true });
for (const file of files) writeFileSync(file.filename, await codegen(file));
