import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import app from '../../examples/bank/app.ts';
import { changeOf } from '../../examples/bank/bookings.ts';
import { bankAccount } from '../../examples/bank/events.ts';
import { reconcile } from '../../examples/bank/reconciliation.ts';
import { createRefold, decimal, globalPosition, type Refold } from '../../src/index.ts';
import { effort } from '../support/effort.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

let database: TestDatabase;
/** Two processes of the bank, each with its own gateway. */
let banks: readonly Refold[];

beforeAll(async () => {
  database = await createTestDatabase();
  const start = (name: string) =>
    createRefold(
      {
        ...app,
        development: false,
        database: { ...app.database, url: database.url },
        gateway: { ...app.gateway, port: 0, positionTimeout: 300_000 },
      },
      { name, logger: pino({ level: 'silent' }) },
    );
  banks = [await start('one'), await start('two')];
  for (const { url } of banks)
    await until(
      async () => (await ask(url, '{ accounts { totalCount } statements { totalCount } }')).errors === undefined,
    );
});
afterAll(async () => {
  for (const bank of banks) await bank.stop();
  await database.drop();
});

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: as the operation selects it
  readonly data: any;
  readonly errors?: readonly { readonly extensions: { readonly code: string; readonly details?: object } }[];
}

async function ask(url: string | undefined, query: string): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  return (await response.json()) as Answer;
}

const amountOf = (cents: number) => decimal(cents).div(100).toFixed(2);

/** What a client does: `to` is null for a withdrawal, `from` for a deposit. */
interface Move {
  readonly from: number | null;
  readonly to: number | null;
  readonly cents: number;
  /** Sent to both gateways at the same time, with one key. */
  readonly twice: boolean;
  readonly gateway: 0 | 1;
}

const accounts = 4;
const place = fc.nat({ max: accounts - 1 });
const common = { cents: fc.integer({ min: 1, max: 900 }), twice: fc.boolean(), gateway: fc.constantFrom(0, 1) };
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .record({ from: place, by: fc.integer({ min: 1, max: accounts - 1 }), ...common })
      .map(({ by, ...rest }) => ({ ...rest, to: (rest.from + by) % accounts })),
  },
  { weight: 1, arbitrary: fc.record({ from: fc.constant(null), to: place, ...common }) },
  { weight: 2, arbitrary: fc.record({ from: place, to: fc.constant(null), ...common }) },
);

function mutationOf({ from, to, cents }: Move, run: string, key: string): string {
  const id = (place: number) => `"${run}-${place}"`;
  const [name, input] =
    from === null
      ? ['deposit', `accountId: ${id(to as number)}`] // a move has at least one side
      : to === null
        ? ['withdraw', `accountId: ${id(from)}`]
        : ['transfer', `from: ${id(from)}, to: ${id(to)}`];
  return `mutation {
    ${name}(input: { ${input}, amount: "${amountOf(cents)}" }, idempotencyKey: "${key}") { position account { accountId } }
  }`;
}

/** Sends it until it is decided: others were faster ten times in a row if it is a conflict. */
async function decided(url: string | undefined, mutation: string): Promise<'booked' | 'refused'> {
  for (;;) {
    const { errors } = await ask(url, mutation);
    if (errors === undefined) return 'booked';
    const [{ extensions } = { extensions: { code: 'none', details: {} } }] = errors;
    if (['CONCURRENCY_CONFLICT', 'STREAM_LOCKED'].includes(extensions.code)) continue;
    expect(extensions).toMatchObject({ code: 'COMMAND_REJECTED', details: { rejection: 'OVERDRAFT' } });
    return 'refused';
  }
}

/**
 * Reads the log again and again: whenever it does, it finds both sides of a transfer, or none. Each read is one statement that also takes what lies
 * beyond the horizon: a page up to the horizon may end within an append that has just been committed.
 */
function watchTransfers(log: Refold['log']) {
  let ended = false;
  const filter = [{ family: bankAccount.name, types: ['TransferSent', 'TransferReceived'] }];
  const watching = (async () => {
    const after = await log.horizon();
    const farAhead = globalPosition(after + 1_000_000n);
    do {
      const { events } = await log.readAll({ after, upTo: farAhead, filter, limit: 1_000 });
      const moved = events.map(({ type, streamId, payload }) => {
        const { counterparty, amount } = payload as { counterparty: string; amount: string }; // of a transfer
        const [from, to] = type === 'TransferSent' ? [streamId, counterparty] : [counterparty, streamId];
        return { type, move: `${amount} from ${from} to ${to}` };
      });
      const side = (wanted: string) => moved.flatMap(({ type, move }) => (type === wanted ? [move] : [])).sort();
      expect(side('TransferReceived')).toEqual(side('TransferSent'));
    } while (!ended);
  })();
  watching.catch(() => {}); // `end` reports it
  return {
    async end() {
      ended = true;
      await watching;
    },
  };
}

let runs = 0;

