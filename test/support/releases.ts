import { z } from 'zod';
import type { EventSchemas } from '../../src/events/event-family.ts';
import {
  type Config,
  defineCommand,
  defineConfig,
  defineEvents,
  defineProjection,
  defineReactor,
  defineState,
  type EventFamily,
  type ReactorContext,
  type RecordedEvent,
  t,
} from '../../src/index.ts';

/** A release of one application: how far each of its changes has come. */
export interface Release {
  /** How often the family was renamed: 0 to 2. */
  readonly family: number;
  /** How often the event type was renamed: 0 to 2. */
  readonly type: number;
  /** The payload version: 1 to 3. */
  readonly payload: number;
  /** How often the first upcaster was edited: 0 or 1. */
  readonly edit: number;
}

/** Payment amounts have another unit in each payload version, under the same name: who takes one for another is wrong, and does not notice. */
export const mills = [1000, 10, 1] as const;

/** The channels that payments of version 1 have, by the number of edits. Later payments have their own, which is `web`. */
export const pastChannels = ['unknown', 'none'] as const;

interface Payment {
  readonly amount: number;
  /** The sum that its command decided on, in mills; null if it was appended without a decision. */
  readonly before: number | null;
  readonly channel?: string;
}

// Written out, because the text of an upcaster is what makes an edit.
const firstUpcasters = [
  ({ amount, ...payment }: Payment) => ({ ...payment, amount: amount * 100, channel: 'unknown' }),
  ({ amount, ...payment }: Payment) => ({ ...payment, amount: amount * 100, channel: 'none' }),
] as const;
const secondUpcaster = ({ amount, ...payment }: Payment) => ({ ...payment, amount: amount * 10 });

function ledgerOf({ family, type, payload, edit }: Release) {
  const [names, types] = [
    ['ledger', 'account_book', 'accounts'],
    ['Paid', 'Charged', 'Billed'],
  ] as const;
  const [name, paid] = [names[family], types[type]] as [string, string];
  const payment = { amount: z.int(), before: z.int().nullable() };
  const schemas: EventSchemas = {
    [paid]: z.object(payload === 1 ? payment : { ...payment, channel: z.string() }),
    Receipted: z.object({ position: z.string(), mills: z.int() }),
  };
  const first = firstUpcasters[edit] ?? firstUpcasters[0];
  const upcasters = ([[], [first], [first, secondUpcaster]] as const)[payload - 1] ?? [];
  const ledger: EventFamily = defineEvents(name, schemas, {
    was: names.slice(0, family),
    types: { [paid]: { was: types.slice(0, type) } },
    upcasters: { [paid]: upcasters },
  });
  return { ledger, paid };
}

/** What a release does with a payment. */
export interface ReleasedApplication {
  readonly ledger: EventFamily;
  readonly config: Config;
  readonly pay: ReturnType<typeof paymentsOf>['pay'];
  readonly move: ReturnType<typeof paymentsOf>['move'];
  /** A new event. */
  payment(amount: number, before: number | null): { readonly type: string; readonly payload: Payment };
}

/** @param send a side effect: receives the position and the amount of each payment at least once */
export function applicationOf(
  release: Release,
  send: (position: bigint, amount: number) => Promise<unknown>,
): ReleasedApplication {
  const { ledger, paid } = ledgerOf(release);
  const unit = mills[release.payload - 1] ?? 1;
  const channels: readonly (Channel | undefined)[] =
    release.payload === 1 ? [null] : [pastChannels[release.edit], 'web'];
  const expectOwn = (channel: Channel) => {
    if (!channels.includes(channel)) throw new Error(`misread: the channel is ${channel}, and not one of ${channels}`);
  };
  const read = (event: RecordedEvent) => {
    const { amount, channel = null } = event.payload as Payment;
    expectOwn(channel);
    return { amount: amount * unit, channel };
  };
  const payment = (amount: number, before: number | null) => ({
    type: paid,
    payload: { amount: amount / unit, before, channel: 'web' }, // the schema of version 1 removes the channel
  });
  const commands = paymentsOf(ledger, paid, { read, payment, expectOwn });
  const receipt = defineCommand({
    name: 'receipt',
    input: z.object({ position: z.string(), mills: z.int() }),
    events: ledger,
    emits: ['Receipted'] as string[],
    stream: ({ position }) => `receipt-${position}`,
    decide: (input) => ({ type: 'Receipted', payload: input }),
  });
  const letters = defineReactor({
    name: 'letters',
    events: ledger,
    from: 'beginning',
    commands: [receipt],
    handle: {
      async [paid](event: RecordedEvent, { execute }: ReactorContext) {
        const { amount } = read(event);
        await send(event.position, amount);
        await execute(receipt, { position: event.position.toString(), mills: amount });
      },
    },
    // The test ends processes at any moment.
    onError: { policy: 'stop', retries: [{ on: 'PROCESS_ENDED', times: Number.POSITIVE_INFINITY }, { times: 5 }] },
  });
  const config = defineConfig({
    events: [ledger],
    projections: projectionsOf(ledger, paid, { read, unit }),
    commands: [commands.pay, commands.move],
    reactors: [letters],
    runtime: { pageSize: 20, polling: { min: 10, max: 50 } },
  });
  return { ledger, config, payment, ...commands };
}

