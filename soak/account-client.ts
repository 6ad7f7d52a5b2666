import { isDeepStrictEqual } from 'node:util';
import { account, balance, foldOneByOne, order, standing, totals } from '../chaos/domain.ts';
import type { Ledger, LedgerEntry } from '../chaos/ledger.ts';
import { parseToken } from '../src/events/position-token.ts';
import type { Projection, RecordedEvent } from '../src/index.ts';
import type { Row } from '../src/projections/columns/row-codec.ts';
import { told } from '../test/refold/naive-values.ts';
import type { ClientRecord } from './client-record.ts';
import type { Ask, Outcome, Session } from './session.ts';

/** Read models with one row per account, and the columns that clients select: only columns that all versions share. */
export const ofAccounts = [
  { projection: balance(1), field: 'balance', columns: ['accountId', 'owner', 'amount', 'movements', 'chain'] },
  { projection: standing, field: 'standing', columns: ['accountId', 'amount', 'chain'] },
  {
    projection: totals,
    field: 'totals',
    columns: ['accountId', 'moved', 'movements', 'checksum', 'firstAppend', 'lastAppend'],
  },
] as const satisfies readonly { projection: Projection; field: string; columns: readonly string[] }[];

const selections = ofAccounts
  .map(({ field, columns }) => `${field}(accountId: $id) { ${columns.join(' ')} }`)
  .join(' ');

/** An account that only one client uses: its expected rows are known without a query. */
interface OwnAccount {
  readonly id: string;
  /** The expected row in each read model. */
  rows: readonly (Row | null)[];
  version: number;
}

const hotAccounts = 5;
const ownAccounts = 8;

export interface AccountClientOptions {
  readonly session: Session;
  /** Its number among the appending clients. */
  readonly writer: number;
  readonly ledger: Ledger;
  readonly record: ClientRecord;
  readonly random: () => number;
}

interface Command {
  readonly name: string;
  readonly family: typeof account | typeof order;
  readonly streamId: string;
  readonly type: string;
  readonly payload: Readonly<{ [name: string]: unknown }>;
}

