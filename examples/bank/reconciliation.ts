import { beginning, type GlobalPosition, type Refold } from '../../src/index.ts';
import { type BookingEvent, bankAccount } from './events.ts';

export interface Reconciliation {
  readonly events: number;
  readonly accounts: number;
  /** Of all accounts together. */
  readonly balance: string;
  /** What does not agree, one sentence each. */
  readonly differences: readonly string[];
}

/**
 * Adds up the whole log, with arithmetic of its own, and compares the sums with what every event and every read model says. It waits for the
 * read models. Run it at the end of the day: if something is booked meanwhile, it begins again.
 */
export async function reconcile(bank: Pick<Refold, 'log' | 'graphql'>): Promise<Reconciliation> {
  for (;;) {
    const upTo = await bank.log.horizon();
    const ledger = await addUp(bank, upTo);
    const differences = [...ledger.differences, ...(await compareReadModels(bank, ledger, upTo))];
    if ((await bank.log.horizon()) !== upTo) continue;
    const balance = text(total(ledger));
    return { events: ledger.events, accounts: ledger.balances.size, balance, differences };
  }
}

interface Ledger {
  events: number;
  /** In cents, by account. */
  readonly balances: Map<string, bigint>;
  readonly differences: string[];
}

const signs: Readonly<Record<Exclude<BookingEvent['type'], 'Corrected'>, bigint>> = {
  Deposited: 1n,
  TransferReceived: 1n,
  InterestPaid: 1n,
  Withdrawn: -1n,
  TransferSent: -1n,
  InterestCharged: -1n,
  FeeCharged: -1n,
};

/** Each booking says the balance after it, and each transfer between two accounts of the bank has two sides. */
async function addUp({ log }: Pick<Refold, 'log'>, upTo: GlobalPosition): Promise<Ledger> {
  const ledger: Ledger = { events: 0, balances: new Map(), differences: [] };
  let underWay = 0n;
  const filter = [{ family: bankAccount.name, types: bankAccount.types }];
  for (let after = beginning; after < upTo; ) {
    const page = await log.readAll({ after, upTo, filter, limit: 5_000 });
    for (const event of page.events as BookingEvent[]) {
      const { streamId, payload } = event;
      ledger.events++;
      const before = ledger.balances.get(streamId) ?? 0n;
      ledger.balances.set(streamId, before);
      if (!('bookingId' in payload)) continue;
      const change = changeInCents(event);
      const balance = before + change;
      if (balance !== cents(payload.balance))
        ledger.differences.push(
          `Booking ${payload.bookingId} says a balance of ${payload.balance}, the log adds up to ${text(balance)}.`,
        );
      ledger.balances.set(streamId, balance);
      if ('counterparty' in payload && ledger.balances.has(payload.counterparty)) underWay -= change;
    }
    after = page.upTo;
  }
  if (underWay !== 0n) ledger.differences.push(`Transfers have lost ${text(underWay)} between their two sides.`);
  return ledger;
}

interface StatementRow {
  readonly statementId: string;
  readonly accountId: string;
  readonly month: string;
  readonly opening: string;
  readonly credited: string;
  readonly debited: string;
  readonly corrected: string;
  readonly closing: string;
}

