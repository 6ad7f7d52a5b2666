import { defineCommand } from 'citty';
import { createDatabase } from '../store/database.ts';
import { openEmbeddedPostgres } from '../store/embedded-postgres.ts';
import { migrate } from '../store/migrate.ts';
import { telling } from './exit-with-error.ts';
import { configArgument, loadConfig } from './load-config.ts';
import { embeddedOptions } from './open-operation.ts';

export const migrateCommand = defineCommand({
  meta: { name: 'migrate', description: "Bring Refold's own tables to this version. Safe to run anywhere, any number of times." },
  args: { ...configArgument },
  run: telling(async ({ args }) => {
    const config = await loadConfig(args.config);
    const server = config.database.url ? { url: config.database.url, stop: async () => {} } : await openEmbeddedPostgres(embeddedOptions);
    const db = createDatabase({ url: server.url, applicationName: 'refold-cli' });
    try {
      const { applied } = await migrate(db);
      console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
    } finally {
      await db.close();
      await server.stop();
    }
  }),
});
