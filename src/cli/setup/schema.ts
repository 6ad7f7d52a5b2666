import { readFile, writeFile } from 'node:fs/promises';
import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { declaredScalars, declaredSchema } from './declared-schema.ts';

export const schema = defineCommand({
  meta: {
    name: 'schema',
    description: 'Print the GraphQL schema of the newest declared versions, for code generators. Needs no database.',
  },
  args: {
    out: { type: 'string', description: 'Write it to a file', valueHint: 'FILE' },
    check: {
      type: 'boolean',
      description: 'Only check whether the file is up to date; exits with 1 if it is not',
    },
    scalars: {
      type: 'boolean',
      description:
        "Print the TypeScript types of the schema's scalars instead, as JSON for graphql-codegen's 'scalars'",
    },
    ...configArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const config = await loadConfig(args.config);
    const text = args.scalars ? declaredScalars(config) : declaredSchema(config);
    if (args.out === undefined) return void process.stdout.write(text);
    if (!args.check) return writeFile(args.out, text);
    const found = await readFile(args.out, 'utf8').catch(() => undefined);
    if (found !== text)
      throw new RefoldError(
        'INVALID_CONFIG',
        `'${args.out}' is not ${args.scalars ? 'the scalars' : 'the schema'} of the declarations. Run the same command without --check.`,
      );
  }),
});
