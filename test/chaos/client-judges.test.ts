import { describe, expect, test } from 'vitest';
import type { Response } from '../../chaos/clients/ask.ts';
import { type FeedClient, feeds } from '../../chaos/clients/feeds.ts';
import { rowText } from '../../chaos/clients/row-text.ts';
import type { Answer, Asked } from '../../chaos/clients/told.ts';
import { balance } from '../../chaos/domain.ts';
import { expectation } from '../../chaos/expectation.ts';
import { judges } from '../../chaos/judges/all.ts';
import type { Evidence } from '../../chaos/judges/judge.ts';
import { acknowledge, createLedger, type Ledger } from '../../chaos/ledger.ts';
import { noTrials } from '../../chaos/trials/trials.ts';
import { globalPosition } from '../../src/events/global-position.ts';
import type { RecordedEvent } from '../../src/index.ts';

// No operator touched dead letters.
const db = { query: async () => [] };
/** The judges of client responses, and the judge of acknowledged appends. */
const ofClients = [
  'log-is-ledger',
  'writes-are-read',
  'positions-are-monotonic',
  'answers-are-whole',
  'answers-are-of-the-log',
  'feeds-are-folds',
  'errors-are-true',
  'store-outages-stop-nothing-else',
];

/** Appends 0, 1, 2 to one account, at 10, 20 and 30: a credit of one each, the first after the opening. */
function event(position: number, append: number, part: number, type: 'Opened' | 'Credited'): RecordedEvent {
  return {
    id: `event-${position}`,
    family: 'account',
    streamId: 'account-1',
    streamPosition: append + part + 1,
    position: globalPosition(BigInt(position)),
    type,
    payload: { append, part, ...(type === 'Opened' ? { owner: 'ada' } : { amount: '1.00' }) },
    payloadVersion: 1,
    metadata: {},
    recordedAt: '2026-01-01T00:00:00.000Z',
  };
}
const events = [
  event(9, 0, 0, 'Opened'),
  event(10, 0, 1, 'Credited'),
  event(20, 1, 0, 'Credited'),
  event(30, 2, 0, 'Credited'),
];

/** Acknowledged appends, at the milliseconds 1000, 2000 and 3000. */
function ledgerOf(appends: number): Ledger {
  const ledger = createLedger();
  for (let append = 0; append < appends; append++) {
    const types = append === 0 ? ['Opened', 'Credited'] : ['Credited'];
    const entry = ledger.begin(1_000, [{ family: 'account', streamId: 'account-1', types }]);
    acknowledge(entry, [BigInt(10 * (append + 1))], 1_000 * append + 900);
    entry.acknowledgedAt = 1_000 * (append + 1);
  }
  return ledger;
}

/** The fourth append is lost: it was acknowledged during the cut. */
function afterLostTail(): Ledger {
  const ledger = ledgerOf(4);
  ledger.cut({ from: 3_500, to: 5_000, head: 30n });
  return ledger;
}

async function found(changed: Partial<Evidence>): Promise<readonly string[]> {
  const evidence: Evidence = {
    db,
    stores: [{ name: 'default', db }],
    ledger: ledgerOf(3),
    answers: [],
    feeds: [],
    feedPatienceMs: 0,
    events,
    steps: [],
    failOvers: [],
    boundMs: { kill: 0, stall: 0, 'cut off': 0 },
    storeOutages: [],
    heldStreams: [],
    trials: noTrials(),
    ...changed,
  };
  const all: string[] = [];
  for (const name of ofClients) {
    const judge = judges.find((one) => one.name === name);
    all.push(
      ...((await judge?.differences(evidence)) ?? [`there is no judge ${name}`]).map((text) => `${name}: ${text}`),
    );
  }
  return all;
}

interface Told {
  readonly data?: Response['data'];
  readonly codes?: readonly string[];
  readonly position?: string;
  /** The demanded position, and when the client got it. */
  readonly demanded?: readonly [text: string, toldAt: number];
  readonly askedAt?: number;
}

function answer(asked: Asked, { data = null, codes = [], position, demanded, askedAt = 9_000 }: Told): Answer {
  return {
    client: 'client 1',
    asked,
    demanded: demanded && { text: demanded[0], toldAt: demanded[1] },
    askedAt,
    toldAt: askedAt + 1,
    response: { data, codes, message: codes[0], position, held: 0 },
  };
}

test('judges accept correct responses', async () => {
  expect(await found({})).toEqual([]);
  const rows = { amount: '2.00', movements: 2, chain: chainAt(20) };
  const answers = [
    answer({ kind: 'written row', append: 1 }, { data: { journal: { append: 1 } }, demanded: ['20', 2_000] }),
    answer(
      { kind: 'account', accountId: 'account-1' },
      {
        data: { balance: rows, again: rows, standing: { amount: '2.00', chain: rows.chain } },
        position: '25',
        demanded: ['20', 2_000],
      },
    ),
    answer({ kind: 'sums' }, { data: sums(3, '3.00') }),
    answer({ kind: 'write', append: 2 }, { codes: ['DATABASE_UNAVAILABLE'] }),
  ];
  expect(await found({ answers, feeds: [feed(copyAtRest())] })).toEqual([]);
});

