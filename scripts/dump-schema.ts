/**
 * Writes `migrations/schema.sql`: the schema of a fresh install, to read in one piece what the migrations add up to.
 * With `--check` it writes nothing and fails where the file is not what the migrations make now.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDatabase } from '../src/store/postgres/database.ts';
import { migrate } from '../src/store/server/migrate.ts';
import { embeddedBinaries, startPostgresCluster } from '../test/support/postgres-cluster.ts';
import { dumpSchema } from './schema-dump.ts';

const file = join(import.meta.dirname, '../migrations/schema.sql');
const heading = '-- What the migrations add up to. Written by scripts/dump-schema.ts; not meant to be run.\n\n';

const cluster = await startPostgresCluster({ binaries: await embeddedBinaries() });
const db = createDatabase({ url: cluster.url });
try {
  await migrate(db);
  const dump = heading + (await dumpSchema(db));
  if (!process.argv.includes('--check')) writeFileSync(file, dump);
  else if (readFileSync(file, 'utf8') !== dump) {
    console.error(
      'migrations/schema.sql is not what the migrations make. Run `node scripts/dump-schema.ts` and commit it.',
    );
    process.exitCode = 1;
  }
} finally {
  await db.close();
  await cluster.stop();
}
