import { defineCommand } from 'citty';
import type { Config } from '../../config/define-config.ts';
import { RefoldError } from '../../errors.ts';
import { migrateStores } from '../../runtime/stores/migrate-stores.ts';
import { createDatabase } from '../../store/postgres/database.ts';
import { grantsScript, type Roles } from '../../store/server/grants.ts';
import { type MigrateOptions, migrate } from '../../store/server/migrate.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';
import { openServer } from '../shared/open-operation.ts';
import { jsonArgument } from '../shared/version-argument.ts';

export const migrateCommand = defineCommand({
  meta: {
    name: 'migrate',
    description: "Migrate Refold's own tables to this version. Safe to run anywhere, any number of times.",
  },
  args: {
    'while-processes-run': {
      type: 'boolean',
      default: false,
      description:
        'Apply a breaking migration although processes of older code run. They can fail until they are replaced.',
    },
    'print-grants': {
      type: 'boolean',
      default: false,
      description: 'Migrate nothing. Print the SQL that creates three roles, each with what it needs.',
    },
    owner: {
      type: 'string',
      default: 'refold_owner',
      description: 'With --print-grants: the role that runs refold migrate',
      valueHint: 'NAME',
    },
    runtime: {
      type: 'string',
      default: 'refold_runtime',
      description: 'With --print-grants: the role that runs the application',
      valueHint: 'NAME',
    },
    'read-only': {
      type: 'string',
      default: 'refold_reader',
      description: 'With --print-grants: the role that reads the read tables',
      valueHint: 'NAME',
    },
    ...jsonArgument,
    ...configArgument,
  },
  run: withErrorReporting(async ({ args }) => {
    const config = await loadConfig(args.config);
    if (args['print-grants']) {
      console.log(grantsOf(config, { owner: args.owner, runtime: args.runtime, readOnly: args['read-only'] }));
      return;
    }
    const server = await openServer(config);
    try {
      const options = { whileProcessesRun: args['while-processes-run'] };
      const applied = await migrateOne(server.url, options);
      // The log first: its migrations may be what processes of the new code need most.
      const inStores = await migrateStores(config, server.url, options);
      if (args.json)
        console.log(JSON.stringify({ applied, ...(Object.keys(inStores).length > 0 ? { readStores: inStores } : {}) }));
      else {
        console.log(outcomeText('The database', applied));
        for (const [name, found] of Object.entries(inStores))
          console.log(outcomeText(`The read store '${name}'`, found));
      }
    } finally {
      await server.stop();
    }
  }),
});

async function migrateOne(url: string, options: MigrateOptions): Promise<readonly string[]> {
  const db = createDatabase({ url, applicationName: 'refold-cli' });
  try {
    return (await migrate(db, options)).applied;
  } finally {
    await db.close();
  }
}

function outcomeText(what: string, applied: readonly string[]): string {
  if (applied.length === 0) return `${what} is up to date.`;
  return what === 'The database' ? `Applied ${applied.join(', ')}.` : `${what}: applied ${applied.join(', ')}.`;
}

function grantsOf(config: Config, roles: Roles): string {
  if (new Set(Object.values(roles)).size < 3)
    throw new RefoldError('INVALID_CONFIG', 'The owner, the runtime and the read-only role are three roles.');
  const columns = config.projections.flatMap((projection) => Object.values(projection.columns));
  const textSearch = columns.some(({ flags }) => flags.search);
  return grantsScript({ ...roles, readSchema: config.database.readSchema, textSearch }).trimEnd();
}