async function compareReadModels(
  bank: Pick<Refold, 'graphql'>,
  ledger: Ledger,
  upTo: GlobalPosition,
): Promise<readonly string[]> {
  const differences: string[] = [];
  for (const list of ['accounts', 'accountBalances']) {
    const rows = await all<{ accountId: string; balance: string }>(bank, list, 'accountId balance', upTo);
    const balances = new Map(rows.map(({ accountId, balance }) => [accountId, cents(balance)]));
    differences.push(...compare(list, balances, ledger));
  }
  const fields = 'statementId accountId month opening credited debited corrected closing';
  const statements = await all<StatementRow>(bank, 'statements', fields, upTo);
  statements.sort((a, b) => (a.month < b.month ? -1 : 1));
  const closings = new Map<string, bigint>();
  for (const { statementId, accountId, opening, credited, debited, corrected, closing } of statements) {
    if (cents(opening) !== (closings.get(accountId) ?? 0n))
      differences.push(`Statement ${statementId} opens with ${opening}, not with what the one before closed with.`);
    if (cents(opening) + cents(credited) - cents(debited) + cents(corrected) !== cents(closing))
      differences.push(`Statement ${statementId} does not add up.`);
    closings.set(accountId, cents(closing));
  }
  differences.push(...compare('statements', closings, ledger));
  const { bookings, operations, days } = await totals(bank, upTo);
  for (const [name, found] of Object.entries({ bookings, operationTotalsList: operations, turnoverByDays: days })) {
    if (found !== total(ledger))
      differences.push(`${name} add up to ${text(found)}, the log to ${text(total(ledger))}.`);
  }
  return differences;
}

function compare(list: string, found: ReadonlyMap<string, bigint>, { balances }: Ledger): string[] {
  const ids = new Set([...found.keys(), ...balances.keys()]);
  return [...ids]
    .filter((id) => (found.get(id) ?? 0n) !== (balances.get(id) ?? 0n))
    .map(
      (id) =>
        `${list}: account ${id} has ${text(found.get(id) ?? 0n)}, the log adds up to ${text(balances.get(id) ?? 0n)}.`,
    );
}

async function totals({ graphql }: Pick<Refold, 'graphql'>, upTo: GlobalPosition) {
  const { data, errors } = await graphql(
    `query ($upTo: Position!) @after(position: $upTo) {
      bookingsAggregate { sum { amount } }
      operationTotalsListAggregate { sum { amount } }
      turnoverByDaysAggregate { sum { credited debited } }
    }`,
    { upTo: String(upTo) },
  );
  if (errors?.[0]) throw errors[0];
  const { bookingsAggregate, operationTotalsListAggregate, turnoverByDaysAggregate } = data as Record<
    string,
    { readonly sum: Readonly<Record<string, string | null>> }
  >; // as selected
  return {
    bookings: cents(bookingsAggregate?.sum.amount),
    operations: cents(operationTotalsListAggregate?.sum.amount),
    days: cents(turnoverByDaysAggregate?.sum.credited) - cents(turnoverByDaysAggregate?.sum.debited),
  };
}

/** All rows of a list. */
async function all<Row>(
  { graphql }: Pick<Refold, 'graphql'>,
  list: string,
  fields: string,
  upTo: GlobalPosition,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (let after: string | null = null; ; ) {
    const { data, errors } = await graphql(
      `query ($after: String, $upTo: Position!) @after(position: $upTo) {
        ${list}(first: 500, after: $after) { nodes { ${fields} } pageInfo { hasNextPage endCursor } }
      }`,
      { after, upTo: String(upTo) },
    );
    if (errors?.[0]) throw errors[0];
    const page = data?.[list] as { nodes: Row[]; pageInfo: { hasNextPage: boolean; endCursor: string } }; // as selected
    rows.push(...page.nodes);
    if (!page.pageInfo.hasNextPage) return rows;
    after = page.pageInfo.endCursor;
  }
}

function changeInCents({ type, payload }: BookingEvent): bigint {
  if (type === 'Corrected') return cents(payload.is) - cents(payload.was);
  return signs[type] * cents(payload.amount);
}

function total({ balances }: Ledger): bigint {
  return [...balances.values()].reduce((sum, balance) => sum + balance, 0n);
}

function cents(amount: string | null | undefined): bigint {
  const [whole = '0', fraction = ''] = (amount ?? '0').replace('-', '').split('.');
  const found = BigInt(whole) * 100n + BigInt(fraction.padEnd(2, '0'));
  return amount?.startsWith('-') ? -found : found;
}

function text(amount: bigint): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(3, '0');
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}
