import type { EventLog, Projection } from '../src/index.ts';
import { createEventLog } from '../src/store/event-log.ts';
import { createDatabase, type Database } from '../src/store/postgres/database.ts';
import { migrate } from '../src/store/server/migrate.ts';
import { startWorker } from './build.ts';
import { cart } from './carts.ts';
import { check } from './check.ts';
import type { BenchServer } from './server.ts';

/** A new log, to which the callers of a scenario append items. */
export interface AppendLog {
  readonly log: EventLog;
  readonly db: Database;
  close(): Promise<void>;
}

export async function openAppendLog(server: BenchServer): Promise<AppendLog> {
  const url = await server.createDatabase('bench_append');
  await migrate(url);
  const db = createDatabase({ url });
  return { log: createEventLog(db, [cart]), db, close: () => db.close() };
}

/** The log of a process that maintains these inline projections; the list may be empty. */
export async function openInlineLog(server: BenchServer, projections: readonly Projection[]): Promise<AppendLog> {
  const url = await server.createDatabase('bench_append_inline');
  await migrate(url);
  const runtime = await startWorker(url, projections);
  const isLive = async () => (await runtime.status()).every(({ inline }) => inline === 'live');
  while (!(await isLive())) await new Promise((resolve) => setTimeout(resolve, 20));
  return { log: runtime.log, db: runtime.db, close: () => runtime.stop() };
}

/** Checks that all acknowledged events are in the log, and that no stream has a gap. */
export async function checkLog({ db }: AppendLog, acknowledged: number): Promise<void> {
  const [row] = await db.query<{ events: number; versions: number; gaps: number }>({
    text: `
      select
        (select count(*)::int from refold.events) as events,
        (select sum(version)::int from refold.streams) as versions,
        (select count(*)::int from refold.streams s
          where version <> (select max(stream_position) from refold.events e
            where e.family = s.family and e.stream_id = s.stream_id)) as gaps`,
  });
  check(row?.events === acknowledged, () => `${acknowledged} events acknowledged, ${row?.events} in the log`);
  check(row.versions === row.events && row.gaps === 0, () => `${row.versions} versions, ${row.gaps} gaps`);
}

/** Checks that each stream has its row of `cartSummaryInline`, with every item. */
export async function checkInlineRows({ db }: AppendLog): Promise<void> {
  const [row] = await db.query<{ wrong: number }>({
    text: `
      select count(*)::int as wrong
      from refold.streams
      full join read_models.cart_summary_inline_v1 on cart_id = stream_id
      where items is distinct from version or total is distinct from version * 12.50`,
  });
  check(row?.wrong === 0, () => `${row?.wrong} rows differ from their streams`);
}
