import { defineCommand } from 'citty';
import { RefoldError } from '../../errors.ts';
import { embeddedDataDir } from '../../refold.ts';
import { runningEmbeddedPostgres } from '../../store/embedded/embedded-postgres.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { configArgument, loadConfig } from '../shared/load-config.ts';

export const url = defineCommand({
  meta: {
    name: 'url',
    description:
      "Print the connection string of the application's database, password included: for psql, or another process's DATABASE_URL.",
  },
  args: configArgument,
  run: withErrorReporting(async ({ args }) => {
    const config = await loadConfig(args.config);
    const found = config.database.url ?? (await runningEmbeddedPostgres(embeddedDataDir))?.url;
    if (found === undefined)
      throw new RefoldError(
        'DATABASE_UNAVAILABLE',
        `No embedded PostgreSQL runs in ${embeddedDataDir}. Start the application first, such as with \`refold dev\`, or set DATABASE_URL.`,
      );
    process.stdout.write(`${found}\n`);
  }),
});