/** Opens accounts, moves money, places orders, and reads what it wrote. Each call is one step. */
export function createAccountClient({ session, writer, ledger, record, random }: AccountClientOptions) {
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)] as T; // below length
  let accountsMade = 0;
  const newAccount = (): OwnAccount => ({
    id: `account-${writer}-${++accountsMade}`,
    rows: ofAccounts.map(() => null),
    version: 0,
  });
  const own = Array.from({ length: ownAccounts }, newAccount);

  function movement(isOpen: boolean): Pick<Command, 'name' | 'type' | 'payload'> {
    const draw = random();
    const amount = (random() * 100).toFixed(2);
    if (!isOpen)
      return { name: 'openAccount', type: 'Opened', payload: { owner: `owner-${Math.floor(random() * 20)}` } };
    if (draw < 0.05) return { name: 'closeAccount', type: 'Closed', payload: {} };
    if (draw < 0.4) return { name: 'debit', type: 'Debited', payload: { amount } };
    const poison = random() < 0.004 ? { poison: 'account' } : {};
    return { name: 'credit', type: 'Credited', payload: { amount, ...poison } };
  }

  /** Sends a command until its outcome is known, if it can be known. `more`: an additional selection. */
  async function send(command: Command, more: string, expected?: number): Promise<[LedgerEntry, Outcome]> {
    const { name, family, streamId, type, payload } = command;
    const entry = ledger.begin(writer, [{ family: family.name, streamId, types: [type] }]);
    const key = random() < 0.5 ? `${session.name} ${entry.append}` : undefined;
    const idName = family === account ? 'accountId' : 'orderId';
    const inputType = `${name[0]?.toUpperCase()}${name.slice(1)}Input`;
    const ask: Ask = {
      kind: `mutation${more === '' ? '' : ' with its row'}`,
      query: `mutation ($input: ${inputType}!, $key: String, $expected: Int) {
        ${name}(input: $input, idempotencyKey: $key, expectedVersion: $expected) { position streamVersion ${more} }
      }`,
      variables: {
        input: { [idName]: streamId, append: entry.append, ...payload },
        ...(key === undefined ? {} : { key }),
        ...(expected === undefined ? {} : { expected }),
      },
      allowed: ['COMMAND_REJECTED', 'CONCURRENCY_CONFLICT', 'STREAM_LOCKED'],
    };
    for (;;) {
      const outcome = await session.ask(ask);
      if (outcome.kind === 'answered') {
        entry.outcome = 'acknowledged';
        const { position } = outcome.data[name] as { position: string };
        entry.positions = [parseToken(position).position];
        return [entry, outcome];
      }
      entry.outcome = outcome.kind === 'failed' && outcome.unknown ? 'unknown' : 'refused';
      if (entry.outcome === 'refused' || key === undefined) return [entry, outcome];
    }
  }

  async function moveOwn(): Promise<void> {
    const mine = pick(own);
    const selectsRows = random() < 0.4;
    const command = {
      ...movement(mine.rows[0] !== null),
      family: account,
      streamId: mine.id,
    };
    const offered = ofAccounts.filter(inPayloads).map(({ field, columns }) => `${field} { ${columns.join(' ')} }`);
    const more = selectsRows ? offered.join(' ') : '';
    const conflicts = random() < 0.03;
    const expects = conflicts ? mine.version + 1 : random() < 0.3 ? mine.version : undefined;
    const [entry, outcome] = await send(command, command.name === 'closeAccount' ? '' : more, expects);
    if (outcome.kind === 'failed') return void own.splice(own.indexOf(mine), 1, newAccount());
    if (outcome.kind === 'refused') {
      const right = conflicts ? 'CONCURRENCY_CONFLICT' : 'none';
      if (outcome.code !== right && outcome.code !== 'STREAM_LOCKED')
        record.isWrong(`${command.name} of ${mine.id} was refused with ${outcome.code}, expected ${right}`);
      return;
    }
    if (conflicts) record.isWrong(`${command.name} of ${mine.id} was accepted at a wrong expected version`);
    const answered = outcome.data[command.name] as Readonly<{ [name: string]: unknown }> & { streamVersion: number };
    mine.version++;
    if (answered.streamVersion !== mine.version)
      record.isWrong(`${mine.id} is at version ${answered.streamVersion}, but its only client expects ${mine.version}`);
    learn(mine, command, entry);
    if (more !== '' && command.name !== 'closeAccount')
      expectRows(mine, answered, 'the payload of its own mutation', inPayloads);
    const position = entry.positions[0] ?? 0n;
    const directive = random() < 0.5;
    const read = await session.ask({
      kind: 'own write',
      query: `query ($id: ID!) ${directive ? `@after(position: "${position}")` : ''} { ${selections} }`,
      variables: { id: mine.id },
      ...(directive ? {} : { after: position }),
    });
    if (read.kind === 'answered') expectRows(mine, read.data, `a response after position ${position}`);
  }

  function learn(mine: OwnAccount, { family, streamId, type, payload }: Command, { append, positions }: LedgerEntry) {
    const event = {
      family: family.name,
      streamId,
      type,
      payload: { append, part: 0, ...payload },
      position: positions[0],
    } as unknown as RecordedEvent; // all that these projections read of it
    mine.rows = ofAccounts.map(({ projection }, index) => {
      const code = foldOneByOne(projection);
      const before = mine.rows[index] ?? null;
      return handles(code, type) ? code.apply(before, event, [streamId]) : before;
    });
  }

  function expectRows(
    mine: OwnAccount,
    answered: Readonly<{ [name: string]: unknown }>,
    where: string,
    isAsked: (of: (typeof ofAccounts)[number]) => boolean = () => true,
  ): void {
    for (const [index, of] of ofAccounts.entries()) {
      if (!isAsked(of)) continue;
      const { projection, field, columns } = of;
      const row = mine.rows[index] ?? null;
      const expected = row && toldRow(projection, row, columns);
      if (!isDeepStrictEqual(answered[field], expected))
        record.isWrong(
          `${where} shows ${field} of ${mine.id} as ${JSON.stringify(answered[field])}, expected ${JSON.stringify(expected)}`,
        );
    }
  }

  return {
    async step(): Promise<void> {
      const draw = random();
      if (draw < 0.65) return moveOwn();
      if (draw < 0.85) {
        // Several clients use it at once, so this client can't know whether it is open.
        const streamId = `account-hot-${Math.floor(random() * hotAccounts)}`;
        await send({ ...movement(random() < 0.95), family: account, streamId }, '');
        return;
      }
      const lines = Array.from({ length: 1 + Math.floor(random() * 4) }, () => ({
        product: String(Math.floor(random() * 30)),
        quantity: 1 + Math.floor(random() * 9),
      }));
      const payload = { customer: String(Math.floor(random() * 50)), lines };
      const streamId = `order-${writer}-${Math.floor(random() * 1e9)}`;
      await send({ name: 'placeOrder', family: order, streamId, type: 'Placed', payload }, '');
    },
  };
}

/** A payload has no rows that are folded by SQL: only the database knows which rows an event changes. */
function inPayloads({ projection }: { readonly projection: Projection }): boolean {
  return projection.sqlFold === null;
}

function handles({ filter }: Projection, type: string): boolean {
  return filter.some(({ types }) => types.includes(type));
}

/** These columns of a row, as GraphQL returns them. */
export function toldRow(
  projection: Projection,
  row: Row,
  columns: readonly string[],
): Readonly<{ [name: string]: unknown }> {
  return Object.fromEntries(
    columns.map((name) => {
      const column = projection.columns[name];
      return [name, column && told(column, row[name])];
    }),
  );
}