describe('judges find', () => {
  test.each([
    ['not there', null],
    ['another', { append: 0 }],
  ])('a write whose row is %s', async (_, journal) => {
    const answers = [answer({ kind: 'written row', append: 1 }, { data: { journal }, demanded: ['20', 2_000] })];
    expect(await found({ answers })).toEqual([expect.stringContaining('writes-are-read: client 1 read append 1')]);
  });

  test('an acknowledged append that is missing, unless its tail was lost', async () => {
    expect(await found({ ledger: ledgerOf(4) })).toEqual([
      expect.stringContaining('log-is-ledger: append 3 was acknowledged'),
    ]);
    expect(await found({ ledger: afterLostTail() })).toEqual([]);
  });

  test('an append in the log that was reported to a client as refused', async () => {
    const ledger = ledgerOf(3);
    const [, entry] = ledger.entries;
    if (entry) entry.outcome = 'refused';
    expect(await found({ ledger })).toEqual([expect.stringContaining('append 1 was refused, but is in the log')]);
  });

  test('a lost position that counts as reached, or that a read waits for', async () => {
    const ledger = afterLostTail();
    const lost = { kind: 'written row', append: 3 } as const;
    const demanded = ['40', 4_000] as const;
    expect(await found({ ledger, answers: [answer(lost, { codes: ['HISTORY_CHANGED'], demanded })] })).toEqual([]);
    expect(await found({ ledger, answers: [answer(lost, { data: { journal: null }, demanded })] })).toEqual([
      expect.stringContaining('the append was lost, but the response has no HISTORY_CHANGED'),
    ]);
    expect(await found({ ledger, answers: [answer(lost, { codes: ['POSITION_TIMEOUT'], demanded })] })).toEqual([
      expect.stringContaining('timed out waiting for a lost position'),
    ]);
    // During the cut, either response is correct.
    expect(
      await found({ ledger, answers: [answer(lost, { data: { journal: null }, demanded, askedAt: 4_500 })] }),
    ).toEqual([]);
    const later = answer({ kind: 'sums' }, { data: sums(3, '3.00'), demanded: ['45', 4_600], position: '50' });
    expect(await found({ ledger, answers: [later] })).toEqual([
      expect.stringContaining('positions-are-monotonic: client 1 demanded 45, which includes append 3'),
    ]);
  });

  test('a HISTORY_CHANGED without a lost tail', async () => {
    const asked = { kind: 'written row', append: 1 } as const;
    const answers = [answer(asked, { codes: ['HISTORY_CHANGED'], demanded: ['20', 2_000] })];
    expect(await found({ answers })).toEqual([
      expect.stringContaining('writes-are-read'),
      expect.stringContaining('errors-are-true: client 1 (written row at 20) got HISTORY_CHANGED'),
    ]);
  });

  test('a response that is older than demanded', async () => {
    const answers = [answer({ kind: 'sums' }, { data: sums(3, '3.00'), demanded: ['30', 3_000], position: '20' })];
    expect(await found({ answers })).toEqual([
      'positions-are-monotonic: client 1 demanded 30, but the response is as of 20',
    ]);
  });

  test('a response that mixes two snapshots', async () => {
    expect(await found({ answers: [answer({ kind: 'sums' }, { data: sums(2, '3.00') })] })).toEqual([
      expect.stringContaining('answers-are-whole: client 1 got a list of'),
    ]);
    const [before, after] = [20, 30].map((position) => ({
      amount: `${position / 10}.00`,
      movements: position / 10,
      chain: chainAt(position),
    }));
    const data = { balance: before, again: after, standing: { amount: after?.amount, chain: after?.chain } };
    expect(await found({ answers: [answer({ kind: 'account', accountId: 'account-1' }, { data })] })).toEqual([
      expect.stringContaining('answers-are-whole: client 1 got'),
    ]);
  });

  test('a row that is older than demanded, and one that never existed', async () => {
    const account = (amount: string, chain: number, demanded: string) => {
      const row = { amount, movements: 2, chain };
      const data = { balance: row, again: row, standing: { amount, chain } };
      return answer({ kind: 'account', accountId: 'account-1' }, { data, demanded: [demanded, 1_000] });
    };
    expect(await found({ answers: [account('2.00', chainAt(20), '30')] })).toEqual([
      expect.stringContaining('its state from 20 to 30; the client demanded 30'),
      expect.stringContaining('its state from 20 to 30; the client demanded 30'),
    ]);
    expect(await found({ answers: [account('2.00', 1, '20')] })).toEqual([
      expect.stringContaining('which was never its state'),
      expect.stringContaining('which was never its state'),
    ]);
  });

  test('a feed that lacks a row, has a ghost, goes back, or is reset without a reason', async () => {
    expect(await found({ feeds: [feed(new Map())] })).toEqual([
      expect.stringContaining('feeds-are-folds: the feed of balance has account-1: no row'),
    ]);
    expect(await found({ feeds: [feed(new Map([...copyAtRest(), ['account-2', 'amount 1.00']]))] })).toEqual([
      expect.stringContaining('expected no row (a ghost)'),
    ]);
    const problems = [{ at: 1, text: 'went back from 30 to 20 without a reset' }];
    expect(await found({ feeds: [{ ...feed(copyAtRest()), problems }] })).toEqual([
      'feeds-are-folds: the feed of balance went back from 30 to 20 without a reset',
    ]);
    const reset = { ...feed(copyAtRest()), resets: [{ at: 6_000, reason: 'HISTORY_CHANGED' }] };
    expect(await found({ feeds: [reset] })).toEqual([
      expect.stringContaining('got HISTORY_CHANGED, but no tail was lost'),
    ]);
    expect(await found({ feeds: [reset], ledger: afterLostTail() })).toEqual([]);
  });

  test('a command or a read of the log that fails while only a store is away', async () => {
    const outage = {
      how: 'silent',
      from: 8_000,
      to: 9_500,
      appended: 3,
      stuck: [],
      behind: [],
      caughtUpMs: 9,
    } as const;
    const told = (asked: Asked, code: string, askedAt = 9_000) =>
      found({ storeOutages: [outage], answers: [answer(asked, { codes: [code], askedAt })] });
    expect(await told({ kind: 'write', append: 1 }, 'OUTCOME_UNKNOWN')).toEqual([
      'store-outages-stop-nothing-else: while the store was silent, client 1 (write) got OUTCOME_UNKNOWN: OUTCOME_UNKNOWN',
    ]);
    expect(await told({ kind: 'account', accountId: 'account-1' }, 'DATABASE_UNAVAILABLE')).toHaveLength(1);
    expect(await told({ kind: 'sums' }, 'NETWORK')).toHaveLength(1);
    // What the store has does not respond, and what was asked before or after may be of another fault.
    expect(await told({ kind: 'written row', append: 1 }, 'DATABASE_UNAVAILABLE')).toEqual([]);
    for (const askedAt of [7_999, 9_501]) expect(await told({ kind: 'sums' }, 'NETWORK', askedAt)).toEqual([]);
  });

  test('an error that no fault explains', async () => {
    const told = (asked: Asked, code: string) => found({ answers: [answer(asked, { codes: [code] })] });
    expect(await told({ kind: 'sums' }, 'INTERNAL_SERVER_ERROR')).toEqual([
      expect.stringContaining('got INTERNAL_SERVER_ERROR'),
    ]);
    expect(await told({ kind: 'sums' }, 'OUTCOME_UNKNOWN')).toEqual([
      expect.stringContaining('got OUTCOME_UNKNOWN, but did not write'),
    ]);
    expect(await told({ kind: 'write', append: 1 }, 'OUTCOME_UNKNOWN')).toEqual([]);
  });

  test('an error that calls a written command not done', async () => {
    const data = { move: { position: '10', streamVersion: 1, query: null } };
    const told = (code: string) => found({ answers: [answer({ kind: 'write', append: 1 }, { data, codes: [code] })] });
    expect(await told('DATABASE_UNAVAILABLE')).toEqual([expect.stringContaining('but it was written')]);
    expect(await told('PARTLY_DONE')).toEqual([]);
  });
});

function chainAt(position: number): number {
  const before = events.filter((one) => one.position <= BigInt(position));
  const { rows } = expectation(balance(1), before, { discarded: new Set(), healed: new Set() });
  return ([...rows.values()][0] as { readonly chain: number }).chain; // of the only account
}

/** Rows that sum up to `movements` credits, and an aggregate of three. */
function sums(movements: number, weighted: string) {
  return {
    balances: { nodes: [{ movements, weighted }] },
    balancesAggregate: { count: 1, sum: { movements: '3', weighted: '3.00' } },
  };
}

function copyAtRest(): ReadonlyMap<string, string> {
  const row = { amount: '3.00', movements: 3, chain: chainAt(30) };
  return new Map([['account-1', rowText(ofBalance().columns, row)]]);
}

function ofBalance() {
  const [first] = feeds;
  if (!first) throw new Error('there are feeds');
  return first;
}

function feed(copy: ReadonlyMap<string, string>): FeedClient {
  const name = 'feed of balance';
  return {
    name,
    feed: ofBalance(),
    copy,
    problems: [],
    resets: [],
    connections: 1,
    ahead: new Set(),
    beginAnew() {},
    ended: Promise.resolve(),
  };
}
