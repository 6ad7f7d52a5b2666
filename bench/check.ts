import type pg from 'pg';

/** A benchmark with a wrong result is worthless. */
export function check(condition: boolean, problem: () => string): asserts condition {
  if (!condition) throw new Error(`Wrong result: ${problem()}`);
}

/** Compares, row by row, the projection's table with the one that SQL built from the same log. */
export async function checkSameRows(
  client: pg.Client,
  projection: { readonly name: string },
  bySql: { readonly table: string },
): Promise<void> {
  const [ours, theirs] = [`read_models.${projection.name}`, bySql.table];
  const { rows } = await client.query<{ n: number }>(`
    select count(*)::int as n
    from (
      (table ${ours} except all table ${theirs})
      union all
      (table ${theirs} except all table ${ours})
    ) different`);
  check(rows[0]?.n === 0, () => `${rows[0]?.n} rows of ${ours} and ${theirs} differ`);
}
