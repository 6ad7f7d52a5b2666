import { balance, sales, standing, totals } from '../chaos/domain.ts';
import type { Ledger } from '../chaos/ledger.ts';
import { ids } from '../test/refold/random-conditions.ts';
import { thingV1 } from '../test/refold/things.ts';
import { seeded } from '../test/support/account-traffic.ts';
import { createAccountClient, ofAccounts } from './account-client.ts';
import type { Balancer } from './balancer.ts';
import type { ClientRecord } from './client-record.ts';
import { type Clients, createClients } from './clients.ts';
import { createReader } from './reader.ts';
import { createSession } from './session.ts';
import { createRandomOperations, createThingClient } from './thing-client.ts';
import { startWatcher, type Transport, type Watcher } from './watcher.ts';
import { type RestingWatch, watchChanges, watchList, watchRow } from './watches.ts';

const accountClients = 6;
const thingClients = 3;
const readers = 4;
const passersBy = 3;
const transports: readonly Transport[] = ['server-sent events', 'WebSocket'];

export interface PopulationOptions {
  readonly balancer: Balancer;
  readonly record: ClientRecord;
  readonly ledger: Ledger;
  readonly seed: number;
  /** Steps per second, of all clients together. */
  readonly rate: number;
}

/** All clients that read, write, and subscribe for a moment. */
export function createPopulation({ balancer, record, ledger, seed, rate }: PopulationOptions): Clients {
  const clients = createClients((error) => record.isWrong(`a client of the soak failed: ${String(error)}`));
  const everyMs = ((accountClients + thingClients + readers) * 1000) / rate;
  for (let n = 0; n < accountClients; n++) {
    const session = createSession(`writer-${n}`, balancer, record);
    const options = { session, writer: n, ledger, record, random: seeded(seed * 100 + n) };
    clients.add(createAccountClient(options).step, everyMs);
  }
  for (let n = 0; n < thingClients; n++) {
    const session = createSession(`setter-${n}`, balancer, record);
    const mine = ids.flatMap((_, index) => (index % thingClients === n ? index : []));
    clients.add(createThingClient(session, mine, record, seeded(seed * 100 + 20 + n)).step, everyMs);
  }
  for (let n = 0; n < readers; n++) {
    const session = createSession(`reader-${n}`, balancer, record);
    const operations = createRandomOperations(session, seed * 100_000 + n * 10_000);
    clients.add(createReader(session, operations, record, seeded(seed * 100 + 40 + n)).step, everyMs);
  }
  for (let n = 0; n < passersBy; n++) {
    const random = seeded(seed * 100 + 60 + n);
    clients.add(() => passBy(random), 500);
  }
  return clients;

  /** Opens a random subscription, and closes it some time after the first message. */
  async function passBy(random: () => number): Promise<void> {
    const all = watches(record);
    const watch = all[Math.floor(random() * all.length)] as RestingWatch; // below length
    const over = transports[Math.floor(random() * 2)] as Transport; // as above
    await startWatcher(watch, { balancer, record, over, leavesAfter: random() * 4000 }).ended;
  }
}

/** Subscriptions to rows, lists and feeds of each read model, over both transports. */
export function startWatchers(
  balancer: Balancer,
  record: ClientRecord,
): (Watcher & { readonly watch: RestingWatch })[] {
  return transports.flatMap((over) =>
    watches(record).map((watch) => ({ ...startWatcher(watch, { balancer, record, over }), watch })),
  );
}

const thingColumns = ['thingId', 'ownerId', 'label', 'count', 'big', 'amount', 'flag', 'day', 'at', 'status'];

function watches(record: ClientRecord): RestingWatch[] {
  const [balanceColumns, standingColumns, totalsColumns] = ofAccounts.map(
    ({ columns }) => columns as readonly string[],
  );
  const selected = (columns: readonly string[] = []) => `{ ${columns.join(' ')} }`;
  return [
    watchRow('balance', 'accountId: "account-hot-1"', selected(balanceColumns)),
    watchRow('standing', 'accountId: "account-hot-2"', selected(standingColumns)),
    watchRow('sales', 'what: "*"', '{ what orders units chain }'),
    watchRow('thing', `thingId: ${JSON.stringify(ids[1])}`, selected(thingColumns)),
    watchList(
      'balances',
      'where: { owner: { lt: "owner-15" } }, orderBy: [{ amount: DESC }], first: 10',
      'accountId',
      balanceColumns?.join(' ') ?? '',
      record,
    ),
    watchList('salesList', 'orderBy: [{ units: DESC }], first: 10', 'what', 'what orders units', record),
    watchList(
      'things',
      'where: { label: { eq: "north" } }, orderBy: [{ count: ASC }], first: 8',
      'thingId',
      thingColumns.join(' '),
      record,
    ),
    watchChanges(balance(1), 'accountId', balanceColumns ?? [], record),
    watchChanges(standing, 'accountId', standingColumns ?? [], record),
    watchChanges(totals, 'accountId', totalsColumns ?? [], record),
    watchChanges(sales, 'what', ['what', 'orders', 'units', 'chain'], record),
    watchChanges(thingV1, 'thingId', thingColumns, record),
  ];
}