test('random concurrent moves over two gateways never lose money, and never overdraw an account', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 5, maxLength: 40 }), async (moves) => {
      const run = `run-${++runs}`;
      const [{ url: first } = { url: undefined }, { url: second } = { url: undefined }] = banks;
      const open = Array.from({ length: accounts }, (_, place) => {
        const id = `accountId: "${run}-${place}"`;
        return `o${place}: openAccount(input: { ${id} }) { position } d${place}: deposit(input: { ${id}, amount: "10" }) { position }`;
      });
      expect((await ask(first, `mutation { ${open.join(' ')} }`)).errors).toBeUndefined();

      const { log } = banks[0] as Refold; // there are two
      const watching = watchTransfers(log);
      const outcomes = await Promise.all(
        moves.map(async (one, index) => {
          const mutation = mutationOf(one, run, `${run}-${index}`);
          const [to, other] = one.gateway === 0 ? [first, second] : [second, first];
          const sent = await Promise.all([to, ...(one.twice ? [other] : [])].map((url) => decided(url, mutation)));
          // A refused command leaves no key, so its repetition may be booked a moment later.
          return sent.includes('booked');
        }),
      );

      await watching.end();
      const expected = Array.from({ length: accounts }, () => decimal(10));
      for (const [index, { from, to, cents }] of moves.entries()) {
        if (!outcomes[index]) continue;
        if (from !== null) expected[from] = (expected[from] ?? decimal(0)).minus(amountOf(cents));
        if (to !== null) expected[to] = (expected[to] ?? decimal(0)).plus(amountOf(cents));
      }
      for (const [place, balance] of expected.entries()) {
        const streamId = `${run}-${place}`;
        const found = await ask(
          second,
          `query @after(position: "${await log.horizon()}") { account(accountId: "${streamId}") { balance } }`,
        );
        expect(found.data.account.balance).toBe(balance.toFixed(2));
        let sum = decimal(0);
        for await (const event of log.readStream(bankAccount, streamId)) {
          if (event.type === 'AccountOpened') continue;
          sum = sum.plus(changeOf(event));
          expect(sum.gte(0), `account ${streamId} after event ${event.streamPosition}`).toBe(true);
        }
      }
    }),
    { numRuns: effort(20, 8) },
  );
  for (const bank of banks) expect((await reconcile(bank)).differences).toEqual([]);
});

test('a month of an account: bookings, interest, a correction, its statement, its past', async () => {
  const url = banks[0]?.url;
  const booked = await ask(
    url,
    `mutation {
      openAccount(input: { accountId: "eve" }) { position }
      deposit(input: { accountId: "eve", amount: "1000" }) { position account { balance } }
      chargeFee(input: { accountId: "eve", amount: "3.50" }) { account { balance } }
      addInterest(input: { accountId: "eve", month: "2026-01", rate: "2.5" }) { account { balance } }
      correctBooking(input: { accountId: "eve", bookingId: "eve-3", amount: "-2.50" }) { account { balance corrections } }
      again: addInterest(input: { accountId: "eve", month: "2026-01", rate: "2.5" }) { position }
    }`,
  );
  const balances = ['deposit', 'chargeFee', 'addInterest', 'correctBooking'].map(
    (name) => booked.data[name].account.balance,
  );
  expect(balances).toEqual(['1000.00', '996.50', '998.58', '999.58']);
  expect(booked.data.correctBooking.account.corrections).toBe(1);
  expect(booked.errors?.map(({ extensions }) => extensions.details)).toEqual([
    { rejection: 'INTEREST_IS_BOOKED', accountId: 'eve', upTo: '2026-01' },
  ]);
  const { data } = await ask(
    url,
    `{
      account(accountId: "eve") {
        statements {
          nodes {
            opening credited debited interest corrected closing bookings
            lines(orderBy: [{ number: ASC }]) { nodes { operation amount balance corrects } }
          }
        }
      }
      past: account(accountId: "eve", asOf: { position: "${booked.data.deposit.position}" }) { balance }
      accountEvents(accountId: "eve") { nodes { type row { balance } } }
    }`,
  );
  expect(data.account.statements.nodes).toEqual([
    {
      opening: '0.00',
      credited: '1002.08',
      debited: '3.50',
      interest: '2.08',
      corrected: '1.00',
      closing: '999.58',
      bookings: 4,
      lines: {
        nodes: [
          { operation: 'Deposited', amount: '1000.00', balance: '1000.00', corrects: null },
          { operation: 'FeeCharged', amount: '-3.50', balance: '996.50', corrects: null },
          { operation: 'InterestPaid', amount: '2.08', balance: '998.58', corrects: null },
          { operation: 'Corrected', amount: '1.00', balance: '999.58', corrects: 'eve-3' },
        ],
      },
    },
  ]);
  expect(data.past).toEqual({ balance: '1000.00' });
  expect(data.accountEvents.nodes.at(-1)).toEqual({ type: 'Corrected', row: { balance: '999.58' } });
});
