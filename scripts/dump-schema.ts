/**
 * Writes what a fresh install holds: `migrations/schema.sql`, to read in one piece what the migrations add up to, the types of its
 * tables for the statement builder, and the pages of docs/ on its views and metrics. With `--check` it writes nothing and fails where a
 * file is not what the migrations make now.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDatabase } from '../src/store/postgres/database.ts';
import { migrate } from '../src/store/server/migrate.ts';
import { embeddedBinaries, startPostgresCluster } from '../test/support/postgres-cluster.ts';
import { metricsPage } from './metrics-page.ts';
import { dumpSchema } from './schema-dump.ts';
import { sqlPage } from './sql-page.ts';
import { generateTableTypes } from './table-types.ts';

const heading = '-- What the migrations add up to. Written by scripts/dump-schema.ts; not meant to be run.\n\n';

const cluster = await startPostgresCluster({ binaries: await embeddedBinaries() });
const db = createDatabase({ url: cluster.url });
try {
  await migrate(db);
  writeOrCheck('migrations/schema.sql', heading + (await dumpSchema(db)));
  writeOrCheck('src/store/statements/refold-tables.generated.ts', await generateTableTypes(db));
  writeOrCheck('docs/sql.md', await sqlPage(db));
  writeOrCheck('docs/metrics.md', await metricsPage(cluster.url));
} finally {
  await db.close();
  await cluster.stop();
}

function writeOrCheck(path: string, text: string): void {
  const file = join(import.meta.dirname, '..', path);
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${path} is not what a fresh install holds. Run \`npm run migrations:dump\` and commit it.`);
    process.exitCode = 1;
  }
}
