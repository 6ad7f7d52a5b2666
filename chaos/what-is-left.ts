import type { Queryable } from '../src/store/statements/statement.ts';

export interface WhatIsLeft {
  /** The appends of the traffic and the clients that are in the log, by number. */
  readonly there: ReadonlySet<number>;
  /** The log's last position. */
  readonly head: bigint;
}

/** What a standby has of the log, read without code of the product. */
export async function whatIsLeft(db: Queryable): Promise<WhatIsLeft> {
  const rows = await db.query<{ append: number }>({
    text: `select distinct (payload ->> 'append')::integer as append from refold.events where family <> 'parcel'`,
  });
  const [last] = await db.query<{ head: bigint }>({
    text: 'select coalesce(max(position), 0)::bigint as head from refold.events',
  });
  return { there: new Set(rows.map(({ append }) => append)), head: last?.head ?? 0n };
}

/** The positions of all events, in order. */
export async function positionsIn(db: Queryable): Promise<readonly bigint[]> {
  const rows = await db.query<{ position: bigint }>({ text: 'select position from refold.events order by position' });
  return rows.map(({ position }) => position);
}
