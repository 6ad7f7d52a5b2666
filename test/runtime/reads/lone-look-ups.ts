import { createCompiledReads } from '../../../src/runtime/reads/compiled-reads.ts';
import { createDatabase } from '../../../src/store/postgres/database.ts';
import { readSchema } from '../../support/read-model-writer.ts';
import { balanceV1 } from '../../support/sample-domain.ts';

// Looks up one row twenty times in its own process, in which nothing else has used up names of prepared statements:
// node lone-look-ups.ts URL. Prints how often each statement of the table ran with a cached plan.
const db = createDatabase({ url: process.argv[2] ?? '', maxConnections: 1 });
const answer = createCompiledReads(db, readSchema, 1);
for (let times = 0; times < 20; times++) {
  await answer({
    shape: { roots: [['b', { kind: 'row', read: 0, row: [['t', { kind: 'constant', json: '"Balance"' }]] }]] },
    reads: [{ kind: 'row', projection: balanceV1, columns: [], by: balanceV1.keyColumns, key: ['a'], where: null }],
  });
}
const plans = await db.query<{ kept: bigint }>({
  text: `
    select generic_plans as kept
    from pg_prepared_statements
    where statement like '%${balanceV1.tableName}%'`,
});
console.log(JSON.stringify(plans.map(({ kept }) => Number(kept))));
await db.close();