type Channel = string | null;

interface Reading {
  /** @throws Error if the payload is not as this release reads it */
  readonly read: (event: RecordedEvent) => { readonly amount: number; readonly channel: Channel };
  readonly expectOwn: (channel: Channel) => void;
}

/** What the commands decide on. Its snapshots hold the channels as the code of this release reads them. */
interface Account {
  readonly sum: number;
  readonly channels: readonly Channel[];
}

function paymentsOf(
  ledger: EventFamily,
  paid: string,
  { read, payment, expectOwn }: Reading & Pick<ReleasedApplication, 'payment'>,
) {
  const account = defineState(
    ledger,
    (): Account => ({ sum: 0, channels: [] }),
    {
      [paid]: ({ sum, channels }: Account, event: RecordedEvent) => {
        const { amount, channel } = read(event);
        return { sum: sum + amount, channels: channels.includes(channel) ? channels : [...channels, channel] };
      },
    },
    { snapshotEvery: 2 },
  );
  const decided = (amount: number, { sum, channels }: Account) => {
    channels.forEach(expectOwn);
    return payment(amount, sum);
  };
  const pay = defineCommand({
    name: 'pay',
    input: z.object({ id: z.string(), amount: z.int() }),
    state: account,
    stream: ({ id }) => id,
    decide: ({ amount }, state) => decided(amount, state),
  });
  const move = defineCommand({
    name: 'move',
    input: z.object({ from: z.string(), to: z.string(), amount: z.int() }),
    states: [account],
    streams: ({ from, to }) => [
      { state: account, streamId: from },
      { state: account, streamId: to },
    ],
    decide: ({ amount }, [from, to]) => [decided(-amount, from), decided(amount, to)],
  });
  return { pay, move };
}

function projectionsOf(
  ledger: EventFamily,
  paid: string,
  { read, unit }: Pick<Reading, 'read'> & { readonly unit: number },
) {
  /** Each payment in its order, so another order or a payment that is left out is seen. */
  const listed = (row: { seen: string; mills: number } | null, event: RecordedEvent) => {
    const { amount, channel } = read(event);
    return {
      seen: `${row?.seen ?? ''} ${event.streamPosition}:${amount}:${channel}`,
      mills: (row?.mills ?? 0) + amount,
    };
  };
  const columns = { id: t.text().primaryKey(), mills: t.integer(), seen: t.text() };
  const folded = {
    version: 1,
    events: ledger,
    table: columns,
    key: (event: RecordedEvent) => event.streamId,
    evolve: { [paid]: listed },
  } as const;
  return [
    defineProjection({ ...folded, name: 'listed', partitions: 2 }),
    defineProjection({ ...folded, name: 'at_once', mode: 'inline' }),
    defineProjection({
      name: 'summed',
      version: 1,
      events: ledger,
      table: { id: t.text().primaryKey(), mills: t.integer(), payments: t.integer() },
      evolveSql: {
        events: [paid],
        rows: `
          select stream_id as id, sum((payload->>'amount')::int * ${unit})::int as mills, count(*)::int as payments
          from batch
          where family = '${ledger.name}' and type = '${paid}'
          group by stream_id`,
        merge: { mills: 'add', payments: 'add' },
      },
    }),
  ];
}
