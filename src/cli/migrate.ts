import { defineCommand } from 'citty';
import { createDatabase } from '../store/postgres/database.ts';
import { migrate } from '../store/server/migrate.ts';
import { telling } from './exit-with-error.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { openServer } from './open-operation.ts';
import { jsonArgument } from './version-argument.ts';

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
    ...jsonArgument,
    ...configArgument,
  },
  run: telling(async ({ args }) => {
    const config = await loadConfig(args.config);
    const server = await openServer(config);
    const db = createDatabase({ url: server.url, applicationName: 'refold-cli' });
    try {
      const { applied } = await migrate(db, { whileProcessesRun: args['while-processes-run'] });
      if (args.json) console.log(JSON.stringify({ applied }));
      else console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
    } finally {
      await db.close();
      await server.stop();
    }
  }),
});
